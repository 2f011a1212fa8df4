//! What provider plugins share: server-sent events, error classes, tool calls that come in
//! fragments.
//!
//! For the plugin that maps a vendor's protocol to requests and completions. Not the boundary (that
//! is `jaato-plugin-sdk`) and no network: bytes come from the host's `http` service.
//!
//! - [`Events`]: bytes in, cut anywhere, events out;
//! - [`failure`]: what a status, a body and an exchange that broke mean, with kind and retry class;
//! - [`Answer`]: collects an answer's pieces, emits them as they come, and gives the completion;
//! - [`Fragments`]: tool calls whose name and arguments come piece by piece.
#![forbid(unsafe_code)]

mod answer;
pub mod failure;
mod fragments;
mod sse;

pub use answer::Answer;
pub use fragments::{ARGUMENTS_BYTES_MAX, CALLS_MAX, Fragment, Fragments};
pub use sse::{EVENT_BYTES_MAX, Events, ServerEvent};
