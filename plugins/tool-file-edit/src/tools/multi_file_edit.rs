//! The tool `multiFileEdit`.

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::file_change::FileChange;

use super::{
    applied_change_output, check_is_own_path, check_unchanged_since_seen, format_line_counts,
    preview_plan, require_existing_file, tolerance_note,
};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::edit::{
    EditAnchors, EditFailure, EditRequest, MatchFailure, MatchSelection, edit_bytes, quote_start,
};
use crate::editor::Editor;
use crate::files::not_text_error;
use crate::plan::EditPlan;
use crate::recover_changes::recover_unfinished_changes;

/// The maximum number of operations in a call.
const OPERATIONS_MAX: usize = 500;

/// Change several files at once. If one operation fails, none is applied. Each operation sees the
/// results of those before it.
#[derive(Clone, ToolInput)]
#[tool(
    name = "multiFileEdit",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    traits("file_writer"),
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    )
)]
struct MultiFileEdit {
    /// The operations, in order.
    operations: Vec<MultiFileOperation>,
}

/// One operation.
#[tool_type]
#[derive(Clone, Default)]
struct MultiFileOperation {
    /// `edit` (path, old, new), `create` (path, content), `delete` (path) or `rename` (from, to).
    #[schemars(extend("x-jaato-touches" = { "text": "the name of an operation" }))]
    action: String,
    /// The file, except for rename.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: Option<String>,
    /// edit: text to replace, copied from the file. It must occur once.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    old: Option<String>,
    /// edit: its replacement.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    new: Option<String>,
    /// edit: replace every `old`.
    #[serde(default)]
    replace_all: bool,
    /// edit: unchanged text right before `old`, if `old` occurs more than once.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    prologue: Option<String>,
    /// edit: unchanged text right after `old`.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    epilogue: Option<String>,
    /// create: the file's text.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    content: Option<String>,
    /// rename: the file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    from: Option<String>,
    /// rename: its new path.
    #[schemars(extend("x-jaato-touches" = "write"))]
    to: Option<String>,
    /// Same as `from`.
    #[schemars(extend("x-jaato-touches" = "write"))]
    source_path: Option<String>,
    /// Same as `to`.
    #[schemars(extend("x-jaato-touches" = "write"))]
    destination_path: Option<String>,
}

/// The action of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MultiFileAction {
    Edit,
    Create,
    Delete,
    Rename,
}

impl Tool for MultiFileEdit {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let (plan, notes) = self.plan_operations(cx).await?;
        let applied =
            apply_plan(cx, ChangeOrigin { tool: "multiFileEdit", undoes: None }, plan).await?;
        let mut result = self.result_fields();
        if !notes.is_empty() {
            result.insert("notes".to_owned(), notes.into());
        }
        Ok(applied_change_output(result, &applied, mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let count = |action: MultiFileAction| {
            self.operations
                .iter()
                .filter(|operation| operation.parse_action() == Some(action))
                .count()
        };
        let named = [
            (MultiFileAction::Edit, "edit"),
            (MultiFileAction::Create, "create"),
            (MultiFileAction::Delete, "delete"),
            (MultiFileAction::Rename, "rename"),
        ];
        let counted = named.map(|(action, name)| (count(action), name));
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let what: Vec<String> = counted.map(|(count, name)| format!("{count} {name}")).collect();
        let said = |changes: &[FileChange]| {
            format!(
                "Atomic multi-file operation: {} {}",
                what.join(", "),
                format_line_counts(changes)
            )
        };
        preview_plan(cx, self.plan_operations(cx).await.map(|it| it.0), said).await
    }
}

tool!(MultiFileEdit);

impl MultiFileEdit {
    /// Plans all operations. Also returns where files write the texts differently.
    async fn plan_operations(&self, cx: &Cx<Editor>) -> Result<(EditPlan, Vec<String>)> {
        let wrong = |text: String| Err(Error::new(ErrorKind::InvalidArguments, text));
        if self.operations.is_empty() {
            return wrong("operations array is required and cannot be empty".to_owned());
        }
        if self.operations.len() > OPERATIONS_MAX {
            return wrong(format!("a call can have at most {OPERATIONS_MAX} operations"));
        }
        let mut plan = EditPlan::new(&cx.state().editor_context(cx).await?.folder);
        let mut notes = Vec::new();
        for (index, operation) in self.operations.iter().enumerate() {
            plan = operation.plan_operation(cx, plan, &mut notes).await.map_err(|error| {
                let of = self.operations.len();
                let text = format!(
                    "operation {} of {of} cannot be done, nothing was changed: {}",
                    index + 1,
                    error.message
                );
                Error { message: text, ..error }
            })?;
        }
        Ok((plan, notes))
    }

    fn result_fields(&self) -> Map<String, Value> {
        let count = self.operations.len();
        let mut result = json_object!({
            "success": true, "operations_completed": count, "operations_total": count,
        });
        let paths = |wanted: MultiFileAction| -> Vec<Value> {
            let those =
                self.operations.iter().filter(|operation| operation.parse_action() == Some(wanted));
            let named = those.map(|operation| match wanted {
                MultiFileAction::Rename => {
                    json!({ "from": operation.source(), "to": operation.destination() })
                }
                MultiFileAction::Edit | MultiFileAction::Create | MultiFileAction::Delete => {
                    json!(operation.path)
                }
            });
            let mut paths: Vec<Value> = named.collect();
            paths.dedup();
            paths
        };
        let keys = [
            ("files_modified", MultiFileAction::Edit),
            ("files_created", MultiFileAction::Create),
            ("files_deleted", MultiFileAction::Delete),
            ("files_renamed", MultiFileAction::Rename),
        ];
        for (key, action) in keys {
            let paths = paths(action);
            if !paths.is_empty() {
                result.insert(key.to_owned(), paths.into());
            }
        }
        result
    }
}

impl MultiFileOperation {
    fn parse_action(&self) -> Option<MultiFileAction> {
        Some(match self.action.to_ascii_lowercase().as_str() {
            "edit" => MultiFileAction::Edit,
            "create" => MultiFileAction::Create,
            "delete" => MultiFileAction::Delete,
            "rename" => MultiFileAction::Rename,
            _ => return None,
        })
    }

