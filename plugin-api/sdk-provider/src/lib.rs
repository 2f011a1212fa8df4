//! What provider plugins share: exchanges, server-sent events, error classes, tool calls that come
//! in fragments.
//!
//! For the plugin that maps a vendor's protocol to requests and completions. Not the boundary (that
//! is `jaato-plugin-sdk`) and no network: bytes come from the host's `http` service.
//!
//! - [`exchange`]: sends a request and lets a [`Reader`] read the answer, whatever its form;
//! - [`shown`]: images and files that a request shows, fetched from the session's blob store;
//! - [`Events`]: bytes in, cut anywhere, events out;
//! - [`Lines`]: bytes in, cut anywhere, lines out, for servers that answer in lines of JSON;
//! - [`failure`]: what a status, a body and an exchange that broke mean, with kind and retry class;
//! - [`Answer`]: collects an answer's pieces, emits them as they come, and gives the completion;
//! - [`chat`]: chat completions, which most servers speak, as a mapping;
//! - [`limits`]: what a server says of its limits beside an answer;
//! - [`Fragments`]: tool calls whose name and arguments come piece by piece;
//! - [`Protocol`]: which protocol an event is of, to tell a base URL that leads elsewhere;
//! - [`WholeCharacters`]: joins characters of which each half comes in another event;
//! - [`yield_now`]: lets others run while an answer comes faster than it is read.
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
