//! Chat completions: the protocol of OpenAI that most servers speak, as a mapping that provider
//! plugins share.
//!
//! Pure. [`body`] writes a request down, [`Reply`] reads what is streamed or comes at once,
//! [`wish`] and [`hint`] read refusals. What a server wants differently from most is data:
//! [`Quirks`], known before the first request, and [`Habits`], which a refusal teaches. Whose
//! server it is and how it is reached is the plugin's.
//!
//! `request` puts a body together (`settings` its options, `messages` its history, `content` what a
//! message says and shows, `ids` ids and names as servers take them). `reply` collects an answer
//! (`reader` in any form, `chunk` where servers put what they say, `details` reasoning that goes
//! back, `usage` what it cost, `reason` why it ended, `think` reasoning in tags, `wrapped` calls
//! inside a call).

mod chunk;
mod content;
mod details;
mod habits;
mod ids;
mod messages;
mod quirks;
mod reader;
mod reason;
mod refusal;
mod reply;
mod request;
mod schema;
mod settings;
mod think;
mod usage;
mod wrapped;

pub use content::{BLOB_BYTES_MAX, FILE_NAME, data_url, wanted_blobs};
pub use habits::{Habits, Outcomes, ReasoningSent, Schemas, says_behind, tells_outcomes};
pub use ids::{CallIds, plain_name};
pub use messages::{INVALID_ARGUMENTS, whose};
pub use quirks::{Quirks, is_of_family};
pub use reason::{is_given as is_reason_given, of_word as reason_of_word};
pub use refusal::{CHECK_URL, Wish, hint, wish};
pub use reply::{REASONING, Reply};
pub use request::body;
pub use schema::is_strict;
pub use settings::{OPTIONS, SCHEMA_NAME, begin_of_key, choice_word, decimal, effort_word};
pub use think::{Piece, ThinkTags};
pub use usage::{micro_usd, output_tokens};
pub use wrapped::unwrapped;
