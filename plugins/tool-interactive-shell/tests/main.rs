//! The screen, the shells and what every tool plugin must do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod any_stream;
mod conformance;
mod differential;
mod screen;
mod shells;
