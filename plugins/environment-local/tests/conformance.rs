//! What every plugin and every execution environment must do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

jaato_plugin_testkit::conformance!(environment_local: environment);
