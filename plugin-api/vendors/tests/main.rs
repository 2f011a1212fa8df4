//! Tests that the fakes refuse what the vendors refuse.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod anthropic;
mod google;
mod ollama;
mod openai;
