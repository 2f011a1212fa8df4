//! The file tools over the files of a fake host, and what every tool plugin must do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod changing;
mod conformance;
mod large;
mod multi;
mod reading;
mod replacing;
mod support;
mod undoing;
