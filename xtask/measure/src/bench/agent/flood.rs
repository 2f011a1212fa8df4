//! Measures a command with much output: the host's memory must not grow, the model gets little of
//! it, and a file contains everything.

use std::time::Duration;

use anyhow::{Context, Result};

use super::agents::{AgentKind, BenchmarkAgents};
use super::script::ModelScript;
use crate::bench::BenchmarkOutcome;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use xtask::workspace::CargoWorkspace;

/// The size of the output.
const FLOOD_BYTES: u64 = 22_000_000;

/// The command, which prints lines like a build log.
const FLOOD: &str = "yes 'the quick brown fox jumps over the lazy dog' | head -c 22000000";

/// The maximum growth of the host, compared with one short call.
const GROWTH_MIB_MAX: f64 = 8.0;

/// The maximum output in the next request.
const MODEL_KIB_MAX: f64 = 16.0;

/// The runs of each kind. The worst counts, because chance never makes memory look better.
const RUNS: usize = 3;

/// The delay of the answer after the call, so that the host is observed after the flood.
const PAUSE: Duration = Duration::from_millis(40);

/// Runs one short call and the flood alternately.
pub fn measure_flood(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "flood")?;
    let (mut base, mut flooded) = (0, 0);
    let (mut model_bytes, mut kept_bytes, mut wall) = (0, u64::MAX, Duration::MAX);
    for _ in 0..RUNS {
        let script = ModelScript::with_command_per_step(&["echo hello"]).with_pause(PAUSE);
        base = base.max(agents.run_with_memory(AgentKind::Jaato, &script)?.1.command_alone);
        let script = ModelScript::with_command_per_step(&[FLOOD]).with_pause(PAUSE);
        let (run, seen) = agents.run_with_memory(AgentKind::Jaato, &script)?;
        flooded = flooded.max(seen.command_alone);
        wall = wall.min(run.ended.wall);
        let last = run.asked.into_iter().next_back().context("the model got no request")?;
        model_bytes = model_bytes.max(last.last_result.len());
        kept_bytes = kept_bytes.min(last.kept_bytes);
    }
    let growth = (flooded as f64 - base as f64).max(0.0) / 1024.0;
    let missing = FLOOD_BYTES.abs_diff(kept_bytes);
    Ok(BenchmarkOutcome::Figures(vec![
        BenchmarkFigure::new(
            "flood: the host's peak, short call",
            base as f64 / 1024.0,
            "MiB",
            FigureTarget::None,
        ),
        BenchmarkFigure::new(
            "flood: its growth by 22 MB",
            growth,
            "MiB",
            FigureTarget::AtMost(GROWTH_MIB_MAX),
        ),
        BenchmarkFigure::new(
            "flood: what reaches the model",
            model_bytes as f64 / 1024.0,
            "KiB",
            FigureTarget::AtMost(MODEL_KIB_MAX),
        ),
        BenchmarkFigure::new(
            "flood: missing in the file",
            missing as f64,
            "bytes",
            FigureTarget::AtMost(0.0),
        ),
        BenchmarkFigure::new(
            "flood: the whole run",
            wall.as_secs_f64() * 1e3,
            "ms",
            FigureTarget::None,
        ),
    ]))
}
