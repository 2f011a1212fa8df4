//! Tests that load the machine for minutes: the examples are built, and a real model answers.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "authors/main.rs"]
mod authors;
mod real_model;
mod support;
mod whole_tasks;
