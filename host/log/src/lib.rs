//! The host's log, and text made safe to show.
//!
//! [`Log`] is a file in the user's cache that every room of the host writes to; it has no levels to
//! switch and prints nothing. [`visible`] writes out what would drive a terminal or hide: what
//! strangers say goes through it before it is shown or logged.

mod log;
pub mod visible;

pub use log::{LOG_BYTES_MAX, Log, SOURCE_BYTES_MAX, SOURCE_WINDOW};
