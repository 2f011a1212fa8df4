//! Runs the conformance suite on the plugin without any server.

use jaato_plugin_sdk::serde_json::json;

// The home is a file, so the test does not read this machine's `.mcp.json`.
jaato_plugin_testkit::conformance!(tool_mcp: tool; |suite| suite.with_host(|host| {
    host.with_config(json!({ "home": std::env::current_exe().unwrap() }))
}));
