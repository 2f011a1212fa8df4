//! Runs the boundary's own crossings under Miri, where a nightly toolchain has it: what crosses is
//! `unsafe` that the compiler does not check.

use anyhow::Result;

use crate::child;
use crate::nightly;
use crate::workspace::Workspace;

/// Both models of what pointers may do.
const MODELS: [&str; 2] = ["", "-Zmiri-tree-borrows"];

/// Looks, or gives a line with why it does not.
pub fn look(workspace: &Workspace) -> Result<Option<String>> {
    if let Some(reason) = missing() {
        return Ok(Some(format!("Miri, which looks at what crosses the boundary: {reason}")));
    }
    for model in MODELS {
        let words = ["miri", "test", "--package", "jaato-plugin-api", "--test", "it", "crossing"];
        let mut cargo = nightly::cargo(&words);
        cargo.current_dir(&workspace.root).env("MIRIFLAGS", model);
        cargo.env("CARGO_TARGET_DIR", workspace.target.join("miri"));
        child::run(&mut cargo)?;
    }
    Ok(None)
}

/// Why it cannot look. The standard library is built for it once, which may need a network.
fn missing() -> Option<String> {
    let remedy = "`rustup component add miri rust-src --toolchain nightly`";
    if nightly::said(&mut nightly::cargo(&["miri", "--version"])).is_none() {
        return Some(format!("no nightly toolchain has it; {remedy}"));
    }
    if !nightly::has_sources() {
        return Some(format!("the sources of the standard library are not there; {remedy}"));
    }
    let setup = child::output(&mut nightly::cargo(&["miri", "setup"]));
    setup.err().map(|error| format!("it cannot be set up: {error:#}"))
}
