//! What a worker costs: a call, a start, a streamed piece, its memory; and opening many plugins
//! without one.

use std::path::Path;

use anyhow::Result;

use super::home::Home;
use super::table::{Figure, Target};
use super::yardstick::{Yardstick, figure};
use super::{Outcome, ROUNDS, patch};
use xtask::artifacts::{self, CargoShows, Selection};
use xtask::child;
use xtask::workspace::Workspace;

/// A call in a worker, against a bare ping-pong of the same bytes over a socket pair.
const PING_PONGS_MAX: f64 = 5.0;
/// A call through an MCP server on stdio, against one in a worker.
const MCP_CALLS_MIN: f64 = 2.0;
/// From nothing to an instance in a worker.
const START_MS_MAX: f64 = 30.0;
/// A streamed piece from a worker, beyond one in the host's process.
const DELTA_US_MAX: f64 = 5.0;
/// An idle worker, beside its plugin's own pages.
const IDLE_MIB_MAX: f64 = 8.0;
/// Plugins that are opened in the host's process, and how long that may take.
const OPENED: usize = 50;
const OPEN_MS_MAX: f64 = 60.0;

/// Measures workers.
pub fn worker(workspace: &Workspace) -> Result<Outcome> {
    let echo = patch::build(workspace)?;
    let probe = fixture(workspace, "probe")?;
    let jaato =
        artifacts::build(workspace, "release", Selection::Packages(&["jaato"]), &mut CargoShows)?;
    let jaato = jaato.binary("jaato")?.to_owned();
    let mcp = Yardstick::build(workspace, "mcp-echo")?;
    let home = Home::new(workspace, "worker")?;
    let many = home.beside("plugins");
    patch::copies(&echo, &many, OPENED)?;
    let mut best = Best::default();
    for _ in 0..ROUNDS {
        let calls = program(workspace, &[Path::new("calls"), &jaato, &echo])?;
        let (call, ping) = (figure(&calls, "call_us")?, figure(&calls, "ping_us")?);
        let mcp_us = mcp.median_us()?;
        best.to_ping.keep(call / ping, (call, ping));
        best.to_mcp.keep(call / mcp_us, (call, mcp_us));
        best.start.keep(figure(&calls, "start_ms")?, ());
        // Memory is not noise: the highest counts.
        let idle = figure(&calls, "idle_mib")?;
        best.idle_mib = Some(best.idle_mib.map_or(idle, |most| most.max(idle)));
        let deltas = program(workspace, &[Path::new("deltas"), &jaato, &probe])?;
        let (here, there) = (figure(&deltas, "here_us")?, figure(&deltas, "there_us")?);
        best.delta.keep(there - here, ());
        best.open.keep(figure(&program(workspace, &[Path::new("open"), &many])?, "open_ms")?, ());
    }
    Ok(Outcome::Figures(best.figures()))
}

/// The best of the rounds.
#[derive(Default)]
struct Best {
    to_ping: Least<(f64, f64)>,
    to_mcp: Least<(f64, f64)>,
    start: Least<()>,
    delta: Least<()>,
    open: Least<()>,
    idle_mib: Option<f64>,
}

/// The least value, and what it was made of.
struct Least<T> {
    value: f64,
    of: Option<T>,
}

impl<T> Default for Least<T> {
    fn default() -> Self {
        Self { value: f64::INFINITY, of: None }
    }
}

impl<T> Least<T> {
    fn keep(&mut self, value: f64, of: T) {
        if value < self.value {
            (self.value, self.of) = (value, Some(of));
        }
    }
}

impl Best {
    fn figures(&self) -> Vec<Figure> {
        let (call, ping) = self.to_ping.of.unwrap_or((f64::NAN, f64::NAN));
        let mcp = self.to_mcp.of.map_or(f64::NAN, |(_, mcp)| mcp);
        let open = format!("worker: opening {OPENED} plugins without one");
        vec![
            Figure::new("worker: a bare ping-pong", ping, "µs", Target::None),
            Figure::new("worker: a call", call, "µs", Target::None),
            Figure::new(
                "worker: call to ping-pong",
                self.to_ping.value,
                "times",
                Target::AtMost(PING_PONGS_MAX),
            ),
            Figure::new("worker: MCP on stdio (rmcp)", mcp, "µs", Target::None),
            Figure::new(
                "worker: MCP to call",
                1.0 / self.to_mcp.value,
                "times",
                Target::AtLeast(MCP_CALLS_MIN),
            ),
            Figure::new(
                "worker: until its instance is there",
                self.start.value,
                "ms",
                Target::AboutAtMost(START_MS_MAX),
            ),
            Figure::new(
                "worker: a streamed piece, beyond in-process",
                self.delta.value,
                "µs",
                Target::AboutAtMost(DELTA_US_MAX),
            ),
            Figure::new(
                "worker: idle, beside its plugin",
                self.idle_mib.unwrap_or(f64::NAN),
                "MiB",
                Target::AtMost(IDLE_MIB_MAX),
            ),
            Figure::new(&open, self.open.value, "ms", Target::AboutAtMost(OPEN_MS_MAX)),
        ]
    }
}

fn fixture(workspace: &Workspace, name: &str) -> Result<std::path::PathBuf> {
    let selection = Selection::Fixture(name);
    artifacts::build(workspace, "release", selection, &mut CargoShows)?.fixture(workspace, name)
}

/// Builds and runs the measuring program; gives its line.
fn program(workspace: &Workspace, words: &[&Path]) -> Result<String> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-loader"]);
    command.args(["--example", "worker_bench", "--"]).args(words);
    child::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::table::Verdict;

    #[test]
    fn the_least_is_kept_with_what_it_was_made_of() {
        let mut least = Least::default();
        for (value, of) in [(4.0, 'a'), (3.0, 'b'), (5.0, 'c')] {
            least.keep(value, of);
        }
        assert_eq!((least.value, least.of), (3.0, Some('b')));
    }

    #[test]
    fn what_was_not_measured_meets_no_target() {
        for figure in Best::default().figures() {
            assert_ne!(figure.verdict(), Verdict::Met, "{}", figure.what);
        }
    }
}
