//! Measures the cost of one tool call and an answer: wall time, processor time and memory of the
//! agent and all its child processes, compared with the yardstick's.

use std::time::Duration;

use anyhow::Result;

use super::agents::{AgentKind, BenchmarkAgents};
use super::script::ModelScript;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// The target for each cost, relative to the yardstick's.
const TIMES_MAX: f64 = 3.0;

/// If the yardstick takes more processor time on an idle machine, it is not a useful reference.
const YARDSTICK_CPU_MS_MAX: f64 = 12.0;

/// The same limit for its memory.
const YARDSTICK_MIB_MAX: f64 = 10.0;

/// The pairs of runs in a round.
const PAIRS: usize = 7;

/// The delay of each answer while the memory is observed: enough for dozens of samples.
const PAUSE: Duration = Duration::from_millis(40);

/// The costs of one agent: its lowest times, because noise only slows down, and its highest memory,
/// because a sample can miss a peak but never invent one. Each value is independent of the other
/// agent's.
#[derive(Debug, Clone, Copy)]
struct AgentCost {
    wall_ms: f64,
    cpu_ms: f64,
    mib: f64,
}

/// Runs both agents alternately.
pub fn measure_cost(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "run")?;
    let script = ModelScript::with_command_per_step(&["echo hello"]);
    let (mut jaato, mut yardstick) = (AgentCost::UNKNOWN, AgentCost::UNKNOWN);
    for _ in 0..ROUNDS {
        for _ in 0..PAIRS {
            jaato.measure_times(&agents, AgentKind::Jaato, &script)?;
            yardstick.measure_times(&agents, AgentKind::Yardstick, &script)?;
        }
        jaato.measure_memory(&agents, AgentKind::Jaato, &script)?;
        yardstick.measure_memory(&agents, AgentKind::Yardstick, &script)?;
    }
    Ok(compare_costs(jaato, yardstick))
}

impl AgentCost {
    const UNKNOWN: Self = Self { wall_ms: f64::INFINITY, cpu_ms: f64::INFINITY, mib: 0.0 };

    fn measure_times(
        &mut self,
        agents: &BenchmarkAgents,
        who: AgentKind,
        script: &ModelScript,
    ) -> Result<()> {
        let ended = agents.run_script(who, script)?.ended;
        self.wall_ms = self.wall_ms.min(ended.wall.as_secs_f64() * 1e3);
        self.cpu_ms = self.cpu_ms.min(ended.cpu.as_secs_f64() * 1e3);
        Ok(())
    }

    fn measure_memory(
        &mut self,
        agents: &BenchmarkAgents,
        who: AgentKind,
        script: &ModelScript,
    ) -> Result<()> {
        let (_, seen) = agents.run_with_memory(who, &script.clone().with_pause(PAUSE))?;
        self.mib = self.mib.max(seen.together as f64 / 1024.0);
        Ok(())
    }
}

fn compare_costs(jaato: AgentCost, yardstick: AgentCost) -> BenchmarkOutcome {
    let wall = (jaato.wall_ms, yardstick.wall_ms);
    let cpu = (jaato.cpu_ms, yardstick.cpu_ms);
    let memory = (jaato.mib, yardstick.mib);
    let mut figures = Vec::new();
    for (what, unit, (jaato, yardstick)) in
        [("wall", "ms", wall), ("processor", "ms", cpu), ("peak memory", "MiB", memory)]
    {
        figures.extend([
            BenchmarkFigure::new(
                &format!("run: {what}, yardstick"),
                yardstick,
                unit,
                FigureTarget::None,
            ),
            BenchmarkFigure::new(&format!("run: {what}, jaato"), jaato, unit, FigureTarget::None),
            BenchmarkFigure::new(
                &format!("run: {what}, jaato to yardstick"),
                jaato / yardstick,
                "times",
                FigureTarget::AtMost(TIMES_MAX),
            ),
        ]);
    }
    match invalid_yardstick_reason(yardstick) {
        Some(why) => BenchmarkOutcome::Void { figures, why },
        None => BenchmarkOutcome::Figures(figures),
    }
}

fn invalid_yardstick_reason(yardstick: AgentCost) -> Option<String> {
    let AgentCost { cpu_ms, mib, .. } = yardstick;
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

    fn agent_cost(ms: f64, mib: f64) -> AgentCost {
        AgentCost { wall_ms: ms, cpu_ms: ms, mib }
    }

    #[test]
    fn each_figure_is_shown_with_the_yardstick_and_their_ratio() {
        let BenchmarkOutcome::Figures(figures) =
            compare_costs(agent_cost(16.0, 30.0), agent_cost(8.0, 10.0))
        else {
            panic!("the yardstick is a good one");
        };
        let measured: Vec<f64> = figures.iter().map(|figure| figure.measured).collect();
        assert_eq!(measured, [8.0, 16.0, 2.0, 8.0, 16.0, 2.0, 10.0, 30.0, 3.0]);
    }

    #[test]
    fn yardstick_above_its_limits_voids_the_run() {
        assert_eq!(invalid_yardstick_reason(agent_cost(12.0, 10.0)), None);
        assert!(
            invalid_yardstick_reason(agent_cost(12.1, 7.0))
                .unwrap()
                .contains("12.1 ms of processor time")
        );
        assert!(invalid_yardstick_reason(agent_cost(8.0, 10.1)).unwrap().contains("10.1 MiB"));
        assert!(matches!(
            compare_costs(agent_cost(30.0, 9.0), agent_cost(13.0, 9.0)),
            BenchmarkOutcome::Void { .. }
        ));
    }
}