    fn source(&self) -> Option<&str> {
        self.from.as_deref().or(self.source_path.as_deref())
    }

    fn destination(&self) -> Option<&str> {
        self.to.as_deref().or(self.destination_path.as_deref())
    }

    async fn plan_operation(
        &self,
        cx: &Cx<Editor>,
        plan: EditPlan,
        notes: &mut Vec<String>,
    ) -> Result<EditPlan> {
        let Some(action) = self.parse_action() else {
            let text = format!(
                "Invalid action: {}. Valid actions: ['edit', 'create', 'delete', 'rename']",
                self.action
            );
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        };
        match action {
            MultiFileAction::Edit => self.plan_edit(cx, plan, notes).await,
            MultiFileAction::Create => self.plan_creation(cx, plan).await,
            MultiFileAction::Delete => self.plan_deletion(cx, plan).await,
            MultiFileAction::Rename => self.plan_rename(cx, plan).await,
        }
    }

    async fn plan_edit(
        &self,
        cx: &Cx<Editor>,
        mut plan: EditPlan,
        notes: &mut Vec<String>,
    ) -> Result<EditPlan> {
        let path = required_field("path", self.path.as_deref())?;
        let missing = |what: &str| {
            let text = format!("'{what}' content is required for edit operation");
            Error::new(ErrorKind::InvalidArguments, text)
        };
        let old = self.old.clone().ok_or_else(|| missing("old"))?;
        let new = self.new.clone().ok_or_else(|| missing("new"))?;
        let number = require_existing_file(cx, &mut plan, path).await?;
        check_unchanged_since_seen(cx, &plan, number).await?;
        let (prologue, epilogue) =
            (self.prologue.clone().unwrap_or_default(), self.epilogue.clone().unwrap_or_default());
        let places = if self.replace_all { MatchSelection::All } else { MatchSelection::One };
        let (mut plan, edited) = cx
            .blocking({
                let (old, path) = (old.clone(), path.to_owned());
                move |_| {
                    let anchors = EditAnchors { prologue: &prologue, epilogue: &epilogue };
                    let bytes = plan.planned_bytes(number).unwrap_or_default();
                    let edited =
                        edit_bytes(bytes, EditRequest { old: &old, new: &new, anchors, places })
                            .map_err(|failed| edit_error(&path, bytes, &old, failed));
                    (plan, edited)
                }
            })
            .await?;
        let edited = edited?;
        plan.plan_write(number, edited.bytes)?;
        notes.extend(edited.forgiven.map(|it| format!("{path}: {}", tolerance_note(&it))));
        Ok(plan)
    }

    async fn plan_creation(&self, cx: &Cx<Editor>, mut plan: EditPlan) -> Result<EditPlan> {
        let path = required_field("path", self.path.as_deref())?;
        let Some(content) = &self.content else {
            let text = "'content' is required for create operation";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        };
        let number = plan.open_file(cx, path).await?;
        if plan.planned_bytes(number).is_some() {
            return Err(Error::new(ErrorKind::Conflict, format!("File already exists: {path}")));
        }
        plan.plan_write(number, content.clone().into_bytes())?;
        Ok(plan)
    }

    async fn plan_deletion(&self, cx: &Cx<Editor>, mut plan: EditPlan) -> Result<EditPlan> {
        let path = required_field("path", self.path.as_deref())?;
        let number = require_existing_file(cx, &mut plan, path).await?;
        check_is_own_path(cx, &plan, number).await?;
        check_unchanged_since_seen(cx, &plan, number).await?;
        plan.plan_delete(number);
        Ok(plan)
    }

    async fn plan_rename(&self, cx: &Cx<Editor>, mut plan: EditPlan) -> Result<EditPlan> {
        let from_path = required_field("from", self.source())?;
        let to_path = required_field("to", self.destination())?;
        let from = require_existing_file(cx, &mut plan, from_path).await?;
        let to = plan.open_file(cx, to_path).await?;
        if from == to {
            let text = format!("source and destination are the same file: {from_path}");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        if plan.planned_bytes(to).is_some() {
            let text = format!("Destination already exists: {to_path}");
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        check_is_own_path(cx, &plan, from).await?;
        plan.plan_rename(from, to);
        Ok(plan)
    }
}

fn required_field<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str> {
    super::require_argument(name, value.unwrap_or_default())
}

fn edit_error(path: &str, bytes: &[u8], old: &str, failed: EditFailure) -> Error {
    let text = match &failed {
        EditFailure::NotText => return not_text_error(path, bytes, bytes.len() as u64),
        EditFailure::Missed(MatchFailure::NotFound | MatchFailure::NotBetween(_), _) => {
            format!("Edit target not found in {path}: {}", quote_start(old))
        }
        EditFailure::Missed(MatchFailure::Ambiguous { .. }, _) => format!(
            "Edit target is ambiguous in {path} (matched multiple times). \
             Use prologue/epilogue to disambiguate."
        ),
        EditFailure::Missed(MatchFailure::Empty | MatchFailure::Alike { .. }, _)
        | EditFailure::Chunk(..)
        | EditFailure::Lacks(..) => String::new(),
    };
    let error = super::edit_error(path, bytes, old, failed);
    if text.is_empty() { error } else { Error { message: text, ..error } }
}
