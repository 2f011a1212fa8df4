//! Against a real engine: containers, commands and terminals, and what goes wrong with them.
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
