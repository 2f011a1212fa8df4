//! The store of big files, and what is fetched into it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fetch;
mod processes;
mod store;
mod support;
mod wheels;
