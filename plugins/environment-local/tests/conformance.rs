//! What every plugin and every execution environment must do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::json;

// So short that the suite waits for it.
jaato_plugin_testkit::conformance!(environment_local: environment; |suite| {
    suite.with_host(|host| host.with_config(json!({ "shell_timeout": 0.4 })))
});
