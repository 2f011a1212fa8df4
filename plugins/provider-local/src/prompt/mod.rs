//! Writes a request as the tokens that the model was trained on.
//!
//! The order is system text, tools by name, examples, history. The constant part comes first, so
//! that its state can be kept. The prompt contains neither the time nor the location.

mod examples;
mod render;
mod result;
mod tools;

pub use examples::{SHELL, example_answers};
pub use render::{ExampleExchanges, TokenPrompt, render_prompt};
pub use result::{FAILURES_MAX, RESULT_TOKENS_MAX, is_failed_result};
pub use tools::shown_tools;
