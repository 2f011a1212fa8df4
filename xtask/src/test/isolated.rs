//! Runs the tests of the binary once more with every plugin in a worker, also those that are
//! trusted and ask for none: what holds inside jaato holds there too.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;

use super::items::Tier;
use super::tally::Tally;
use super::{HOUSE_VARIABLE, SKIP_LOG_VARIABLE, tallied};
use crate::child;

/// Set, it makes every house of the tests isolate all plugins.
const VARIABLE: &str = "JAATO_TEST_ISOLATED";

/// What is left out: tests that say themselves where plugins run, those that print where, and those
/// of variables, of which a worker gets none.
const LEFT_OUT: [&str; 18] = [
    "a_plugin_is_shown",
    "a_server_over_http_gives_its_tools_gets_its_key_",
    "a_shipped_file_that_others_can_write_to_",
    "a_workspace_plugin_needs_both_steps",
    "bad_plugins::",
    "config::",
    "hostile::",
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

/// Runs them.
pub fn isolated_tests(
    root: &Path,
    house: &Path,
    log: &Path,
    tier: &Tier,
    engine: Option<(&str, OsString)>,
    tally: &mut Tally,
) -> Result<()> {
    let mut command = child::cargo(root);
    command
        .args([
            "test",
            "--package",
            "jaato",
            "--test",
            "it",
            "--test",
            "serial",
            "--no-fail-fast",
            "--",
        ])
        .envs(engine);
    for part in tier.skipped_tests().chain(LEFT_OUT) {
        command.args(["--skip", part]);
    }
    command.env(HOUSE_VARIABLE, house).env(SKIP_LOG_VARIABLE, log).env(VARIABLE, "1");
    tallied(&mut command, tally)
}
