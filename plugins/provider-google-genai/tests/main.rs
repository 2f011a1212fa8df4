//! Tests the mapping alone, and the plugin on a fake host: with scripted answers and with a strict
//! fake of the vendor.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad_answers;
mod complete_answers;
mod count;
mod credentials;
mod endings;
mod history;
#[path = "../../../plugin-api/sdk-provider/tests/made.rs"]
mod made;
mod plugin;
mod reply;
mod request;
mod settings;
mod vendor;
mod vendor_bad;
mod vertex;
