//! Runs the conformance tests for plugins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

jaato_plugin_testkit::conformance!(hook_command: hook);
