//! OpenAI's Responses API. It adds to chat completions above all reasoning that goes back to the
//! server.
//!
//! Pure. `request` writes a request, with `input` for the history as items, `content` for their
//! text and media, and `settings` for the options and tools. `reply` reads a stream, and `items`
//! converts the items of an answer to parts and keeps their other fields. `usage` reads the token
//! counts, `report` converts an error inside an answer, and `habits` adapts requests after a
//! refusal.
//!
//! The server stores nothing (`store` is false). A request contains the whole history, with the
//! items of earlier answers in their order and unchanged except for their ids, which the server
//! would not find again.

mod content;
mod input;
mod items;
mod reply;
mod report;
mod request;
mod request_style;
mod settings;
mod usage;

pub use reply::ResponsesReply;
pub use request::{ResponsesRequestSettings, reasoning_marks, write_request_body};
pub use request_style::{ResponsesRequestChange, ResponsesRequestStyle, requested_change};
pub(crate) use settings::list_unsupported_options;
