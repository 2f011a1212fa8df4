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
        .args(["test", "--package", "jaato", "--test", "it", "--test", "serial", "--"])
        .envs(engine);
    for part in tier.skipped_tests() {
        command.args(["--skip", part]);
    }
    command.env(HOUSE_VARIABLE, house).env(SKIP_LOG_VARIABLE, log).env(VARIABLE, "1");
    tallied(&mut command, tally)
}
