//! `bench`: measures what the design promises and compares it with the targets.
//!
//! Machines differ and are busy with other things, so a target is a ratio to a yardstick of the
//! same run wherever that is possible, and each figure is the best of several paired rounds.

mod table;
mod yardstick;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::table::Figure;
use crate::workspace::Workspace;

/// One thing that can be measured by itself.
struct Bench {
    name: &'static str,
    about: &'static str,
    measure: fn(&Workspace) -> Result<Vec<Figure>>,
}

const BENCHES: &[Bench] = &[Bench {
    name: "mcp",
    about: "a tool call through an MCP server on stdio, the yardstick of the boundary",
    measure: yardstick::mcp_echo,
}];

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    let chosen = chosen(words)?;
    let workspace = Workspace::load()?;
    let mut figures = Vec::new();
    for bench in chosen {
        println!("measuring {}: {}", bench.name, bench.about);
        figures.extend((bench.measure)(&workspace)?);
    }
    print!("\n{}", table::render(&figures));
    let missed = figures.iter().filter(|figure| !figure.is_met()).count();
    if missed > 0 {
        println!("{missed} of {} targets missed", figures.len());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// All that are named, or all there are.
fn chosen(words: Vec<OsString>) -> Result<Vec<&'static Bench>> {
    use lexopt::prelude::*;

    let mut chosen = Vec::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        let Value(name) = argument else { return Err(argument.unexpected().into()) };
        let Some(bench) = BENCHES.iter().find(|bench| name == bench.name) else {
            let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
            bail!("there is no bench `{}`; there are: {}", name.to_string_lossy(), names.join(", "))
        };
        chosen.push(bench);
    }
    Ok(if chosen.is_empty() { BENCHES.iter().collect() } else { chosen })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_run_unless_some_are_named() {
        assert_eq!(chosen(Vec::new()).unwrap().len(), BENCHES.len());
        assert_eq!(chosen(vec!["mcp".into()]).unwrap().len(), 1);
        let error = chosen(vec!["mpc".into()]).err().unwrap().to_string();
        assert!(error.starts_with("there is no bench `mpc`; there are: "), "{error}");
    }
}
