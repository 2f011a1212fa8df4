//! The shared code of provider plugins: exchanges, server-sent events, error classes, and tool
//! calls that arrive in fragments.
//!
//! Use it in a plugin that maps a vendor's protocol to requests and completions. This crate is not
//! the boundary (that is `jaato-plugin-sdk`) and has no network access: bytes come from the host's
//! `http` service.
//!
//! - [`exchange`]: sends a request and lets a [`Reader`] read the answer in any form;
//! - [`shown`]: images and files for a request, fetched from the session's blob store;
//! - [`Events`]: turns bytes, split anywhere, into events;
//! - [`Lines`]: turns bytes, split anywhere, into lines, for servers that answer in lines of JSON;
//! - [`failure`]: converts a status, a body or a broken exchange to an error with kind and retry
//!   class;
//! - [`Answer`]: collects an answer's pieces, emits them as they arrive, and returns the
//!   completion;
//! - [`chat`]: chat completions, which most servers support, as a mapping;
//! - [`limits`]: reads the rate limits that a server reports with an answer;
//! - [`Fragments`]: assembles tool calls whose name and arguments arrive in pieces;
//! - [`Protocol`]: detects the protocol of an event, to recognize a wrong base URL;
//! - [`WholeCharacters`]: joins characters whose halves arrive in different events;
//! - [`yield_now`]: lets other tasks run while an answer arrives faster than it is read.
#![forbid(unsafe_code)]

mod answer;
pub mod chat;
pub mod exchange;
pub mod failure;
mod fragments;
mod halves;
pub mod limits;
mod lines;
mod protocol;
mod reader;
pub mod shown;
mod sse;
mod stream;
mod yielding;

pub use answer::{Answer, EVENTS_MAX, PARTS_MAX};
pub use fragments::{ARGUMENTS_BYTES_MAX, CALLS_MAX, Fragment, Fragments};
pub use halves::{WholeCharacters, read_arguments};
pub use lines::Lines;
pub use protocol::Protocol;
pub use reader::Reader;
pub use sse::{EVENT_BYTES_MAX, Events, ServerEvent};
pub use stream::unmarked;
pub use yielding::yield_now;
