//! The plugin without any server is a plugin like any other.

use jaato_plugin_sdk::serde_json::json;

// No home: the machine's own `.mcp.json` is none of a test's, and no file has another below it.
jaato_plugin_testkit::conformance!(tool_mcp: tool; |suite| suite.with_host(|host| {
    host.with_config(json!({ "home": std::env::current_exe().unwrap() }))
}));
