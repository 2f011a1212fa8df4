//! Tests the plugin on a fake host: with scripted answers and with a strict fake of the vendor.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod azure;
mod complete_answers;
mod content;
mod dialects;
mod endings;
#[path = "../../../plugin-api/sdk-provider/tests/made.rs"]
mod made;
mod plugin;
mod responses;
mod responses_request;
mod responses_whole;
mod vendor;
mod vendor_bad;
mod window;
