//! The tool `writeNewFile`.

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;

use super::{change_output, preview_plan, require_argument};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::editor::Editor;
use crate::plan::{EditPlan, absolute_path, resolve_links};
use crate::recover_changes::recover_unfinished_changes;
use crate::text::count_lines;

/// Write a new file, with the folders above it. It must not exist yet.
#[derive(Clone, ToolInput)]
#[tool(
    name = "writeNewFile",
    core,
    category = "filesystem",
    destructive = false,
    open_world = false,
    previews,
    traits("file_writer", "edits_by_text"),
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Write hello into a new file a.txt", path = "a.txt", content = "hello\n")
)]
struct WriteNewFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: String,
    /// Its text.
    #[schemars(extend("x-jaato-touches" = { "text": "text of the file" }))]
    content: String,
}

impl Tool for WriteNewFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let plan = self.plan_new_file(cx).await?;
        let maker = ChangeOrigin { tool: "writeNewFile", undoes: None };
        apply_plan(cx, maker, plan).await?;
        let (size, lines) = (self.content.len(), count_lines(&self.content));
        let result =
            json_object!({ "success": true, "path": self.path, "size": size, "lines": lines });
        // The model knows the content, because it wrote it.
        Ok(change_output(result, &[], mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let lines = count_lines(&self.content);
        let text = format!("Create new file: {} ({lines} lines)", self.path);
        preview_plan(cx, self.plan_new_file(cx).await, |_| text).await
    }
}

tool!(WriteNewFile);

impl WriteNewFile {
    async fn plan_new_file(&self, cx: &Cx<Editor>) -> Result<EditPlan> {
        let path = require_argument("path", &self.path)?;
        let folder = cx.state().editor_context(cx).await?.folder.clone();
        let mut plan = EditPlan::new(&folder);
        if crate::files::read_facts(cx, path).await?.is_some() {
            let text = format!("File already exists: {path}");
            return Err(Error::new(ErrorKind::Conflict, text)
                .with_hint("use updateFile to change an existing file"));
        }
        let target = resolve_links(cx, &absolute_path(&folder, path)).await;
        let number = plan.add_file(path, target, None)?;
        plan.plan_write(number, self.content.clone().into_bytes())?;
        Ok(plan)
    }
}
