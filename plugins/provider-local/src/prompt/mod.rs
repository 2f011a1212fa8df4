//! Writes a request down as the tokens that the model was trained on.
//!
//! Order: system text, tools by name, example turns, history. What stays the same comes first, so
//! that its state can be kept; nothing here knows the time or the place.

mod examples;
mod render;

pub use render::{Prompt, render};
