//! The screen, the shells, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod random_streams;
mod conformance;
mod differential;
mod screen;
mod shells;
