//! A command that prints much: the host's memory stays as it is, the model sees little, a file
//! holds it all.

use std::time::Duration;

use anyhow::{Context, Result};

use super::agents::{Agents, Who};
use super::script::Script;
use crate::bench::Outcome;
use crate::bench::table::{Figure, Target};
use xtask::workspace::Workspace;

/// What the command prints.
const FLOOD_BYTES: u64 = 22_000_000;

/// In lines, as a build's log is.
const FLOOD: &str = "yes 'the quick brown fox jumps over the lazy dog' | head -c 22000000";

/// By how much the host may grow beyond what it takes for one short call.
const GROWTH_MIB_MAX: f64 = 8.0;

/// What of it may be in the next request.
const MODEL_KIB_MAX: f64 = 16.0;

/// Runs of each kind; the worst counts, as nothing makes memory look better than chance.
const RUNS: usize = 3;

/// The answer after the call waits, so that the host is surely looked at after the flood.
const PAUSE: Duration = Duration::from_millis(40);

/// Runs one short call and the flood in turns.
pub fn flood(workspace: &Workspace) -> Result<Outcome> {
    let agents = Agents::new(workspace, "flood")?;
    let (mut base, mut flooded) = (0, 0);
    let (mut model_bytes, mut kept_bytes, mut wall) = (0, u64::MAX, Duration::MAX);
    for _ in 0..RUNS {
        let script = Script::one_by_one(&["echo hello"]).with_pause(PAUSE);
        base = base.max(agents.run_looked_at(Who::Jaato, &script)?.1.command_alone);
        let script = Script::one_by_one(&[FLOOD]).with_pause(PAUSE);
        let (run, seen) = agents.run_looked_at(Who::Jaato, &script)?;
        flooded = flooded.max(seen.command_alone);
        wall = wall.min(run.ended.wall);
        let last = run.asked.into_iter().next_back().context("nothing was asked")?;
        model_bytes = model_bytes.max(last.last_result.len());
        kept_bytes = kept_bytes.min(last.kept_bytes);
    }
    let growth = (flooded as f64 - base as f64).max(0.0) / 1024.0;
    let missing = FLOOD_BYTES.abs_diff(kept_bytes);
    Ok(Outcome::Figures(vec![
        Figure::new(
            "flood: the host's peak, short call",
            base as f64 / 1024.0,
            "MiB",
            Target::None,
        ),
        Figure::new("flood: its growth by 22 MB", growth, "MiB", Target::AtMost(GROWTH_MIB_MAX)),
        Figure::new(
            "flood: what reaches the model",
            model_bytes as f64 / 1024.0,
            "KiB",
            Target::AtMost(MODEL_KIB_MAX),
        ),
        Figure::new("flood: missing in the file", missing as f64, "bytes", Target::AtMost(0.0)),
        Figure::new("flood: the whole run", wall.as_secs_f64() * 1e3, "ms", Target::None),
    ]))
}
