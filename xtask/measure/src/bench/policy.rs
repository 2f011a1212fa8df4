//! What it costs to decide about a call, with many rules and a long command line.

use anyhow::Result;

use super::Outcome;
use super::table::{Figure, Target};
use super::yardstick::figure;
use xtask::child;
use xtask::workspace::Workspace;

/// A decision over 500 rules and a command line of 4 KiB: nobody waits for that.
const DECISION_MS_MAX: f64 = 5.0;

/// Measures decisions about three command lines of 4 KiB.
pub fn policy(workspace: &Workspace) -> Result<Outcome> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-policy"]);
    command.args(["--example", "policy_bench"]);
    let line = child::output(&mut command)?;
    let row = |name: &str, key: &str| -> Result<Figure> {
        let ms = figure(&line, key)? / 1e3;
        Ok(Figure::new(name, ms, "ms", Target::AtMost(DECISION_MS_MAX)))
    };
    Ok(Outcome::Figures(vec![
        row("policy: 500 rules, 4 KiB of plain commands", "plain_us")?,
        row("policy: 500 rules, 4 KiB of loops and substitutions", "tangled_us")?,
        row("policy: 500 rules, one word of 4 KiB", "long_us")?,
    ]))
}
