//! `cargo xtask`: the chores of this workspace.
fn main() {}
