//! The chores as people run them, and what `dist` packs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "archive/main.rs"]
mod archive;
mod chores;
mod public_api;
