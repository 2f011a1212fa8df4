//! The shared code of provider plugins: exchanges, server-sent events, error classes, and tool
//! calls that arrive in fragments.
//!
//! Use it in a plugin that maps a vendor's protocol to requests and completions. This crate is not
//! the boundary (that is `jaato-plugin-sdk`) and has no network access: bytes come from the host's
//! `http` service.
//!
//! - [`exchange`]: sends a request and lets a [`AnswerReader`] read the answer in any form;
//! - [`shown`]: images and files for a request, fetched from the session's blob store;
//! - [`ServerEventReader`]: turns bytes, split anywhere, into events;
//! - [`StreamLineSplitter`]: turns bytes, split anywhere, into lines, for servers that answer in
//!   lines of JSON;
//! - [`failure`]: converts a status, a body or a broken exchange to an error with kind and retry
//!   class;
//! - [`StreamingAnswer`]: collects an answer's pieces, emits them as they arrive, and returns the
//!   completion;
//! - [`chat`]: chat completions, which most servers support, as a mapping;
//! - [`limits`]: reads the rate limits that a server reports with an answer;
//! - [`CallFragments`]: assembles tool calls whose name and arguments arrive in pieces;
//! - [`ModelProtocol`]: detects the protocol of an event, to recognize a wrong base URL;
//! - [`SurrogateRepair`]: joins characters whose halves arrive in different events;
//! - [`yield_now`]: lets other tasks run while an answer arrives faster than it is read.
#![forbid(unsafe_code)]

mod answer;
pub mod chat;
mod cooperative;
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

pub use answer::{EVENTS_MAX, PARTS_MAX, StreamingAnswer};
pub use cooperative::yield_now;
pub use fragments::{ARGUMENTS_BYTES_MAX, CALLS_MAX, CallFragment, CallFragments};
pub use halves::{SurrogateRepair, read_arguments};
pub use lines::StreamLineSplitter;
pub use protocol::ModelProtocol;
pub use reader::AnswerReader;
pub use sse::{EVENT_BYTES_MAX, ServerEvent, ServerEventReader};
pub use stream::strip_byte_order_mark;
