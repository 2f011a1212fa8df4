//! OpenAI's Responses: what is newer than chat completions, above all reasoning that goes back.
//!
//! Pure. `request` writes a request down (`input` its history as items, `content` what they say and
//! show, `tools_and_settings` the rest), `reply` reads what is streamed, `items` turns the items of
//! an answer into parts and keeps what else they say, `usage` what it cost, `report` what an error
//! in an answer means, `habits` what a refusal teaches.
//!
//! Nothing is kept at the server (`store` is false): a request holds everything, the items of
//! earlier answers in their order and as they came, but for their ids, which the server would not
//! find again.

mod content;
mod habits;
mod input;
mod items;
mod reply;
mod report;
mod request;
mod settings;
mod usage;

pub use habits::{Habits, Wish, wish};
pub use reply::Reply;
pub use request::{Asking, body, reasoning_marks};
pub(crate) use settings::not_taken;
