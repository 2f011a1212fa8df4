//! Checks whether the sandbox works here.

use std::process::Command;

/// Returns true if `bwrap` is installed and has the necessary permissions.
pub fn has_sandbox() -> bool {
    let mut bwrap = Command::new("bwrap");
    bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"]);
    let tried = bwrap.args(["--unshare-ipc", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}
