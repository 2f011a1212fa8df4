//! Runs the tests of the binary again with every plugin in a worker, even trusted plugins that need
//! none, because the guarantees for plugins inside jaato hold for workers too.

/// If this variable is set, every test house isolates all plugins.
pub const VARIABLE: &str = "JAATO_TEST_ISOLATED";

/// Parts of the names of tests that do not run again: they choose where plugins run, print it, or
/// are about variables, which a worker does not get.
pub const LEFT_OUT: [&str; 22] = [
    "mcp_file_with_comments_and_foreign_keys_",
    // Known to hang: a request of a plugin in a worker after its own tool returned objects.
    "model_asked_by_a_plugin_sees_only_",
    "a_plugin_is_shown",
    "http_server_gets_its_headers_offers_its_tools_",
    "a_shipped_file_that_others_can_write_to_",
    "variable_is_sent_to_a_workspace_server_",
    "workspace_plugin_needs_workspace_trust_and_plugin_trust",
    "bad_plugins::",
    "config::",
    "hostile::",
    "long_and_binary_output_is_saved_whole_",
    "names::",
    "plugin_in_c::",
    "plugins_are_listed",
    "reload::",
    "reload_embedded::",
    "trust_plugin::",
    "trust_record_and_plugins_of_another_user_",
    "unruly_plugins::",
    "mcp_entry_variables_are_expanded_",
    "embedded_message_during_a_tool_call_joins_",
    "workers::",
];
