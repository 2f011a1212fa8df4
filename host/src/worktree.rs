//! `--worktree`: a conversation in a folder of its own, which the plugin `tool-subagent` creates.

use std::path::{Component, Path, PathBuf};

use jaato_runtime::{Runtime, visible};
use serde_json::{Value, json};

use crate::exit::{CommandFailure, Exit};
use crate::{command, report};

/// The plugin's command.
const COMMAND: &str = "worktree";

/// The folder with the worktrees, in the folder in which they were created.
const WORKTREES: &str = ".worktrees";

/// Creates a worktree unless it exists. Returns its folder.
///
/// # Errors
/// If the name is not valid, no plugin has the command, or its git or copy fails.
pub async fn create(runtime: &Runtime, name: &str) -> Result<PathBuf, CommandFailure> {
    let asked = json!({ "action": "create", "name": name });
    let Some(answer) = command::run_unattended(runtime, COMMAND, asked).await? else {
        let text = "`--worktree` needs the plugin `tool-subagent`";
        return Err(CommandFailure::new(Exit::Configuration, text)
            .hint("`jaato plugin list` says why it is missing"));
    };
    let content = answer?.content;
    match content.get("directory").and_then(Value::as_str) {
        Some(directory) => {
            Ok(folder_around(runtime.setup().workspace.working_directory()).join(directory))
        }
        None => Err(CommandFailure::new(Exit::Failed, "the worktree has no folder")),
    }
}

/// Returns the folder in which worktrees are created: for a worktree, the one around it.
fn folder_around(here: &Path) -> PathBuf {
    here.components().take_while(|part| *part != Component::Normal(WORKTREES.as_ref())).collect()
}

/// If the runtime works in a worktree, says how the user gets its changes.
pub fn tell_how_to_accept(runtime: &Runtime) {
    let mut parts = runtime.setup().workspace.working_directory().components();
    let has_it = parts.any(|part| part == Component::Normal(WORKTREES.as_ref()));
    let Some(name) = has_it.then(|| parts.next()).flatten() else { return };
    let name = name.as_os_str().to_string_lossy();
    let name = visible::visible_name(&name);
    report::print_remark(&format!(
        "`jaato worktree diff {name}` shows the changes, `jaato worktree accept {name}` applies \
         them"
    ));
}
