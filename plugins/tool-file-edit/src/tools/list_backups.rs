//! The tool `listBackups`.

use jaato_plugin_sdk::prelude::*;

use super::require_argument;
use crate::diff::format_timestamp;
use crate::editor::{Editor, history_error};
use crate::files::read_facts;
use crate::history::Backup;
use crate::recover_changes::recover_unfinished_changes;

/// The maximum number of listed backups.
const BACKUPS_TOLD_MAX: usize = 100;

/// List the backups that these tools made before they changed files, latest first.
#[derive(ToolInput)]
#[tool(
    name = "listBackups",
    category = "filesystem",
    read_only,
    idempotent,
    open_world = false,
    auto_approval,
    available_if(
        environment_has = "files",
        reason = "in a session whose execution environment has files"
    ),
    example("Which backups are there?")
)]
struct ListBackups {
    /// Only backups of this file.
    #[schemars(extend("x-jaato-touches" = "read"))]
    path: Option<String>,
}

impl Tool for ListBackups {
    type State = Editor;

    async fn call(self, cx: &Cx<Editor>) -> Result<Output> {
        let mended = recover_unfinished_changes(cx).await?;
        let history = cx.state().history()?.clone();
        let named = match &self.path {
            None => None,
            Some(path) => {
                let path = require_argument("path", path)?;
                read_facts(cx, path).await?;
                let place = cx.state().editor_context(cx).await?;
                Some(place.resolve_file_name(cx, path).await)
            }
        };
        let has_path = named.is_some();
        let found = cx
            .blocking(move |_| history.list_backups(named.as_ref()))
            .await?
            .map_err(history_error)?;
        let count = found.len();
        let told: Vec<Value> = found
            .into_iter()
            .take(BACKUPS_TOLD_MAX)
            .map(|backup| backup_json(&backup, has_path))
            .collect();
        let mut result = json_object!({ "backups": told, "count": count });
        if let Some(path) = self.path {
            result.insert("path".to_owned(), path.into());
        }
        if count == 0 {
            result.insert("message".to_owned(), "No backups found".into());
        }
        if count > BACKUPS_TOLD_MAX {
            result.insert("truncated".to_owned(), true.into());
        }
        Ok(super::change_output(result, &[], mended))
    }
}

tool!(ListBackups);

fn backup_json(backup: &Backup, has_path: bool) -> Value {
    let mut told = json_object!({ "backup_path": backup.id.to_string() });
    if !has_path {
        told.insert("original_path".to_owned(), backup.path.as_str().into());
    }
    told.insert("timestamp".to_owned(), format_timestamp(backup.at_ms).into());
    told.insert("size".to_owned(), backup.file.size.into());
    told.insert("replaced_by".to_owned(), backup.tool.as_str().into());
    Value::Object(told)
}
