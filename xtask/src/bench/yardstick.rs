//! Programs that do the same as jaato by other means, to be compared with.
//!
//! Each stands in `xtask/yardsticks/` with a lock file of its own, outside the workspace, so that
//! nobody who builds jaato pays for it. It prints one line of JSON: `{"median_us": …}`.

use anyhow::{Context, Result};
use serde_json::Value;

use super::table::{Figure, Target};
use crate::child;
use crate::workspace::Workspace;

/// Rounds of a measurement; the best one counts, as noise only ever slows down.
pub const ROUNDS: usize = 5;

/// A trivial tool call through an MCP server on stdio, written with `rmcp`.
pub fn mcp_echo(workspace: &Workspace) -> Result<Vec<Figure>> {
    let measured = best_median_us(workspace, "mcp-echo")?;
    let what = "call through MCP on stdio (rmcp)".to_owned();
    Ok(vec![Figure { what, unit: "µs", measured, target: Target::None }])
}

/// Builds a yardstick and runs it; the best of its medians.
pub fn best_median_us(workspace: &Workspace, name: &str) -> Result<f64> {
    let folder = workspace.root.join("xtask").join("yardsticks").join(name);
    let target = workspace.target.join("yardsticks");
    let mut build = child::cargo(&folder);
    build.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&target);
    child::run(&mut build)?;
    let program = target.join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut command = std::process::Command::new(&program);
        best = best.min(median_us(&child::output(&mut command)?)?);
    }
    Ok(best)
}

fn median_us(line: &str) -> Result<f64> {
    let value: Value = serde_json::from_str(line).context("reading a yardstick's answer")?;
    value["median_us"].as_f64().context("a yardstick's answer has no `median_us`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_figure_is_an_error() {
        assert_eq!(median_us("{\"median_us\": 75.5}\n").unwrap(), 75.5);
        assert!(median_us("{\"median\": 1}").is_err());
        assert!(median_us("").is_err());
    }
}
