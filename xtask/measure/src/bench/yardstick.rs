//! Programs that do the same as jaato by other means, for comparison.
//!
//! Each is in `xtask/yardsticks/` with its own lock file, outside the workspace, so that builds of
//! jaato do not compile it. A yardstick that measures itself prints one line of JSON with its
//! figures. Others are measured like `jaato`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use xtask::child;
use xtask::workspace::CargoWorkspace;

/// A built yardstick.
pub struct Yardstick {
    program: PathBuf,
}

impl Yardstick {
    /// Builds the yardstick with this name.
    pub fn build_yardstick(workspace: &CargoWorkspace, name: &str) -> Result<Self> {
        let folder = workspace.root.join("xtask").join("yardsticks").join(name);
        let target = workspace.target.join("yardsticks");
        let mut build = child::cargo_command(&folder);
        build.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&target);
        child::run_command(&mut build)?;
        let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        Ok(Self { program: target.join("release").join(file) })
    }

    /// Returns the executable.
    pub fn program_path(&self) -> &Path {
        &self.program
    }

    /// Runs the yardstick once and returns the median time of its calls.
    pub fn median_us(&self) -> Result<f64> {
        let line = child::command_stdout(&mut Command::new(&self.program))?;
        parse_figure(&line, "median_us")
    }
}

/// Parses one figure from a measuring program's output.
pub fn parse_figure(line: &str, name: &str) -> Result<f64> {
    let value: Value = serde_json::from_str(line).context("reading a program's figures")?;
    value[name].as_f64().with_context(|| format!("a program's figures have no `{name}`: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_figure_is_an_error() {
        assert_eq!(parse_figure("{\"median_us\": 75.5}\n", "median_us").unwrap(), 75.5);
        assert!(parse_figure("{\"median\": 1}", "median_us").is_err());
        assert!(parse_figure("", "median_us").is_err());
    }
}
