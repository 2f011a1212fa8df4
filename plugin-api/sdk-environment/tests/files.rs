//! Operations on paths that stay inside the allowed folders.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod change;
mod find;
mod limits;
mod read;
mod search;
mod streams;
mod temporary;

#[test]
fn file_tests_pass_for_an_ordinary_user() {
    crate::support::run_again_as_nobody(30);
}
