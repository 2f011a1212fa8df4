//! Tests of the real binary that depend on the clock or load the machine. They run one after the
//! other, with no other tests at the same time.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clock;
mod growing_file;
mod large_histories;
mod pipes;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod unruly_plugins;
