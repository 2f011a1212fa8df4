//! Measures the cost of MCP servers in a run: each call, parallel calls, and the start with ten
//! servers of which one hangs.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::agents::{AgentKind, AgentRun, BenchmarkAgents};
use super::script::ModelScript;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::yardstick::Yardstick;
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::child;
use xtask::workspace::CargoWorkspace;

/// The number of sequential calls.
const CALLS: usize = 20;

/// The maximum time of a call between the model's answer and the next request, besides the server's
/// own time.
const MORE_MS_MAX: f64 = 1.5;

/// The steps with parallel calls, the calls in each step, and the duration of each call.
const STEPS: usize = 4;
const BESIDE: usize = 4;
const NAP_MS: u64 = 2000;

/// The longest total time of these steps.
const BESIDE_S_MAX: f64 = 8.5;

/// The number of configured servers.
const SERVERS: usize = 10;

/// The maximum delay of the first request with these servers.
const LATER_MS_MAX: f64 = 50.0;

/// The runs of each kind in a round.
const PAIRS: usize = 3;

/// Runs with and without servers alternately, and then calls a server's tool.
pub fn measure_mcp(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "mcp")?;
    let yardstick = Yardstick::build_yardstick(workspace, "mcp-echo")?;
    let own_ms = yardstick.median_us()? / 1e3;
    let servers = McpServersConfig::new(&agents, &yardstick)?;
    let (mut without, mut with) = (Duration::MAX, Duration::MAX);
    let mut call = Duration::MAX;
    let talk = ModelScript::with_command_per_step(&[]);
    let arguments = json!({ "text": "the quick brown fox jumps over the lazy dog" });
    let calls = ModelScript::with_tool_calls("mcp__s0__count_bytes", &arguments, 1, CALLS);
    for _ in 0..ROUNDS {
        for _ in 0..PAIRS {
            servers.remove_config()?;
            without =
                without.min(first_request_time(&agents.run_script(AgentKind::Jaato, &talk)?)?);
            servers.write_config()?;
            with = with.min(first_request_time(&agents.run_script(AgentKind::Jaato, &talk)?)?);
        }
        call = call.min(median_call_time(&agents.run_script(AgentKind::Jaato, &calls)?)?);
    }
    let naps =
        ModelScript::with_tool_calls("mcp__s0__nap", &json!({ "ms": NAP_MS }), BESIDE, STEPS);
    let beside = run_duration(&agents.run_script(AgentKind::Jaato, &naps)?)?;
    let figure = |what, measured, target| {
        BenchmarkFigure::new(&format!("MCP servers: {what}"), measured, "ms", target)
    };
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(BenchmarkOutcome::Figures(vec![
        figure("a call, by a client that does nothing else", own_ms, FigureTarget::None),
        figure("a call, answer to next request", ms(call), FigureTarget::None),
        figure(
            "a call, beyond the server's own time",
            ms(call) - own_ms,
            FigureTarget::AtMost(MORE_MS_MAX),
        ),
        BenchmarkFigure::new(
            "MCP servers: 16 read-only calls of 2 s in four steps",
            beside.as_secs_f64(),
            "s",
            FigureTarget::AtMost(BESIDE_S_MAX),
        ),
        figure("first request, without servers", ms(without), FigureTarget::None),
        figure("first request, ten servers of which one hangs", ms(with), FigureTarget::None),
        figure("how much later", ms(with) - ms(without), FigureTarget::AtMost(LATER_MS_MAX)),
    ]))
}

/// The configuration of the servers in the home.
struct McpServersConfig {
    file: std::path::PathBuf,
    list: String,
}

impl McpServersConfig {
    /// Gets the description of each server once. The last server hangs afterwards.
    fn new(agents: &BenchmarkAgents, yardstick: &Yardstick) -> Result<Self> {
        let hangs = agents.output_path("hangs");
        let program = yardstick.program_path();
        let mut list = Map::new();
        for number in 0..SERVERS - 1 {
            let entry = json!({ "command": program, "args": ["serve"] });
            list.insert(format!("s{number}"), entry);
        }
        let (mark, program) = (hangs.display(), program.display());
        let line = format!("test -e '{mark}' && exec sleep 600; exec '{program}' serve");
        list.insert("last".to_owned(), json!({ "command": "sh", "args": ["-c", line] }));
        let names: Vec<String> = list.keys().cloned().collect();
        let list = json!({ "mcpServers": Value::Object(list) }).to_string();
        let servers = Self { file: agents.home().user_folder().join(".mcp.json"), list };
        servers.write_config()?;
        for name in names {
            child::command_stdout(&mut agents.jaato_command(&["mcp", "connect", &name]))?;
        }
        fs::write(&hangs, "").with_context(|| format!("writing `{}`", hangs.display()))?;
        Ok(servers)
    }

    fn write_config(&self) -> Result<()> {
        fs::write(&self.file, &self.list)
            .with_context(|| format!("writing `{}`", self.file.display()))
    }

    fn remove_config(&self) -> Result<()> {
        fs::remove_file(&self.file).with_context(|| format!("removing `{}`", self.file.display()))
    }
}

fn first_request_time(run: &AgentRun) -> Result<Duration> {
    let first = run.asked.first().context("the model was never asked")?;
    Ok(first.at.duration_since(run.started))
}

/// Returns the time from the start to the request with the last results.
fn run_duration(run: &AgentRun) -> Result<Duration> {
    let last = run.asked.last().context("the model was never asked")?;
    if last.results != STEPS * BESIDE || !last.last_result.contains("rested") {
        bail!("not every call was answered: {last:?}");
    }
    Ok(last.at.duration_since(run.started))
}

/// Returns the median time from the model's answer with a call to the request with its result.
fn median_call_time(run: &AgentRun) -> Result<Duration> {
    let last = run.asked.last().context("the model was never asked")?;
    // A run with missing calls or errors would look fast.
    if last.results != CALLS || !last.last_result.contains("43") {
        bail!("of {CALLS} calls not every result came back: {last:?}");
    }
    let mut times: Vec<Duration> =
        run.asked.iter().filter_map(|asked| asked.since_answer).collect();
    times.sort();
    times.get(times.len() / 2).copied().context("no call was made")
}
