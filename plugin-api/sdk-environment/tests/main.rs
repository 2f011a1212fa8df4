//! Confined files: for those who stay inside, and for those who try to get out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod escape;
mod files;
#[path = "../../testkit/src/skip.rs"]
mod skip;
mod support;
