//! The shared parts of gc plugins.
//!
//! A plan is made in a [`PlanDraft`]: first it shortens results, then it removes turns. When it is
//! finished, it carries over what the model must not lose from the removed messages: the user's own
//! words, and a line for each finished call. [`summarize_turns`] asks a model for a summary of
//! them.
//!
//! The plugins decide which turns to shorten, to remove and to summarise, and in which order.
#![forbid(unsafe_code)]

mod block;
mod calls;
mod draft;
mod edits;
mod facts;
mod lines;
mod settings;
mod statements;
mod summary;
mod transcript;
mod turns;

pub use draft::PlanDraft;
pub use settings::PlanSettings;
pub use summary::{SummaryAccess, SummaryFailure, summarize_turns};
