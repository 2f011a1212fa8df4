//! The tools `moveFile` and `renameFile`, which are the same tool under two names.

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;

use super::{backup_id_of, change_output, preview_plan, require_argument};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::editor::Editor;
use crate::files::{check_is_no_link, read_facts};
use crate::plan::EditPlan;
use crate::recover_changes::recover_unfinished_changes;
use crate::text::{count_lines, decode_bytes};

/// Move a file to another path. Creates missing folders.
#[derive(Clone, ToolInput)]
#[tool(
    name = "moveFile",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Move a.txt into docs", source_path = "a.txt", destination_path = "docs/a.txt")
)]
struct MoveFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    source_path: String,
    /// The new path with the file name.
    #[schemars(extend("x-jaato-touches" = "write"))]
    destination_path: String,
    /// Replace an existing file.
    #[serde(default)]
    overwrite: bool,
}

/// Same as moveFile.
#[derive(Clone, ToolInput)]
#[tool(
    name = "renameFile",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Rename a.txt to b.txt", source_path = "a.txt", destination_path = "b.txt")
)]
struct RenameFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    source_path: String,
    /// The new path with the file name.
    #[schemars(extend("x-jaato-touches" = "write"))]
    destination_path: String,
    /// Replace an existing file.
    #[serde(default)]
    overwrite: bool,
}

impl Tool for MoveFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        apply_move(cx, "moveFile", &self).await
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        preview_move(cx, &self).await
    }
}

impl Tool for RenameFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        apply_move(cx, "renameFile", &self.into()).await
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        preview_move(cx, &self.into()).await
    }
}

tool!(MoveFile);
tool!(RenameFile);

impl From<RenameFile> for MoveFile {
    fn from(asked: RenameFile) -> Self {
        let RenameFile { source_path, destination_path, overwrite } = asked;
        Self { source_path, destination_path, overwrite }
    }
}

/// The numbers of both paths in a plan.
const SOURCE: usize = 0;
const DESTINATION: usize = 1;

async fn apply_move(cx: &Cx<Editor>, tool: &str, asked: &MoveFile) -> Result<Output> {
    let mended = recover_unfinished_changes(cx).await?;
    let plan = plan_move(cx, asked).await?;
    let applied = apply_plan(cx, ChangeOrigin { tool, undoes: None }, plan).await?;
    let mut result = json_object!({
        "success": true, "source": asked.source_path, "destination": asked.destination_path,
    });
    for (key, number) in [("source_backup", SOURCE), ("destination_backup", DESTINATION)] {
        if let Some(backup) = backup_id_of(&applied, number) {
            result.insert(key.to_owned(), backup.into());
        }
    }
    Ok(change_output(result, &[], mended))
}

async fn preview_move(cx: &Cx<Editor>, asked: &MoveFile) -> Result<Preview> {
    let planned = plan_move(cx, asked).await;
    let text = planned.as_ref().ok().map(|plan| {
        let MoveFile { source_path, destination_path, .. } = asked;
        let text = plan.planned_bytes(DESTINATION).and_then(|bytes| decode_bytes(bytes).ok());
        let lines = text.map_or(0, |decoded| count_lines(&decoded.text));
        let text = format!("Move file: {source_path} -> {destination_path} ({lines} lines)");
        match plan.files[DESTINATION].before {
            Some(_) => format!("{text}, replacing the existing file (backup will be created)"),
            None => text,
        }
    });
    preview_plan(cx, planned, |_| text.unwrap_or_default()).await
}

async fn plan_move(cx: &Cx<Editor>, asked: &MoveFile) -> Result<EditPlan> {
    let source = require_argument("source_path", &asked.source_path)?;
    let destination = require_argument("destination_path", &asked.destination_path)?;
    let mut plan = EditPlan::new(&cx.state().editor_context(cx).await?.folder);
    let from = plan.open_file(cx, source).await?;
    if plan.planned_bytes(from).is_none() {
        let text = format!("Source file does not exist: {source}");
        return Err(Error::new(ErrorKind::NotFound, text));
    }
    check_is_no_link(cx, source).await?;
    let is_taken = read_facts(cx, destination).await?.is_some();
    if is_taken && asked.overwrite {
        check_is_no_link(cx, destination).await?;
    }
    let to = plan.open_file(cx, destination).await?;
    if from == to {
        let text = format!("source and destination are the same file: {source}");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    if is_taken && !asked.overwrite {
        let text = format!("Destination file already exists: {destination}");
        return Err(Error::new(ErrorKind::Conflict, text)
            .with_hint("call it with overwrite=true to replace it"));
    }
    plan.plan_rename(from, to);
    Ok(plan)
}
