//! Attempts to get out of the allowed folders, each with each operation: as whoever runs the tests,
//! and as an ordinary user. Nothing outside is read, written, listed, made or deleted.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fuzz;
mod operations;
mod paths;
mod races;
mod single;
mod trap;

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    crate::support::run_again_as_nobody(12);
}
