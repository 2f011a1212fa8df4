//! What the boundary to a plugin costs: a call and a hop, measured by a program beside the loader.

use std::path::Path;

use anyhow::Result;

use super::table::{Figure, Target};
use super::yardstick::{Yardstick, figure};
use super::{Outcome, ROUNDS, patch};
use xtask::child;
use xtask::workspace::Workspace;

/// A call through a loaded plugin, against the same call of a trait object of the host.
const NATIVE_CALLS_MAX: f64 = 4.0;

/// A call through an MCP server on stdio, against one through a loaded plugin.
const MCP_CALLS_MIN: f64 = 50.0;

/// The way to the plugin executor and back.
const HOP_US_MAX: f64 = 15.0;

/// The same, against tokio's.
const HOP_SPAWNS_MAX: f64 = 1.0;

/// A call of a trivial tool.
pub fn call(workspace: &Workspace) -> Result<Outcome> {
    let plugin = patch::build(workspace)?;
    let yardstick = Yardstick::build(workspace, "mcp-echo")?;
    let mut to_native = Pair::worst();
    let mut from_mcp = Pair::worst();
    for _ in 0..ROUNDS {
        let line = bench_program(workspace, &["call"], Some(&plugin))?;
        let in_place = figure(&line, "in_place_ns")?;
        let mcp = yardstick.median_us()? * 1e3;
        to_native.keep(Pair { ours: in_place, yardstick: figure(&line, "native_ns")? });
        from_mcp.keep(Pair { ours: in_place, yardstick: mcp });
    }
    let mcp_ratio = 1.0 / from_mcp.ratio();
    Ok(Outcome::Figures(vec![
        Figure::new("call: a native trait object", to_native.yardstick, "ns", Target::None),
        Figure::new("call: a loaded plugin, polled in place", to_native.ours, "ns", Target::None),
        Figure::new(
            "call: plugin to native",
            to_native.ratio(),
            "times",
            Target::AtMost(NATIVE_CALLS_MAX),
        ),
        Figure::new("call: MCP on stdio (rmcp)", from_mcp.yardstick / 1e3, "µs", Target::None),
        Figure::new("call: MCP to plugin", mcp_ratio, "times", Target::AtLeast(MCP_CALLS_MIN)),
    ]))
}

/// An empty future through the plugin executor.
pub fn hop(workspace: &Workspace) -> Result<Outcome> {
    let mut best = Pair::worst();
    for _ in 0..ROUNDS {
        let line = bench_program(workspace, &["hop"], None)?;
        best.keep(Pair { ours: figure(&line, "hop_us")?, yardstick: figure(&line, "spawn_us")? });
    }
    Ok(Outcome::Figures(vec![
        Figure::new("hop: plugin executor", best.ours, "µs", Target::AboutAtMost(HOP_US_MAX)),
        Figure::new("hop: tokio spawn and join", best.yardstick, "µs", Target::None),
        Figure::new(
            "hop: executor to tokio",
            best.ratio(),
            "times",
            Target::AtMost(HOP_SPAWNS_MAX),
        ),
    ]))
}

/// Two figures of one round.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ours: f64,
    yardstick: f64,
}

impl Pair {
    fn worst() -> Self {
        Self { ours: f64::INFINITY, yardstick: 1.0 }
    }

    fn ratio(self) -> f64 {
        self.ours / self.yardstick
    }

    /// Keeps the round in which ours did best against the yardstick.
    fn keep(&mut self, other: Self) {
        if other.ratio() < self.ratio() {
            *self = other;
        }
    }
}

/// Builds and runs the measuring program; gives its line.
fn bench_program(workspace: &Workspace, words: &[&str], plugin: Option<&Path>) -> Result<String> {
    let mut command = child::cargo(&workspace.root);
    command.args(["run", "--quiet", "--release", "-p", "jaato-loader"]);
    command.args(["--example", "boundary_bench", "--"]).args(words).args(plugin);
    child::output(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_is_kept_whole() {
        let mut best = Pair::worst();
        for (ours, yardstick) in [(400.0, 100.0), (300.0, 150.0), (250.0, 100.0)] {
            best.keep(Pair { ours, yardstick });
        }
        assert_eq!((best.ours, best.yardstick), (300.0, 150.0));
    }
}
