//! Tests the model in the plugin: its weights, its answers, its thread.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conformance;
mod gguf;
mod grammar;
mod model;
mod options;
mod repeat;
mod support;
mod worker;
