//! The nightly toolchain of rustup, for features that the pinned compiler lacks.

use std::path::Path;
use std::process::{Command, Stdio};

/// Returns a command for nightly's cargo. Uses rustup, because this run uses another toolchain.
pub fn nightly_cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    // These variables name the toolchain of this run.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command
}

/// Returns true if the toolchain has the sources of the standard library.
pub fn has_std_sources() -> bool {
    let mut rustc = Command::new("rustup");
    rustc.args(["run", "nightly", "rustc", "--print", "sysroot"]).env("RUSTUP_AUTO_INSTALL", "0");
    let sysroot = command_output(&mut rustc).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir()
}

/// Returns the output of a program, or `None` if it is missing or fails.
pub fn command_output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
