//! `bench` and `accuracy`: run the crate for measurements, which is compiled only when needed.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::child;
use crate::workspace::CargoWorkspace;

const PACKAGE: &str = "xtask-measure";

/// Runs the benchmarks.
pub fn run_bench(words: Vec<OsString>) -> Result<ExitCode> {
    run_measure_chore("bench", words)
}

/// Runs real programs through the shell tools.
pub fn run_accuracy(words: Vec<OsString>) -> Result<ExitCode> {
    run_measure_chore("accuracy", words)
}

fn run_measure_chore(chore: &str, words: Vec<OsString>) -> Result<ExitCode> {
    let workspace = CargoWorkspace::load()?;
    let mut command = child::cargo_command(&workspace.root);
    command.args(["run", "--quiet", "--profile", "xtask", "-p", PACKAGE, "--", chore]).args(words);
    child::exec_command(command).with_context(|| format!("starting `{PACKAGE}`"))
}
