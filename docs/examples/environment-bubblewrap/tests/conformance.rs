//! What every plugin and every execution environment must do, asked of this one as a host asks it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use jaato_plugin_sdk::prelude::json;

jaato_plugin_testkit::conformance!(environment_bubblewrap: environment; |suite| {
    // So short that the suite waits for it.
    let suite = suite.with_host(|host| host.with_config(json!({ "shell_timeout": 0.4 })));
    // Without a sandbox, all that can be asked of it is that it says so.
    if support::has_sandbox() { suite } else { suite.harmless() }
});
