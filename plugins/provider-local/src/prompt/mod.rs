//! Writes a request down as the tokens that the model was trained on.
//!
//! Order: system text, tools by name, examples, history. What stays the same comes first, so
//! that its state can be kept; nothing here knows the time or the place.

mod examples;
mod render;
mod result;
mod tools;

pub use examples::{SHELL, example_answers};
pub use render::{Examples, Prompt, render};
pub use result::{FAILURES_MAX, RESULT_TOKENS_MAX, failed};
pub use tools::shown_tools;
