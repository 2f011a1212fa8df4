//! Tests with a real engine: containers, commands, terminals and errors.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod brought;
mod commands;
mod conformance;
mod endings;
mod errors;
mod files;
mod full;
mod left_behind;
mod made;
mod support;
mod terminals;
