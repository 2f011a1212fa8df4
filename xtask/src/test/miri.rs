//! Runs the boundary's own crossings under Miri, where a nightly toolchain has it: what crosses is `unsafe` that
//! the compiler does not check.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::child;
use crate::workspace::Workspace;

/// Both models of what pointers may do.
const MODELS: [&str; 2] = ["", "-Zmiri-tree-borrows"];

/// Looks, or gives a line with why it does not.
pub fn look(workspace: &Workspace) -> Result<Option<String>> {
    if let Some(reason) = missing() {
        return Ok(Some(format!("Miri, which looks at what crosses the boundary: {reason}")));
    }
    for model in MODELS {
        let mut cargo =
            nightly(&["miri", "test", "--package", "jaato-plugin-api", "--test", "crossing"]);
        cargo.current_dir(&workspace.root).env("MIRIFLAGS", model);
        cargo.env("CARGO_TARGET_DIR", workspace.target.join("miri"));
        child::run(&mut cargo)?;
    }
    Ok(None)
}

/// Why it cannot look. The standard library is built for it once, which may need a network.
fn missing() -> Option<String> {
    let remedy = "`rustup component add miri rust-src --toolchain nightly`";
    if said(&mut nightly(&["miri", "--version"])).is_none() {
        return Some(format!("no nightly toolchain has it; {remedy}"));
    }
    let mut rustc = Command::new("rustup");
    rustc.args(["run", "nightly", "rustc", "--print", "sysroot"]).env("RUSTUP_AUTO_INSTALL", "0");
    let sysroot = said(&mut rustc).unwrap_or_default();
    if !Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir() {
        return Some(format!("the sources of the standard library are not there; {remedy}"));
    }
    let setup = child::output(&mut nightly(&["miri", "setup"]));
    setup.err().map(|error| format!("it cannot be set up: {error:#}"))
}

/// What a program says that may not be there: why not is nobody's business.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// By rustup: the toolchain of this very run is another.
fn nightly(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    // What cargo tells those that it runs names the other toolchain.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command
}
