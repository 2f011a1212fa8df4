//! Where process trees cannot be seen to their end as Linux lets us, these benches are left out.

use anyhow::Result;

use super::Outcome;
use crate::workspace::Workspace;

const WHY: &str = "processes, their time and their memory are followed as only Linux lets us";

/// See `agent/cost.rs`.
pub fn cost(_workspace: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Skipped(WHY.to_owned()))
}

/// See `agent/flood.rs`.
pub fn flood(_workspace: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Skipped(WHY.to_owned()))
}

/// See `agent/interrupt.rs`.
pub fn interrupt(_workspace: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Skipped(WHY.to_owned()))
}

/// See `agent/shell_calls.rs`.
pub fn shell_calls(_workspace: &Workspace) -> Result<Outcome> {
    Ok(Outcome::Skipped(WHY.to_owned()))
}
