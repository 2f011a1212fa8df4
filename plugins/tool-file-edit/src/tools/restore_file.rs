//! The tool `restoreFile`.

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;

use super::{applied_change_output, format_line_counts, preview_plan, require_argument};
use crate::apply::{ChangeOrigin, apply_plan};
use crate::editor::{Editor, history_error};
use crate::history::{Backup, BackupId, FilePath};
use crate::plan::EditPlan;
use crate::recover_changes::{read_stored_content, recover_unfinished_changes};

/// Restore a file from a backup, whatever it contains now.
#[derive(ToolInput)]
#[tool(
    name = "restoreFile",
    category = "filesystem",
    destructive,
    open_world = false,
    previews,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Bring back a.txt as it was before the last change", path = "a.txt")
)]
struct RestoreFile {
    /// The file.
    #[schemars(extend("x-jaato-touches" = "write"))]
    path: String,
    /// The backup, as listBackups names it. Default: the latest.
    #[schemars(extend("x-jaato-touches" = { "text": "the name of a backup of this file" }))]
    backup_path: Option<String>,
}

impl Tool for RestoreFile {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let (plan, backup) = self.plan_restoration(cx).await?;
        let applied =
            apply_plan(cx, ChangeOrigin { tool: "restoreFile", undoes: None }, plan).await?;
        let result = json_object!({
            "success": true,
            "path": self.path,
            "restored_from": backup.id.to_string(),
            "message": "File restored from backup",
        });
        Ok(applied_change_output(result, &applied, mended))
    }

    async fn preview(self, cx: &Cx<Editor>) -> Result<Preview> {
        let planned = self.plan_restoration(cx).await;
        let id = planned.as_ref().ok().map(|(_, backup)| backup.id.to_string());
        let (path, id) = (self.path, id.unwrap_or_default());
        let said = |changes: &[_]| {
            format!("Restore {path} from backup {id} {}", format_line_counts(changes))
        };
        preview_plan(cx, planned.map(|(plan, _)| plan), said).await
    }
}

tool!(RestoreFile);

impl RestoreFile {
    async fn plan_restoration(&self, cx: &Cx<Editor>) -> Result<(EditPlan, Backup)> {
        let path = require_argument("path", &self.path)?;
        let place = cx.state().editor_context(cx).await?.clone();
        let mut plan = EditPlan::new(&place.folder);
        let number = plan.open_file(cx, path).await?;
        let named = place.file_name(&plan.files[number].target);
        let backup = self.find_requested_backup(cx, named).await?;
        let bytes = read_stored_content(cx, &backup.file.content).await?;
        plan.plan_write(number, bytes)?;
        plan.files[number].permissions = Some(backup.file.mode);
        Ok((plan, backup))
    }

    async fn find_requested_backup(&self, cx: &Cx<Editor>, named: FilePath) -> Result<Backup> {
        let history = cx.state().history()?.clone();
        let asked = self.backup_path.clone();
        let path = self.path.clone();
        let find = move |_: &Reporter| {
            let Some(asked) = asked else {
                let text = format!("No backups found for: {path}");
                let latest =
                    history.list_backups(Some(&named)).map_err(history_error)?.into_iter().next();
                return latest.ok_or_else(|| Error::new(ErrorKind::NotFound, text));
            };
            let missing = || {
                Error::new(ErrorKind::NotFound, format!("Backup file not found: {asked}"))
                    .with_hint("listBackups lists the available backups")
            };
            let id: BackupId = asked.parse().map_err(|()| missing())?;
            let backup = history.find_backup(&id).map_err(|_| missing())?;
            // Only a backup of the same file counts, because a backup must not give access to
            // another file.
            if backup.path == named { Ok(backup) } else { Err(missing()) }
        };
        cx.blocking(find).await?
    }
}
