//! What the files of an environment do for those who stay inside.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "files/change.rs"]
mod change;
#[path = "files/find.rs"]
mod find;
#[path = "files/read.rs"]
mod read;
#[path = "files/streams.rs"]
mod streams;
#[allow(dead_code)]
mod support;
#[path = "files/temporary.rs"]
mod temporary;

#[test]
fn all_of_it_works_for_an_ordinary_user() {
    support::run_again_as_nobody(30);
}
