//! One run of a scenario on one side: its own session, whose ledger records the cost.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use jaato_runtime::session_loop::Cancel;
use jaato_runtime::store::{LedgerFileSummary as LedgerSummary, LedgerReader, UsageTotals};
use jaato_runtime::types::{Error, Outcome as TurnOutcome};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::{Value, json};

use super::domain::BenchSide;
use super::summary::RunMeasurement;
use super::trace::CallTrace;
use super::{BenchPlan, make_folder, write_json};
use crate::exit::{CommandFailure, Exit, exit_of};
use crate::start;

/// The command of the plugin for servers.
const MCP: &str = "mcp";

/// A run.
pub struct BenchRun<'a> {
    /// The scenario.
    pub scenario: &'a str,
    /// Its number, from 1.
    pub number: u64,
    /// The side.
    pub side: BenchSide,
    /// The prompt for the model.
    pub prompt: &'a str,
}

/// Makes sure that the server of the MCP side runs and is described, so that its tools are in the
/// first request of each run. Returns the model and the server's tools.
///
/// # Errors
/// A server that is not set up or does not start, or a model that cannot be used.
pub async fn prepare(
    plan: &BenchPlan,
    cancel: &Cancel,
) -> Result<(String, String), CommandFailure> {
    let runtime = start::start_runtime(plan.arguments.clone()).await?;
    let connected = connect_mcp_servers(&runtime, plan, cancel).await;
    let model = runtime.model().to_string();
    start::close(runtime).await;
    Ok((model, connected?))
}

async fn connect_mcp_servers(
    runtime: &Runtime,
    plan: &BenchPlan,
    cancel: &Cancel,
) -> Result<String, CommandFailure> {
    if runtime.registry().command(MCP).is_none() {
        let text = "the plugin `tool-mcp` cannot be used, so the MCP side cannot run";
        return Err(CommandFailure::new(Exit::Plugin, text).hint("`jaato plugin list` says why"));
    }
    let mut session =
        runtime.session_for_calls(SessionOptions::unattended(Arc::new(CallTrace::default())))?;
    let asked = json!({ "action": "connect", "name": plan.server });
    let answer = runtime.command(&mut session, MCP, asked, cancel).await;
    runtime.close_session(session.id()).await;
    let failed = |error: Error| {
        let exit = exit_of(error.kind);
        CommandFailure::new(exit, error.message).hint(format!("set it up: {}", plan.domain.hint))
    };
    let content = answer.map_err(failed)?.content;
    let said = content.get("result").and_then(Value::as_str).unwrap_or_default();
    let tools = said.rsplit_once('(').and_then(|(_, end)| end.split_once(" available"));
    Ok(tools.map_or("its tools", |(tools, _)| tools).to_owned())
}

/// Runs a scenario once. Failures within the run are part of the measurement.
///
/// # Errors
/// A problem that prevents any run: a setup that cannot be read, a file that cannot be written.
pub async fn run(
    plan: &BenchPlan,
    run: &BenchRun<'_>,
    with_trace: bool,
    cancel: &Cancel,
) -> Result<RunMeasurement, CommandFailure> {
    let folder = plan.folder.join(run.scenario).join(run.side.name());
    make_folder(&folder)?;
    let ledger = folder.join(format!("run{}.jsonl", run.number));
    let mut arguments = plan.arguments.clone();
    arguments.tools_only = Some(vec![plan.domain.tools(run.side, &plan.server)]);
    let mut setup = start::read_setup(arguments)?;
    setup.config.ledger.enabled = true;
    setup.config.ledger.path = Some(ledger.clone());
    let runtime = start::start_runtime_with(setup).await;
    let calls = Arc::new(CallTrace::default());
    let turn = run_turn(&runtime, &calls, run.prompt, cancel).await;
    start::close(runtime).await;
    let (text, error) = match turn {
        Ok(ended) => ended,
        Err(error) => (String::new(), Some(error.message)),
    };
    let totals = ledger_totals(&ledger)?;
    let measured = RunMeasurement::new(&ledger, totals, error);
    if with_trace {
        let trace = json!({
            "prompt": run.prompt, "text": text, "function_calls": calls.take(),
            "summary": measured.summary(),
        });
        write_json(&folder.join(format!("run{}.trace.json", run.number)), &trace)?;
    }
    Ok(measured)
}

/// Returns the answer, and the error if there was one.
async fn run_turn(
    runtime: &Runtime,
    calls: &Arc<CallTrace>,
    prompt: &str,
    cancel: &Cancel,
) -> Result<(String, Option<String>), Error> {
    let mut options = SessionOptions::unattended(Arc::clone(calls) as _);
    // Only the tools of the side could be allowed.
    options.allow_all = true;
    let mut session = runtime.session(options)?;
    let report = session.turn(prompt, cancel).await;
    session.end_forms().await;
    session.end_tasks().await;
    runtime.close_session(session.id()).await;
    let error = match report.outcome {
        TurnOutcome::Done => None,
        outcome => Some(match &report.error {
            Some(error) => error.message.clone(),
            None => format!("it ended as {outcome:?}").to_lowercase(),
        }),
    };
    Ok((report.text, error))
}

/// Adds up the ledger of a run. Returns zeros if there is none.
fn ledger_totals(ledger: &Path) -> Result<UsageTotals, CommandFailure> {
    let unreadable = |error: std::io::Error| {
        let text = format!("cannot read the ledger `{}`: {error}", ledger.display());
        CommandFailure::new(Exit::Failed, text)
    };
    let mut reader = match LedgerReader::open(ledger) {
        Ok(reader) => reader,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(UsageTotals::default()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut summary = LedgerSummary::new(0, None);
    while let Some(line) = reader.next_line().map_err(unreadable)? {
        summary.add_line(line);
    }
    Ok(summary.finish().totals)
}
