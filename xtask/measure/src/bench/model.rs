//! How many of its tasks the embedded model does right, by a program beside its plugin.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result};

use super::table::{Figure, Target};
use super::{Outcome, weights};
use xtask::workspace::Workspace;
use xtask::{child, run};

/// Right answers that are expected of so many tasks.
const RIGHT_MIN: usize = 33;
const RIGHT_OF: usize = 36;

/// Scores the model; what the program prints, misses above all, is passed on.
pub fn model(workspace: &Workspace) -> Result<Outcome> {
    let jaato = run::build_release(workspace)?;
    let Some(weights) = weights::find(&jaato)? else {
        return Ok(Outcome::Skipped(weights::MISSING.to_owned()));
    };
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "provider-local", "--example", "quality"]);
    command.arg("--").arg(&weights).stdout(Stdio::piped());
    let mut program = command.spawn().with_context(|| child::shown(&command))?;
    let mut score = None;
    let lines = program.stdout.take().context("the program has no standard output")?;
    for line in BufReader::new(lines).lines() {
        let line = line.context("reading what the program prints")?;
        println!("  {line}");
        score = score.or(score_in(&line));
    }
    // It fails below the score, which is judged here.
    program.wait().context("waiting for the program")?;
    let (right, count) =
        score.with_context(|| format!("{} told no score", child::shown(&command)))?;
    let wanted = (RIGHT_MIN * count).div_ceil(RIGHT_OF);
    Ok(Outcome::Figures(vec![Figure::new(
        &format!("model: right answers of {count}"),
        right as f64,
        "",
        Target::AtLeast(wanted as f64),
    )]))
}

/// Reads `33 of 36 right; …`.
fn score_in(line: &str) -> Option<(usize, usize)> {
    let (right, rest) = line.split_once(" of ")?;
    let count = rest.split_once(" right")?.0;
    Some((right.parse().ok()?, count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_read_from_its_line() {
        assert_eq!(score_in("33 of 36 right; 11.0 tokens/s with short prompts"), Some((33, 36)));
        assert_eq!(score_in("miss: the size of all right files"), None);
        assert_eq!(score_in("loaded in 0.80 s"), None);
    }
}
