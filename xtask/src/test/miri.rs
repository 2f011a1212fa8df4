//! Runs the tests of boundary crossings under Miri if a nightly toolchain has it, because the
//! crossings use `unsafe` code that the compiler does not check.

use anyhow::Result;

use crate::child;
use crate::nightly;
use crate::workspace::CargoWorkspace;

/// Both models of pointer aliasing.
const MODELS: [&str; 2] = ["", "-Zmiri-tree-borrows"];

/// Runs Miri, or returns a line with the reason why it cannot.
pub fn run_miri(workspace: &CargoWorkspace) -> Result<Option<String>> {
    if let Some(reason) = missing_reason() {
        return Ok(Some(format!("Miri, which looks at what crosses the boundary: {reason}")));
    }
    for model in MODELS {
        let words = ["miri", "test", "--package", "jaato-plugin-api", "--test", "it", "crossing"];
        let mut cargo = nightly::nightly_cargo(&words);
        cargo.current_dir(&workspace.root).env("MIRIFLAGS", model);
        cargo.env("CARGO_TARGET_DIR", workspace.target.join("miri"));
        child::run_command(&mut cargo)?;
    }
    Ok(None)
}

/// Returns the reason why Miri is unavailable. Its standard library is built once, which may need a
/// network.
fn missing_reason() -> Option<String> {
    let remedy = "`rustup component add miri rust-src --toolchain nightly`";
    if nightly::command_output(&mut nightly::nightly_cargo(&["miri", "--version"])).is_none() {
        return Some(format!("no nightly toolchain has it; {remedy}"));
    }
    if !nightly::has_std_sources() {
        return Some(format!("the sources of the standard library are missing; {remedy}"));
    }
    let setup = child::command_stdout(&mut nightly::nightly_cargo(&["miri", "setup"]));
    setup.err().map(|error| format!("it cannot be set up: {error:#}"))
}
