//! Tests the client with servers on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod connections;
mod exchange;
mod redirects;
mod support;
mod web;
