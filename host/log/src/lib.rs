//! The host's log, and functions that make text safe to show.
//!
//! [`Log`] is a file in the user's cache that every crate of the host writes to. It has no level
//! setting and prints nothing. [`visible`] escapes characters that control a terminal or hide text.
//! Untrusted text goes through it before it is shown or logged.

mod log;
pub mod visible;

pub use log::{LOG_BYTES_MAX, Log, SOURCE_BYTES_MAX, SOURCE_WINDOW};
