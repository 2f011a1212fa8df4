//! What one tool call and an answer cost: wall time, processor time and memory, of the agent and all
//! that it starts, against the yardstick's.

use std::time::Duration;

use anyhow::Result;

use super::agents::{Agents, Who};
use super::script::Script;
use crate::bench::table::{Figure, Target, median};
use crate::bench::{Outcome, ROUNDS};
use crate::workspace::Workspace;

/// Of each, against the yardstick's.
const TIMES_MAX: f64 = 3.0;

/// A yardstick that takes more processor time on an idle machine has become a bad one: nothing can
/// be said by it.
const YARDSTICK_CPU_MS_MAX: f64 = 12.0;

/// The same of its memory.
const YARDSTICK_MIB_MAX: f64 = 10.0;

/// Pairs of a round.
const PAIRS: usize = 7;

/// How long each answer is kept back when the memory is looked at: some dozens of looks.
const PAUSE: Duration = Duration::from_millis(40);

/// Of one agent.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall_ms: f64,
    cpu_ms: f64,
    mib: f64,
}

/// Runs both in turns.
pub fn cost(workspace: &Workspace) -> Result<Outcome> {
    let agents = Agents::new(workspace, "run")?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(Round::measure(&agents)?);
    }
    Ok(outcome(&rounds))
}

/// Both agents in one stretch of time.
#[derive(Debug, Clone, Copy)]
struct Round {
    jaato: Cost,
    yardstick: Cost,
}

impl Round {
    fn measure(agents: &Agents) -> Result<Self> {
        let script = Script::one_by_one(&["echo hello"]);
        let (mut jaato, mut yardstick) = (Times::default(), Times::default());
        for _ in 0..PAIRS {
            jaato.take(agents, Who::Jaato, &script)?;
            yardstick.take(agents, Who::Yardstick, &script)?;
        }
        let script = script.with_pause(PAUSE);
        let mib = |who| Ok::<_, anyhow::Error>(agents.run_looked_at(who, &script)?.1.together);
        Ok(Self {
            jaato: jaato.cost(mib(Who::Jaato)?),
            yardstick: yardstick.cost(mib(Who::Yardstick)?),
        })
    }
}

/// The runs of one agent in a round.
#[derive(Default)]
struct Times {
    wall_ms: Vec<f64>,
    cpu_ms: Vec<f64>,
}

impl Times {
    fn take(&mut self, agents: &Agents, who: Who, script: &Script) -> Result<()> {
        let ended = agents.run(who, script)?.ended;
        self.wall_ms.push(ended.wall.as_secs_f64() * 1e3);
        self.cpu_ms.push(ended.cpu.as_secs_f64() * 1e3);
        Ok(())
    }

    fn cost(self, kib: u64) -> Cost {
        let mib = kib as f64 / 1024.0;
        Cost { wall_ms: median(self.wall_ms), cpu_ms: median(self.cpu_ms), mib }
    }
}

/// Of times the round counts in which jaato did best against the yardstick. Of the memory each one's
/// highest figure counts: a look can miss a peak and never makes one.
fn outcome(rounds: &[Round]) -> Outcome {
    let highest = |of: fn(&Round) -> f64| rounds.iter().map(of).fold(0.0, f64::max);
    let best = |of: fn(&Cost) -> f64| {
        let pairs = rounds.iter().map(|round| (of(&round.jaato), of(&round.yardstick)));
        pairs.min_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1))).unwrap_or((f64::NAN, f64::NAN))
    };
    let wall = best(|cost| cost.wall_ms);
    let cpu = best(|cost| cost.cpu_ms);
    let memory = (highest(|round| round.jaato.mib), highest(|round| round.yardstick.mib));
    let mut figures = Vec::new();
    for (what, unit, (jaato, yardstick)) in
        [("wall", "ms", wall), ("processor", "ms", cpu), ("peak memory", "MiB", memory)]
    {
        figures.extend([
            Figure::new(&format!("run: {what}, yardstick"), yardstick, unit, Target::None),
            Figure::new(&format!("run: {what}, jaato"), jaato, unit, Target::None),
            Figure::new(
                &format!("run: {what}, jaato to yardstick"),
                jaato / yardstick,
                "times",
                Target::AtMost(TIMES_MAX),
            ),
        ]);
    }
    let least_cpu = rounds.iter().map(|round| round.yardstick.cpu_ms).fold(f64::INFINITY, f64::min);
    match void(least_cpu, memory.1) {
        Some(why) => Outcome::Void { figures, why },
        None => Outcome::Figures(figures),
    }
}

fn void(cpu_ms: f64, mib: f64) -> Option<String> {
    if cpu_ms > YARDSTICK_CPU_MS_MAX {
        return Some(format!(
            "the yardstick takes {cpu_ms:.1} ms of processor time, {YARDSTICK_CPU_MS_MAX} at most \
             on an idle machine; try again when the machine is idle"
        ));
    }
    (mib > YARDSTICK_MIB_MAX).then(|| {
        format!("the yardstick holds {mib:.1} MiB, {YARDSTICK_MIB_MAX} at most are its own")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(jaato: f64, yardstick: f64) -> Round {
        let cost = |value| Cost { wall_ms: value, cpu_ms: value, mib: value };
        Round { jaato: cost(jaato), yardstick: cost(yardstick) }
    }

    #[test]
    fn the_best_round_counts_for_times_and_the_highest_for_memory() {
        let Outcome::Figures(figures) = outcome(&[round(30.0, 9.0), round(16.0, 8.0)]) else {
            panic!("the yardstick is a good one");
        };
        let measured: Vec<f64> = figures.iter().map(|figure| figure.measured).collect();
        assert_eq!(measured, [8.0, 16.0, 2.0, 8.0, 16.0, 2.0, 9.0, 30.0, 30.0 / 9.0]);
    }

    #[test]
    fn a_yardstick_that_has_grown_voids_the_run() {
        assert_eq!(void(12.0, 10.0), None);
        assert!(void(12.1, 7.0).unwrap().contains("12.1 ms of processor time"));
        assert!(void(8.0, 10.1).unwrap().contains("10.1 MiB"));
        assert!(matches!(outcome(&[round(30.0, 13.0)]), Outcome::Void { .. }));
    }
}
