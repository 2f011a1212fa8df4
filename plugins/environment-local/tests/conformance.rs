//! Runs the conformance suites for plugins and execution environments.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::json;

// Short enough that the suite can wait for it.
jaato_plugin_testkit::conformance!(environment_local: environment; |suite| {
    suite.with_host(|host| host.with_config(json!({ "shell_timeout": 0.4 })))
});
