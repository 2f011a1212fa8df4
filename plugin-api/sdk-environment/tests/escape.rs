//! Attempts to get out of the allowed folders, each with each operation: as whoever runs the tests,
//! and as an ordinary user. Nothing outside is read, written, listed, made or deleted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "escape/fuzz.rs"]
mod fuzz;
#[path = "escape/operations.rs"]
mod operations;
#[path = "escape/paths.rs"]
mod paths;
#[path = "escape/races.rs"]
mod races;
#[path = "escape/single.rs"]
mod single;
#[allow(dead_code)]
mod support;
#[path = "escape/trap.rs"]
mod trap;

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    support::run_again_as_nobody(12);
}
