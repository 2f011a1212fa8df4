//! The nightly toolchain, where rustup has one: for what the pinned compiler cannot do.

use std::path::Path;
use std::process::{Command, Stdio};

/// Cargo of the nightly toolchain. By rustup: the toolchain of this very run is another.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    // What cargo tells those that it runs names the other toolchain.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command.env("RUSTUP_AUTO_INSTALL", "0");
    command
}

/// Whether it has the sources of the standard library.
pub fn has_sources() -> bool {
    let mut rustc = Command::new("rustup");
    rustc.args(["run", "nightly", "rustc", "--print", "sysroot"]).env("RUSTUP_AUTO_INSTALL", "0");
    let sysroot = said(&mut rustc).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir()
}

/// What a program says that may not be there: why not is nobody's business.
pub fn said(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
