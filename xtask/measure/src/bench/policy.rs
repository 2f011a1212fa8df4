//! Measures how long decisions about calls take, with many rules and a long command line, how many
//! everyday commands need a prompt, and how many lines bypass rules.

use anyhow::Result;

use super::BenchmarkOutcome;
use super::table::{BenchmarkFigure, FigureTarget};
use super::yardstick::parse_figure;
use xtask::child;
use xtask::workspace::CargoWorkspace;

/// The longest decision over 500 rules and a command line of 4 KiB, short enough not to be noticed.
const DECISION_MS_MAX: f64 = 5.0;

/// The maximum share of everyday read-only commands that need a prompt, in percent.
const ASKED_PERCENT_MAX: f64 = 5.0;

/// Measures decisions about three command lines of 4 KiB, and about both corpora.
pub fn measure_policy(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let mut command = child::cargo_command(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-policy"]);
    command.args(["--example", "policy_bench"]);
    let line = child::command_stdout(&mut command)?;
    let row = |name: &str, key: &str| -> Result<BenchmarkFigure> {
        let ms = parse_figure(&line, key)? / 1e3;
        Ok(BenchmarkFigure::new(name, ms, "ms", FigureTarget::AtMost(DECISION_MS_MAX)))
    };
    let percent = |kind: &str, target: FigureTarget| -> Result<BenchmarkFigure> {
        let name = format!("policy: everyday commands that are asked, {kind}");
        let value = parse_figure(&line, &format!("{kind}_asked_percent"))?;
        Ok(BenchmarkFigure::new(&name, value, "%", target))
    };
    let bypasses = parse_figure(&line, "bypasses")?;
    let name = format!("policy: lines of {bypasses} that get round rules");
    let passing = parse_figure(&line, "bypasses_that_pass")?;
    Ok(BenchmarkOutcome::Figures(vec![
        percent("reads", FigureTarget::AtMost(ASKED_PERCENT_MAX))?,
        percent("outside", FigureTarget::AtLeast(100.0))?,
        percent("unclear", FigureTarget::AtLeast(100.0))?,
        percent("writes", FigureTarget::AtLeast(100.0))?,
        percent("runs", FigureTarget::AtLeast(100.0))?,
        percent("network", FigureTarget::AtLeast(100.0))?,
        BenchmarkFigure::new(&name, passing, "", FigureTarget::AtMost(0.0)),
        row("policy: 500 rules, 4 KiB of plain commands", "plain_us")?,
        row("policy: 500 rules, 4 KiB of loops and substitutions", "tangled_us")?,
        row("policy: 500 rules, one word of 4 KiB", "long_us")?,
    ]))
}
