//! The tool `removeFile`.

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::file_change::FileChange;

use super::{
    backup_id_of, change_output, check_unchanged_since_seen, preview_plan, require_argument,
};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::editor::Editor;
use crate::files::check_is_no_link;
use crate::plan::EditPlan;
use crate::recover_changes::recover_unfinished_changes;

/// Delete a file. undoFileChange restores it.
#[derive(Clone, ToolInput)]
#[tool(
    name = "removeFile",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Delete old.txt", path = "old.txt")
)]
struct RemoveFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: String,
}

impl Tool for RemoveFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let plan = self.plan_removal(cx).await?;
        let maker = ChangeOrigin { tool: "removeFile", undoes: None };
        let applied = apply_plan(cx, maker, plan).await?;
        let backup = backup_id_of(&applied, 0);
        let result = json_object!({
            "success": true, "path": self.path, "deleted": true, "backup": backup,
        });
        Ok(change_output(result, &[], mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let path = self.path.clone();
        let said = |changes: &[FileChange]| {
            let lines: u64 = changes.iter().map(|change| change.lines_removed).sum();
            format!("Delete file: {path} ({lines} lines, backup will be created)")
        };
        preview_plan(cx, self.plan_removal(cx).await, said).await
    }
}

tool!(RemoveFile);

impl RemoveFile {
    async fn plan_removal(&self, cx: &Cx<Editor>) -> Result<EditPlan> {
        let path = require_argument("path", &self.path)?;
        let mut plan = EditPlan::new(&cx.state().editor_context(cx).await?.folder);
        let number = plan.open_existing(cx, path).await?;
        check_is_no_link(cx, &plan.files[number].path).await?;
        check_unchanged_since_seen(cx, &plan, number).await?;
        plan.plan_delete(number);
        Ok(plan)
    }
}
