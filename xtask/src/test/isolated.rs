//! Runs the tests of the binary again with every plugin in a worker, even trusted plugins that need
//! none, because the guarantees for plugins inside jaato hold for workers too.

/// If this variable is set, every test house isolates all plugins.
pub const VARIABLE: &str = "JAATO_TEST_ISOLATED";

/// Parts of the names of tests that do not run again: they choose where plugins run, print it, or
/// are about variables, which a worker does not get.
pub const LEFT_OUT: [&str; 22] = [
    "a_file_with_comments_and_keys_",
    // Known to hang: a request of a plugin in a worker after its own tool returned objects.
    "a_model_beside_sees_the_objects_",
    "a_plugin_is_shown",
    "a_server_over_http_gives_its_tools_gets_its_key_",
    "a_shipped_file_that_others_can_write_to_",
    "a_variable_reaches_a_server_",
    "a_workspace_plugin_needs_both_steps",
    "bad_plugins::",
    "config::",
    "hostile::",
    "much_and_binary_output_is_kept_",
    "names::",
    "plugin_in_c::",
    "plugins_are_listed",
    "reload::",
    "reload_embedded::",
    "trust_plugin::",
    "trust_that_another_user_wrote_",
    "unruly::",
    "variables_are_put_in_",
    "what_is_said_while_a_tool_runs_joins_",
    "workers::",
];
