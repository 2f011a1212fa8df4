//! Runs the conformance tests for plugins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

jaato_plugin_testkit::conformance!(tool_subagent: tool);
