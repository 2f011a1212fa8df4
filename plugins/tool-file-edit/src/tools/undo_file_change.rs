//! The tool `undoFileChange`.

use jaato_plugin_sdk::prelude::*;

use super::{given, told};
use crate::apply::{Maker, apply};
use crate::editor::{Editor, failed};
use crate::files::{look, snapshot};
use crate::history::Step;
use crate::mend::{contents, mend};
use crate::plan::{Plan, absolute};

/// Take back the last change that these tools made of a file; call it again to take back the one
/// before. With redo, do again what was taken back.
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
    /// Whether the last undo is taken back instead: no without it.
    #[serde(default)]
    redo: bool,
}

impl Tool for UndoFileChange {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = mend(cx).await?;
        let path = given("path", &self.path)?;
        let place = cx.state().place(cx).await?.clone();
        // What is not allowed is refused, whatever the history knows of it.
        look(cx, path).await?;
        let named = place.name(&absolute(&place.folder, path));
        let (history, redo) = (cx.state().history()?.clone(), self.redo);
        let step = cx
            .blocking(move |_| match redo {
                true => history.redo_step(&named),
                false => history.undo_step(&named),
            })
            .await?
            .map_err(failed)?;
        let Some(step) = step else {
            let text = match self.redo {
                true => format!("Nothing to redo for: {path}"),
                false => format!("No backup found for: {path}"),
            };
            return Err(Error::new(ErrorKind::NotFound, text));
        };
        let plan = plan(cx, &step, &place.folder).await?;
        let maker = Maker { tool: "undoFileChange", undoes: Some(step.change) };
        let applied = apply(cx, maker, plan).await?;
        let message = match self.redo {
            true => "Change done again",
            false => "File restored from backup",
        };
        let mut result = json_object!({
            "success": true,
            "path": path,
            "restored_from": format!("the file before {} #{}", step.tool, step.change),
            "message": message,
        });
        if step.others > 0 {
            let text =
                format!("that call changed {} more files, which stay as they are", step.others);
            result.insert("note".to_owned(), text.into());
        }
        Ok(told(result, &applied.changes, mended))
    }
}

tool!(UndoFileChange);

/// Plans that files become what they were before a step, where they still are what it made.
async fn plan(cx: &Cx<Editor>, step: &Step, folder: &str) -> Result<Plan> {
    let mut plan = Plan::new(folder);
    for file in &step.files {
        let path = file.path.as_str();
        let before = snapshot(cx, path).await?;
        let (before, found) = cx
            .blocking(move |_| {
                let found = before.as_ref().map(|before| before.bytes.digest().clone());
                (before, found)
            })
            .await?;
        if found.as_ref() != file.after.as_ref().map(|after| &after.content) {
            let text =
                format!("{path} is another than the last change made it, so nothing was done");
            let hint = "somebody else changed it since: listBackups and restoreFile bring back any earlier one";
            return Err(Error::new(ErrorKind::Conflict, text).with_hint(hint));
        }
        plan.add(path, before)?;
    }
    // What moved goes back as it came.
    for (number, file) in step.files.iter().enumerate() {
        let from = file.moved_from.as_ref();
        let source = from.and_then(|from| step.files.iter().position(|other| other.path == *from));
        let Some(source) = source else { continue };
        let is_pure = file.after.as_ref().map(|it| &it.content)
            == step.files[source].before.as_ref().map(|it| &it.content);
        if is_pure && step.files[source].after.is_none() && file.before.is_none() {
            plan.rename(number, source);
        }
    }
    for (number, file) in step.files.iter().enumerate() {
        let Some(before) = &file.before else {
            if plan.bytes(number).is_some() {
                plan.delete(number);
            }
            continue;
        };
        if plan.is_pure_move(number) {
            continue;
        }
        let bytes = contents(cx, &before.content).await?;
        plan.write(number, bytes)?;
        plan.files[number].permissions = Some(before.mode);
    }
    Ok(plan)
}
