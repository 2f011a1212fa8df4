//! The tool `updateFile`.

use std::sync::Arc;

use futures_util::future::join;
use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;

use super::{
    applied_change_output, backup_id_of, check_unchanged_since_seen, edit_error,
    format_line_counts, preview_plan, require_argument, tolerance_note,
};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::edit::{
    EditAnchors, EditRequest, EditResult, MatchSelection, edit_bytes, encode_new_text,
};
use crate::editor::Editor;
use crate::plan::EditPlan;
use crate::recover_changes::recover_unfinished_changes;
use crate::text::{count_lines, decode_bytes};

/// Edit a file: replace `old`, which must be there once, by `new`; or the whole text by
/// `new_content`. Returns a diff.
#[derive(Clone, ToolInput)]
#[tool(
    name = "updateFile",
    core,
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    traits("file_writer", "edits_by_text"),
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Rename the variable a to b in x.py", path = "x.py", old = "a = 1", new = "b = 1")
)]
struct UpdateFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: String,
    /// Text to replace, copied from the file.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    old: Option<String>,
    /// Its replacement.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    new: Option<String>,
    /// Replace every `old`.
    #[serde(default)]
    replace_all: bool,
    /// Unchanged text right before `old`, to choose one of several.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    prologue: Option<String>,
    /// Unchanged text right after `old`.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    epilogue: Option<String>,
    /// The whole new text, instead of `old` and `new`.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    new_content: Option<String>,
}

impl Tool for UpdateFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let (plan, edited) = self.plan_update(cx).await?;
        let maker = ChangeOrigin { tool: "updateFile", undoes: None };
        let applied = apply_plan(cx, maker, plan).await?;
        let plan = Arc::clone(&applied.plan);
        let counted = move |_: &Reporter| {
            let bytes = plan.planned_bytes(0).unwrap_or_default();
            (bytes.len(), decode_bytes(bytes).map_or(0, |decoded| count_lines(&decoded.text)))
        };
        let (size, lines) = cx.blocking(counted).await?;
        let mut result = json_object!({
            "success": true, "path": self.path, "size": size, "lines": lines,
        });
        if self.replace_all {
            result.insert("replaced".to_owned(), edited.replaced.into());
        }
        if let Some(differences) = edited.forgiven {
            result.insert("note".to_owned(), tolerance_note(&differences).into());
        }
        match backup_id_of(&applied, 0) {
            Some(backup) => result.insert("backup".to_owned(), backup.into()),
            None => result.insert("unchanged".to_owned(), true.into()),
        };
        Ok(applied_change_output(result, &applied, mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let path = self.path.clone();
        let said = |changes: &[_]| format!("Update {path} {}", format_line_counts(changes));
        preview_plan(cx, self.plan_update(cx).await.map(|(plan, _)| plan), said).await
    }
}

tool!(UpdateFile);

impl UpdateFile {
    /// Plans the change. Also returns the edit's result.
    async fn plan_update(&self, cx: &Cx<Editor>) -> Result<(EditPlan, EditResult)> {
        let path = require_argument("path", &self.path)?;
        self.check_fields()?;
        let mut plan = EditPlan::new(&cx.state().editor_context(cx).await?.folder);
        let number = plan.open_existing(cx, path).await?;
        let (asked, before) = (self.clone(), plan.files[number].before.clone());
        let made = cx.blocking(move |_| {
            let bytes: &[u8] = before.as_ref().map_or(&[], |before| &before.bytes);
            asked.apply_edit(bytes)
        });
        // A comparison with the seen version digests large files, so both run at once.
        let (seen, made) = join(check_unchanged_since_seen(cx, &plan, number), made).await;
        seen?;
        let mut edited = made??;
        plan.plan_write(number, std::mem::take(&mut edited.bytes))?;
        Ok((plan, edited))
    }

    fn check_fields(&self) -> Result<()> {
        let wrong = |text: &str| Err(Error::new(ErrorKind::InvalidArguments, text));
        match (&self.old, &self.new, &self.new_content) {
            (Some(_), None, _) => wrong("'new' is required when 'old' is provided"),
            (None, Some(_), _) => wrong("'old' is required when 'new' is provided"),
            (Some(_), Some(_), Some(_)) => {
                wrong("either 'old' and 'new' or 'new_content', not both")
            }
            (None, None, None) => wrong("either 'old' and 'new' or 'new_content' is required"),
            (Some(_), Some(_), None) | (None, None, Some(_)) => Ok(()),
        }
    }

    fn apply_edit(&self, bytes: &[u8]) -> Result<EditResult> {
        let old = self.old.as_deref().unwrap_or_default();
        let made = match &self.new_content {
            Some(whole) => encode_new_text(bytes, whole).map(|bytes| EditResult {
                bytes,
                replaced: 1,
                forgiven: None,
            }),
            None => {
                let new = self.new.as_deref().unwrap_or_default();
                let prologue = self.prologue.as_deref().unwrap_or_default();
                let epilogue = self.epilogue.as_deref().unwrap_or_default();
                let places =
                    if self.replace_all { MatchSelection::All } else { MatchSelection::One };
                edit_bytes(
                    bytes,
                    EditRequest { old, new, anchors: EditAnchors { prologue, epilogue }, places },
                )
            }
        };
        made.map_err(|failed| edit_error(&self.path, bytes, old, failed))
    }
}
