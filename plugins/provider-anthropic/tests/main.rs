//! The mapping as it stands, and the plugin on a fake host: against answers of a test, and against
//! a strict fake of the vendor.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bad;
mod count;
mod credentials;
mod history;
#[path = "../../../plugin-api/sdk-provider/tests/made.rs"]
mod made;
mod plugin;
mod reply;
mod request;
mod settings;
mod vendor;
mod vendor_cache;
mod whole;
