//! Runs the conformance tests for plugins and for execution environments.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use jaato_plugin_sdk::prelude::json;

jaato_plugin_testkit::conformance!(environment_bubblewrap: environment; |suite| {
    // Short enough for the suite to wait for it.
    let suite = suite.with_host(|host| host.with_config(json!({ "shell_timeout": 0.4 })));
    // Without a sandbox, the environment can only report that.
    if support::has_sandbox() { suite } else { suite.with_harmless_examples() }
});
