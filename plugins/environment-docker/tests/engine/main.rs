//! Tests with a real engine: containers, commands, terminals and errors.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod conformance;
mod endings;
mod errors;
mod files;
mod full;
mod left_behind;
mod session_containers;
mod support;
mod terminals;
mod user_containers;
