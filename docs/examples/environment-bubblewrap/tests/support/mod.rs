//! Whether there can be a sandbox here; where not, one line says what is left out.

use std::io::Write as _;
use std::process::Command;
use std::sync::OnceLock;

/// Tells whether `bwrap` is there and may do what it must.
pub fn has_sandbox() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut bwrap = Command::new("bwrap");
        bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"]);
        let why = match bwrap.args(["--unshare-ipc", "true"]).output() {
            Ok(output) if output.status.success() => return true,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => format!("no bwrap: {error}"),
        };
        let line = format!("SKIPPED: commands in a sandbox: {why}\n");
        // Not by a macro, whose lines the test program keeps to itself.
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        false
    })
}
