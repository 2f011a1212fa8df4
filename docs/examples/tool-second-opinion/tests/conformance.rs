//! Runs the conformance tests for plugins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use jaato_plugin_sdk::prelude::*;

jaato_plugin_testkit::conformance!(tool_second_opinion: tool; |suite| suite.with_all_examples().with_host(|host| {
    host.with_config(json!({ "model": "fake/other" }))
        .with_tool("cli_based_tool", |_| Ok(Output::json(json!({ "stdout": "+moon\n", "returncode": 0 }))))
        .with_model(|_| Ok("nothing is wrong".to_owned()))
}));
