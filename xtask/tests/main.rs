//! Tests of the chores as users run them, and of the content that `dist` packs.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "archive/main.rs"]
mod archive;
mod chores;
mod public_api;
