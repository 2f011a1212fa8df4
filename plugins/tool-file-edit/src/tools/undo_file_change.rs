//! The tool `undoFileChange`.

use jaato_plugin_sdk::prelude::*;

use super::{applied_change_output, require_argument};
use crate::editor::{Editor, history_error};
use crate::files::read_facts;
use crate::recover_changes::recover_unfinished_changes;
use crate::undo_change::undo_change;

/// Undo the last change that these tools made to a file, in all files of that change. Call again to
/// undo the change before it.
#[derive(ToolInput)]
#[tool(
    name = "undoFileChange",
    category = "filesystem",
    destructive = false,
    open_world = false,
    auto_approval,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Take back the last change of a.txt", path = "a.txt")
)]
struct UndoFileChange {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: String,
    /// Redo the last undone change instead.
    #[serde(default)]
    redo: bool,
}

impl Tool for UndoFileChange {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let path = require_argument("path", &self.path)?;
        let place = cx.state().editor_context(cx).await?.clone();
        // A path that is not allowed is refused, regardless of the history.
        read_facts(cx, path).await?;
        let named = place.resolve_file_name(cx, path).await;
        let (history, redo) = (cx.state().history()?.clone(), self.redo);
        let step = cx
            .blocking(move |_| match redo {
                true => history.redo_step(&named),
                false => history.undo_step(&named),
            })
            .await?
            .map_err(history_error)?;
        let Some(step) = step else {
            let text = match self.redo {
                true => format!("Nothing to redo for: {path}"),
                false => format!("No backup found for: {path}"),
            };
            return Err(Error::new(ErrorKind::NotFound, text));
        };
        let applied = undo_change(cx, "undoFileChange", &step).await?;
        let message = match self.redo {
            true => "Change redone",
            false => "File restored from backup",
        };
        let mut result = json_object!({
            "success": true,
            "path": path,
            "restored_from": format!("the file before {} #{}", step.tool, step.change),
            "message": message,
        });
        if step.files.len() > 1 {
            let paths: Vec<&str> = step.files.iter().map(|file| file.path.as_str()).collect();
            result.insert("files".to_owned(), json!(paths));
        }
        Ok(applied_change_output(result, &applied, mended))
    }
}

tool!(UndoFileChange);
