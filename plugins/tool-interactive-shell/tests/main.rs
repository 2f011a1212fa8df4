//! The screen, the shells, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conformance;
mod differential;
mod random_streams;
mod screen;
mod shells;
