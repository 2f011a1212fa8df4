//! Compares confined files with plain system calls, and walks and patterns with the `ignore` crate.

use anyhow::Result;

use super::BenchmarkOutcome;
use super::table::{BenchmarkFigure, FigureTarget};
use super::yardstick::parse_figure;
use xtask::child;
use xtask::workspace::CargoWorkspace;

/// The maximum additional time for reading or writing 4 KiB, compared with plain system calls.
const MORE_US_MAX: f64 = 20.0;
/// The minimum speed of a stream of 64 MiB, in percent of plain reads.
const STREAM_PERCENT_MIN: f64 = 70.0;
/// The maximum time for a tree of 100,000 files, relative to the `ignore` crate.
const IGNORE_TIMES_MAX: f64 = 1.5;

/// Measures files. The program itself keeps the best of its rounds, because creating its tree takes
/// long.
pub fn measure_files(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let mut command = child::cargo_command(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-plugin-sdk-environment"]);
    command.args(["--example", "files_bench"]);
    Ok(BenchmarkOutcome::Figures(parse_file_figures(&child::command_stdout(&mut command)?)?))
}

fn parse_file_figures(line: &str) -> Result<Vec<BenchmarkFigure>> {
    let of = |name: &str| parse_figure(line, name);
    let mut figures = Vec::new();
    for (what, name, plain) in [
        ("reading 4 KiB", "read_us", "read_plain_us"),
        ("reading 4 KiB in place", "read_cached_us", "read_plain_us"),
        ("writing 4 KiB", "write_us", "write_plain_us"),
    ] {
        let what = format!("files: {what}, beyond plain calls");
        let target = FigureTarget::AboutAtMost(MORE_US_MAX);
        figures.push(BenchmarkFigure::new(&what, of(name)? - of(plain)?, "µs", target));
    }
    figures.push(BenchmarkFigure::new(
        "files: a stream of 64 MiB, to plain reads",
        100.0 * of("stream_plain_ms")? / of("stream_ms")?,
        "%",
        FigureTarget::AtLeast(STREAM_PERCENT_MIN),
    ));
    for (what, name, plain) in [
        ("a walk", "walk_ms", "walk_ignore_ms"),
        ("a pattern, newest first", "glob_ms", "glob_ignore_ms"),
        ("a pattern, by path", "glob_by_path_ms", "glob_ignore_ms"),
    ] {
        let what = format!("files: {what}, to `ignore`");
        let target = FigureTarget::AtMost(IGNORE_TIMES_MAX);
        figures.push(BenchmarkFigure::new(&what, of(name)? / of(plain)?, "times", target));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::FigureVerdict;

    #[test]
    fn each_figure_is_compared_with_its_yardstick() {
        let line = r#"{"read_plain_us":2,"read_us":22,"read_cached_us":3,"write_plain_us":70,
            "write_us":120,"stream_plain_ms":7,"stream_ms":10,"walk_ignore_ms":100,"walk_ms":150,
            "glob_ignore_ms":100,"glob_ms":151,"glob_by_path_ms":80}"#;
        let verdicts: Vec<FigureVerdict> = parse_file_figures(line)
            .unwrap()
            .iter()
            .map(BenchmarkFigure::compare_with_target)
            .collect();
        use FigureVerdict::{Met, Missed};
        assert_eq!(verdicts, [Met, Met, Missed, Met, Met, Missed, Met]);
        assert!(parse_file_figures("{}").is_err());
    }
}
