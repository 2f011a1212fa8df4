//! The mapping as it stands, and the plugin on a fake host: against answers of a test, and against
//! a strict fake of the server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad;
mod models;
mod plugin;
mod pull;
mod reply;
mod request;
mod vendor;
