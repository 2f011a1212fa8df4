//! Makes every call that the model writes a valid one: what may come next, by the tools' schemas.

mod call;
mod matcher;

pub use call::{CallFormat, FENCE, call_text, spaced_json};
pub use matcher::{CallGrammar, CallMatcher};
