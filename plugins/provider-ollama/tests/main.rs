//! Tests the mapping alone, and the plugin on a fake host: with scripted answers and with a strict
//! fake of the server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_servers;
mod models;
mod plugin;
mod pull;
mod reply;
mod request;
mod vendor;
