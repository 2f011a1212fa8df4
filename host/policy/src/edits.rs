//! Which calls change files inside the workspace and do nothing else.

use std::path::Path;

use crate::PluginSource;
use crate::facts::Facts;

/// The shipped plugin whose tools change the files that their arguments name, and keep a copy.
const EDITING_PLUGIN: &str = "tool-file-edit";

/// Folders whose files configure programs that run code: a change there is no mere edit.
const GUARDED: [&str; 6] = [".git", ".jaato", ".claude", ".agents", ".vscode", ".idea"];

/// Files that configure agents, wherever they lie.
const GUARDED_FILES: [&str; 5] = ["AGENTS.md", "CLAUDE.md", ".mcp.json", ".env", ".envrc"];

/// Tells whether a call changes files below its working directory and nothing else.
pub(crate) fn is_inside_edit(facts: &Facts<'_>) -> bool {
    let call = facts.call;
    let Some(directory) = call.directory else { return false };
    call.source == PluginSource::Shipped
        && call.plugin.as_str() == EDITING_PLUGIN
        && !call.annotations.open_world
        && facts.touched.is_complete()
        && facts.hosts.is_empty()
        && facts.shell.is_none()
        && !facts.paths.is_empty()
        && facts.paths.iter().all(|path| is_plain_inside(path, directory))
}

fn is_plain_inside(path: &Path, directory: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(directory) else { return false };
    let mut names = inside.components().map(|part| part.as_os_str().to_string_lossy());
    // Some file systems do not tell capital letters apart.
    let is_guarded = |name: &str| {
        GUARDED.iter().chain(&GUARDED_FILES).any(|guarded| name.eq_ignore_ascii_case(guarded))
    };
    !names.any(|name| is_guarded(&name))
}
