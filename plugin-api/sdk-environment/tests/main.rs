//! Tests of confined files, with paths that stay inside and paths that try to leave.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod escape;
mod files;
#[path = "../../testkit/src/skip.rs"]
mod skip;
mod support;
