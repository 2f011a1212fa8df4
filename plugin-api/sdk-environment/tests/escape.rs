//! Attempts to leave the allowed folders with each operation, as the user that runs the tests and
//! as an ordinary user. No attempt may read, write, list, create or delete anything outside.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fuzz;
mod operations;
mod paths;
mod races;
mod single;
mod trap;

#[test]
fn escape_tests_pass_for_an_ordinary_user() {
    crate::support::run_again_as_nobody(12);
}
