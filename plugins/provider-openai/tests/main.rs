//! The plugin on a fake host, and the mapping under it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod content;
mod endings;
mod options;
mod plugin;
mod reply;
mod request;
mod whole;
mod window;
