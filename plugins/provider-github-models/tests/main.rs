//! Tests the plugin on a fake host that follows the documentation of the service.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod plugin;
