//! `bench` and `accuracy`: handed on to the crate that measures, which is compiled when it is asked
//! for.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::child;
use crate::workspace::Workspace;

const PACKAGE: &str = "xtask-measure";

/// Runs the benches.
pub fn bench(words: Vec<OsString>) -> Result<ExitCode> {
    hand_on("bench", words)
}

/// Plays real programs through the shell tools.
pub fn accuracy(words: Vec<OsString>) -> Result<ExitCode> {
    hand_on("accuracy", words)
}

fn hand_on(chore: &str, words: Vec<OsString>) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--profile", "xtask", "-p", PACKAGE, "--", chore]).args(words);
    child::become_command(command).with_context(|| format!("starting `{PACKAGE}`"))
}
