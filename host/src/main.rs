//! The `jaato` binary.
fn main() {}
