//! Tests of the shared code of provider plugins: answers, streams, fragments, failures.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod answer;
mod chat;
mod failure;
mod fragments;
mod made;
mod sse;
