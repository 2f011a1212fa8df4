//! `--worktree`: a conversation in a folder of its own, which the plugin `tool-subagent` creates.

use std::path::PathBuf;

use jaato_runtime::{Runtime, visible};
use serde_json::{Value, json};

use crate::exit::{CommandFailure, Exit};
use crate::{command, report};

/// The plugin's command.
const COMMAND: &str = "worktree";

/// Creates a worktree unless it exists. Returns its folder.
///
/// # Errors
/// If the name is not valid, no plugin has the command, or its git or copy fails.
pub async fn create_worktree(runtime: &Runtime, name: &str) -> Result<PathBuf, CommandFailure> {
    let asked = json!({ "action": "create", "name": name });
    let Some(answer) = command::run_unattended(runtime, COMMAND, asked).await? else {
        let text = "`--worktree` needs the plugin `tool-subagent`";
        return Err(CommandFailure::new(Exit::Configuration, text)
            .hint("`jaato plugin list` says why it is missing"));
    };
    let content = answer?.content;
    match content.get("directory").and_then(Value::as_str) {
        // For a folder in a worktree, worktrees are created around it.
        Some(directory) => {
            let workspace = &runtime.setup().workspace;
            let around = workspace.worktree().map(|(around, _)| around);
            Ok(around.unwrap_or(workspace.working_directory()).join(directory))
        }
        None => Err(CommandFailure::new(Exit::Failed, "the worktree has no folder")),
    }
}

/// If the runtime works in a worktree, says how the user gets its changes.
pub fn print_how_to_accept(runtime: &Runtime) {
    let Some((_, name)) = runtime.setup().workspace.worktree() else { return };
    let name = name.to_string_lossy();
    let name = visible::visible_name(&name);
    report::print_remark(&format!(
        "`jaato worktree diff {name}` shows the changes, `jaato worktree accept {name}` applies \
         them"
    ));
}
