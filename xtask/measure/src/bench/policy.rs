//! Measures how long decisions about calls take, with many rules and a long command line, how many
//! everyday commands need a prompt, and how many lines bypass rules.

use anyhow::Result;

use super::Outcome;
use super::table::{Figure, Target};
use super::yardstick::figure;
use xtask::child;
use xtask::workspace::Workspace;

/// The longest decision over 500 rules and a command line of 4 KiB, short enough not to be noticed.
const DECISION_MS_MAX: f64 = 5.0;

/// The most everyday read-only commands that need a prompt, in percent.
const ASKED_PERCENT_MAX: f64 = 5.0;

/// Measures decisions about three command lines of 4 KiB, and about both corpora.
pub fn policy(workspace: &Workspace) -> Result<Outcome> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-policy"]);
    command.args(["--example", "policy_bench"]);
    let line = child::output(&mut command)?;
    let row = |name: &str, key: &str| -> Result<Figure> {
        let ms = figure(&line, key)? / 1e3;
        Ok(Figure::new(name, ms, "ms", Target::AtMost(DECISION_MS_MAX)))
    };
    let percent = |kind: &str, target: Target| -> Result<Figure> {
        let name = format!("policy: everyday commands that are asked, {kind}");
        let value = figure(&line, &format!("{kind}_asked_percent"))?;
        Ok(Figure::new(&name, value, "%", target))
    };
    let bypasses = figure(&line, "bypasses")?;
    let name = format!("policy: lines of {bypasses} that get round rules");
    let passing = figure(&line, "bypasses_that_pass")?;
    Ok(Outcome::Figures(vec![
        percent("reads", Target::AtMost(ASKED_PERCENT_MAX))?,
        percent("outside", Target::AtLeast(100.0))?,
        percent("unclear", Target::AtLeast(100.0))?,
        percent("writes", Target::AtLeast(100.0))?,
        percent("runs", Target::AtLeast(100.0))?,
        percent("network", Target::AtLeast(100.0))?,
        Figure::new(&name, passing, "", Target::AtMost(0.0)),
        row("policy: 500 rules, 4 KiB of plain commands", "plain_us")?,
        row("policy: 500 rules, 4 KiB of loops and substitutions", "tangled_us")?,
        row("policy: 500 rules, one word of 4 KiB", "long_us")?,
    ]))
}
