//! Measures sessions that a program embeds: many that stream at once, and opening one.

use anyhow::Result;

use super::BenchmarkOutcome;
use super::table::{BenchmarkFigure, FigureTarget};
use super::yardstick::parse_figure;
use xtask::child;
use xtask::workspace::CargoWorkspace;

/// The most processor time for 100 sessions with 100 deltas a second each, in cores.
const CORES_MAX: f64 = 1.0;
/// The most memory of that process.
const MIB_MAX: f64 = 150.0;
/// The longest time to open a session.
const OPEN_MS_MAX: f64 = 2.0;

/// Measures the library in a program of its own.
pub fn measure_library(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let mut command = child::cargo_command(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-library"]);
    command.args(["--example", "library_bench"]);
    Ok(BenchmarkOutcome::Figures(parse_library_figures(&child::command_stdout(&mut command)?)?))
}

fn parse_library_figures(line: &str) -> Result<Vec<BenchmarkFigure>> {
    let of = |name: &str| parse_figure(line, name);
    let times = of("cores")? / of("plain_cores")?.max(0.01);
    let row = |name: &str, value: f64, unit, target| {
        BenchmarkFigure::new(&format!("library: {name}"), value, unit, target)
    };
    Ok(vec![
        row("100 streaming sessions", of("cores")?, "cores", FigureTarget::AtMost(CORES_MAX)),
        row("the same, to a plain channel", times, "times", FigureTarget::None),
        row("the same, memory", of("mib")?, "MiB", FigureTarget::AtMost(MIB_MAX)),
        row("opening a session", of("open_ms")?, "ms", FigureTarget::AboutAtMost(OPEN_MS_MAX)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::FigureVerdict;

    #[test]
    fn figures_above_their_targets_are_missed() {
        let line = r#"{"open_ms":2.5,"cores":0.6,"plain_cores":0.2,"mib":160}"#;
        let verdicts: Vec<FigureVerdict> = parse_library_figures(line)
            .unwrap()
            .iter()
            .map(BenchmarkFigure::compare_with_target)
            .collect();
        let is_missed: Vec<bool> =
            verdicts.iter().map(|verdict| *verdict == FigureVerdict::Missed).collect();
        assert_eq!(is_missed, [false, false, true, false]);
        assert_eq!(verdicts[3], FigureVerdict::Slow);
    }
}
