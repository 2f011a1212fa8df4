//! Checks the requirements for every plugin, in the same way as a host.
#![allow(clippy::unwrap_used, clippy::expect_used)]

jaato_plugin_testkit::conformance!(template_name: template-kind);
