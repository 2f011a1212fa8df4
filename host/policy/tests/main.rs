//! Decisions, rules in files, and command lines.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod corpus;
mod decisions;
mod everyday;
mod files;
#[cfg(unix)]
mod fuzz;
#[path = "../../../plugin-api/testkit/src/skip.rs"]
mod skip;
mod touches;
