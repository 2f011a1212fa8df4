//! `cargo xtask`: the chores of this workspace.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::chores::run_chore()
}
