//! Chat completions: the protocol of OpenAI that most servers support, as a mapping that provider
//! plugins share.
//!
//! Pure. [`request_body`] writes a request, [`ChatReply`] reads a streamed or complete answer, and
//! [`requested_change`] and [`refusal_hint`] interpret refusals. The differences between servers
//! are data: [`ChatServerQuirks`] are known before the first request, and [`ChatRequestStyle`] are
//! learned from refusals. The plugin knows the server and how to reach it.
//!
//! `request` builds a body (`settings` its options, `messages` its history, `content` the content
//! of a message, `ids` valid ids and names). `reply` collects an answer (`reader` in any form,
//! `chunk` the fields of a chunk, `details` reasoning to send back, `usage` the tokens, `reason`
//! the stop reason, `think` reasoning in tags, `wrapped` calls inside a call).

mod chunk;
mod content;
mod details;
mod ids;
mod messages;
mod quirks;
mod reader;
mod reason;
mod refusal;
mod reply;
mod request;
mod request_style;
mod schema;
mod settings;
mod think;
mod usage;
mod wrapped_calls;

pub use content::{BLOB_BYTES_MAX, FILE_NAME, data_url, wanted_blobs};
pub use ids::{CallIdFormat, to_valid_name};
pub use messages::{INVALID_ARGUMENTS, attachment_heading};
pub use quirks::{ChatServerQuirks, is_in_model_family};
pub use reason::{finish_reason as reason_of_word, is_reason_given};
pub use refusal::{CHECK_URL, ChatRequestChange, refusal_hint, requested_change};
pub use reply::{ChatReply, REASONING};
pub use request::request_body;
pub use request_style::{
    ChatRequestStyle, ChatSchemaStyle, OutcomePlacement, ReasoningReplay,
    has_content_after_any_results, has_content_after_results,
};
pub use schema::is_strict;
pub use settings::{
    OPTIONS, SCHEMA_NAME, decimal_json, effort_name, shorten_cache_key, tool_choice_name,
};
pub use think::{ThinkPiece, ThinkTags};
pub use usage::{micro_usd, output_tokens};
pub use wrapped_calls::unwrap_calls;
