//! `bench` and `accuracy`: run the crate for measurements, which is compiled only when needed.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::child;
use crate::workspace::Workspace;

const PACKAGE: &str = "xtask-measure";

/// Runs the benchmarks.
pub fn bench(words: Vec<OsString>) -> Result<ExitCode> {
    hand_on("bench", words)
}

/// Runs real programs through the shell tools.
pub fn accuracy(words: Vec<OsString>) -> Result<ExitCode> {
    hand_on("accuracy", words)
}

fn hand_on(chore: &str, words: Vec<OsString>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--profile", "xtask", "-p", PACKAGE, "--", chore]).args(words);
    child::become_command(command).with_context(|| format!("starting `{PACKAGE}`"))
}
