//! Constrains the model's calls to the tools' schemas, so that each call is valid.

mod call;
mod matcher;

pub use call::{CallFormat, FENCE, call_text, spaced_json};
pub use matcher::{CallGrammar, CallMatcher};
