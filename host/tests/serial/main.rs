//! Tests of the real binary that go by the clock or load the machine: one after the other, with
//! nothing beside them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clock;
mod growing;
mod large_histories;
mod pipes;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod unruly;
