//! The plugin on a fake host, against the service as it was documented.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod plugin;
