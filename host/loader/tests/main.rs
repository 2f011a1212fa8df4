//! Tests opened and called plugins: good ones, bad ones, and those of other versions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod blame;
mod c_entry;
mod calls;
mod cancel;
#[path = "compatibility/main.rs"]
mod compatibility;
#[path = "../../tests/support/moon.rs"]
mod moon;
mod open;
mod support;
mod unusual_plugins;
