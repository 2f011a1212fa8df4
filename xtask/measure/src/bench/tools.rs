//! What the tools of a coding agent cost, whole calls through `jaato call --batch`, against plain
//! programs that do the same.

mod edit;
mod search;

use std::time::Instant;

use anyhow::Result;

use super::Outcome;
use super::installed::Installed;
use xtask::workspace::Workspace;

const PLUGINS: [&str; 3] = ["environment-local", "tool-file-edit", "tool-filesystem-query"];

/// Results are not cut, as their length is not what is measured.
const CONFIG: &str = "version = 1\n[session]\noutput_bytes_max = 1048576\n";

/// Measures the tools.
pub fn tools(workspace: &Workspace) -> Result<Outcome> {
    let installed = Installed::new(workspace, "tools", &PLUGINS, &[], CONFIG)?;
    let mut figures = edit::edit(&installed)?;
    figures.extend(search::search(&installed)?);
    Ok(Outcome::Figures(figures))
}

/// Keeps the least of the times, in milliseconds, as noise only slows down.
fn keep(least: &mut f64, mut work: impl FnMut() -> Result<()>) -> Result<()> {
    let begun = Instant::now();
    work()?;
    *least = least.min(begun.elapsed().as_secs_f64() * 1e3);
    Ok(())
}
