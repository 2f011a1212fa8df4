//! Measures sequential and parallel shell calls, compared with the yardstick's.

use std::time::Duration;

use anyhow::{Result, bail};

use super::agents::{AgentKind, BenchmarkAgents};
use super::script::ModelScript;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// The number of sequential calls.
const CALLS: usize = 20;

/// The maximum time of a call beyond the yardstick's.
const MORE_MS_MAX: f64 = 2.0;

/// The number of parallel calls, each of a second.
const TOGETHER: usize = 8;

/// The longest time of all parallel calls together.
const TOGETHER_S_MAX: f64 = 1.15;

/// The pairs of runs with short calls in a round.
const PAIRS: usize = 5;

/// Runs both agents alternately.
pub fn measure_shell_calls(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "shell-calls")?;
    let (mut jaato, mut yardstick) = (ShellCallTimes::UNKNOWN, ShellCallTimes::UNKNOWN);
    for _ in 0..ROUNDS {
        for _ in 0..PAIRS {
            jaato.measure_short_calls(&agents, AgentKind::Jaato)?;
            yardstick.measure_short_calls(&agents, AgentKind::Yardstick)?;
        }
        jaato.measure_parallel_calls(&agents, AgentKind::Jaato)?;
        yardstick.measure_parallel_calls(&agents, AgentKind::Yardstick)?;
    }
    Ok(BenchmarkOutcome::Figures(shell_call_figures(jaato, yardstick)))
}

fn shell_call_figures(jaato: ShellCallTimes, yardstick: ShellCallTimes) -> Vec<BenchmarkFigure> {
    let figure = |what, measured, unit, target| {
        BenchmarkFigure::new(&format!("shell calls: {what}"), measured, unit, target)
    };
    let more_ms = jaato.further_call_ms() - yardstick.further_call_ms();
    vec![
        figure("each, yardstick", yardstick.further_call_ms(), "ms", FigureTarget::None),
        figure("each, jaato", jaato.further_call_ms(), "ms", FigureTarget::None),
        figure("each, beyond the yardstick", more_ms, "ms", FigureTarget::AtMost(MORE_MS_MAX)),
        figure("8 × `sleep 1`, yardstick", yardstick.parallel_calls_s(), "s", FigureTarget::None),
        figure(
            "8 × `sleep 1`, jaato",
            jaato.parallel_calls_s(),
            "s",
            FigureTarget::AtMost(TOGETHER_S_MAX),
        ),
    ]
}

/// The shortest times of whole runs of one agent, because noise only slows down. The start and the
/// end of the agent are in all of them and cancel out.
#[derive(Debug, Clone, Copy)]
struct ShellCallTimes {
    one_call: Duration,
    many_calls: Duration,
    together: Duration,
}

impl ShellCallTimes {
    const UNKNOWN: Self =
        Self { one_call: Duration::MAX, many_calls: Duration::MAX, together: Duration::MAX };

    fn measure_short_calls(&mut self, agents: &BenchmarkAgents, who: AgentKind) -> Result<()> {
        let one = wall_time(agents, who, &ModelScript::with_command_per_step(&["echo hello"]), 1)?;
        let many = wall_time(
            agents,
            who,
            &ModelScript::with_command_per_step(&["echo hello"; CALLS]),
            CALLS,
        )?;
        self.one_call = self.one_call.min(one);
        self.many_calls = self.many_calls.min(many);
        Ok(())
    }

    fn measure_parallel_calls(&mut self, agents: &BenchmarkAgents, who: AgentKind) -> Result<()> {
        let together = wall_time(
            agents,
            who,
            &ModelScript::with_parallel_commands(&["sleep 1"; TOGETHER]),
            TOGETHER,
        )?;
        self.together = self.together.min(together);
        Ok(())
    }

    /// Returns the time of each further call.
    fn further_call_ms(self) -> f64 {
        let further = self.many_calls.as_secs_f64() - self.one_call.as_secs_f64();
        further * 1e3 / (CALLS - 1) as f64
    }

    /// Returns the time of the parallel calls beyond a run with one empty call.
    fn parallel_calls_s(self) -> f64 {
        self.together.as_secs_f64() - self.one_call.as_secs_f64()
    }
}

fn wall_time(
    agents: &BenchmarkAgents,
    who: AgentKind,
    script: &ModelScript,
    calls: usize,
) -> Result<Duration> {
    let run = agents.run_script(who, script)?;
    // An agent that leaves out calls would look fast.
    if run.asked.last().map(|asked| asked.results) != Some(calls) {
        bail!("of {calls} calls not every result came back: {:?}", run.asked);
    }
    Ok(run.ended.wall)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_times_exclude_agent_start_and_end() {
        let ms = Duration::from_millis;
        let walls = ShellCallTimes { one_call: ms(12), many_calls: ms(69), together: ms(1_062) };
        let close = |measured: f64, expected: f64| (measured - expected).abs() < 1e-9;
        assert!(
            close(walls.further_call_ms(), 3.0) && close(walls.parallel_calls_s(), 1.05),
            "{walls:?}"
        );
        let faster = ShellCallTimes { one_call: ms(10), many_calls: ms(48), together: ms(1_010) };
        let figures = shell_call_figures(walls, faster);
        assert!(close(figures[2].measured, 1.0), "{figures:?}");
    }
}
