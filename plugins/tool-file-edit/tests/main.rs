//! The file tools with files of a fake host, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod changing;
mod conformance;
mod large;
mod multi;
mod patching;
mod reading;
mod replacing;
mod support;
mod undoing;
