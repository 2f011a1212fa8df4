//! Shell calls, one after the other and side by side, against the yardstick's.

use std::time::Duration;

use anyhow::{Result, bail};

use super::agents::{Agents, Who};
use super::script::Script;
use crate::bench::table::{Figure, Target, median};
use crate::bench::{Outcome, ROUNDS};
use crate::workspace::Workspace;

/// Calls one after the other.
const CALLS: usize = 20;

/// What a call may take beyond one of the yardstick's.
const MORE_MS_MAX: f64 = 2.0;

/// Calls side by side, each of a second.
const TOGETHER: usize = 8;

/// What they may take together.
const TOGETHER_S_MAX: f64 = 1.15;

/// Pairs of a round.
const PAIRS: usize = 3;

/// Runs both in turns.
pub fn shell_calls(workspace: &Workspace) -> Result<Outcome> {
    let agents = Agents::new(workspace, "shell-calls")?;
    let mut best = Pair { jaato: f64::INFINITY, yardstick: 0.0 };
    let mut together = Pair { jaato: f64::INFINITY, yardstick: f64::INFINITY };
    for _ in 0..ROUNDS {
        let pair = Pair::measure(|who| call_ms(&agents, who))?;
        if pair.more() < best.more() {
            best = pair;
        }
        let pair = Pair::measure(|who| together_s(&agents, who))?;
        together.jaato = together.jaato.min(pair.jaato);
        together.yardstick = together.yardstick.min(pair.yardstick);
    }
    Ok(Outcome::Figures(vec![
        Figure::new("shell calls: each, yardstick", best.yardstick, "ms", Target::None),
        Figure::new("shell calls: each, jaato", best.jaato, "ms", Target::None),
        Figure::new(
            "shell calls: each, beyond the yardstick",
            best.more(),
            "ms",
            Target::AtMost(MORE_MS_MAX),
        ),
        Figure::new("shell calls: 8 × `sleep 1`, yardstick", together.yardstick, "s", Target::None),
        Figure::new(
            "shell calls: 8 × `sleep 1`, jaato",
            together.jaato,
            "s",
            Target::AtMost(TOGETHER_S_MAX),
        ),
    ]))
}

#[derive(Debug, Clone, Copy)]
struct Pair {
    jaato: f64,
    yardstick: f64,
}

impl Pair {
    fn measure(mut of: impl FnMut(Who) -> Result<f64>) -> Result<Self> {
        Ok(Self { jaato: of(Who::Jaato)?, yardstick: of(Who::Yardstick)? })
    }

    fn more(self) -> f64 {
        self.jaato - self.yardstick
    }
}

/// What each further call takes: the start and the end of the agent are in both runs and fall out.
fn call_ms(agents: &Agents, who: Who) -> Result<f64> {
    let (few, many) =
        (Script::one_by_one(&["echo hello"]), Script::one_by_one(&["echo hello"; CALLS]));
    let mut each = Vec::new();
    for _ in 0..PAIRS {
        let (few, many) = (wall(agents, who, &few, 1)?, wall(agents, who, &many, CALLS)?);
        each.push((many.as_secs_f64() - few.as_secs_f64()) * 1e3 / (CALLS - 1) as f64);
    }
    Ok(median(each))
}

/// What the calls take beyond a run with one call that does nothing.
fn together_s(agents: &Agents, who: Who) -> Result<f64> {
    let base = wall(agents, who, &Script::one_by_one(&["echo hello"]), 1)?;
    let calls = wall(agents, who, &Script::together(&["sleep 1"; TOGETHER]), TOGETHER)?;
    Ok(calls.as_secs_f64() - base.as_secs_f64())
}

fn wall(agents: &Agents, who: Who, script: &Script, calls: usize) -> Result<Duration> {
    let run = agents.run(who, script)?;
    // An agent that leaves calls out would be a fast one.
    if run.asked.last().map(|asked| asked.results) != Some(calls) {
        bail!("of {calls} calls not every result came back: {:?}", run.asked);
    }
    Ok(run.ended.wall)
}
