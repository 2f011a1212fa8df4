//! What every plugin must do, asked of this one as a host asks it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

jaato_plugin_testkit::conformance!(tool_turnstile: tool);
