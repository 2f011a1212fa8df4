//! What the tools of a coding agent cost, whole calls through `jaato call --batch`, against plain
//! programs that do the same.

mod search;

use anyhow::Result;

use super::Outcome;
use xtask::workspace::Workspace;

/// Measures the tools.
pub fn tools(workspace: &Workspace) -> Result<Outcome> {
    search::search(workspace)
}
