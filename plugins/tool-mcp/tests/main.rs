//! Servers that misbehave, logins to them, and what every tool plugin must do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conformance;
mod hostile;
mod http;
mod keeping;
mod logins;
mod programs;
mod schemas;
mod support;
