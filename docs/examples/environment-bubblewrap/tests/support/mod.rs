//! Whether there can be a sandbox here.

use std::process::Command;

/// Tells whether `bwrap` is there and may do what it must.
pub fn has_sandbox() -> bool {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"]);
    let tried = bwrap.args(["--unshare-ipc", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}
