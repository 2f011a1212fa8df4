//! Misbehaving servers, logins, and the conformance suite.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod conformance;
mod hostile;
mod http;
mod logins;
mod programs;
mod schemas;
mod server_uptime;
mod support;
