//! Tests the store of big files and its downloads.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fetch;
mod processes;
mod store;
mod support;
mod wheels;
