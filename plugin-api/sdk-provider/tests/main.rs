//! What provider plugins share: streams, fragments, failures.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod failure;
mod fragments;
mod sse;
