//! One run of a scenario on one side: its own session with its own ledger, which records the cost.

use std::sync::Arc;

use jaato_library::client::TokenLedger;
use jaato_library::types::Outcome;
use jaato_library::{Jaato, Result};
use serde_json::{Value, json};

use crate::domain::BenchSide;
use crate::summary::RunMeasurement;
use crate::trace::CallTrace;
use crate::{BenchPlan, make_folder, write_file};

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

/// Makes sure that the server of the MCP side runs, so that its tools are in the first request of
/// each run. Returns the number of its tools as text.
///
/// # Errors
/// If the server is not set up or does not start.
pub async fn connect_server(jaato: &Jaato, plan: &BenchPlan) -> Result<String> {
    let arguments = json!({ "action": "connect", "name": plan.server });
    let answer = jaato.command("mcp", arguments).await;
    let setup = format!("set it up: {}", plan.domain.hint);
    let content = answer.map_err(|error| error.with_hint(setup))?;
    let text = content.get("result").and_then(Value::as_str).unwrap_or_default();
    let tools = text.rsplit_once('(').and_then(|(_, end)| end.split_once(" available"));
    Ok(tools.map_or("its tools", |(tools, _)| tools).to_owned())
}

/// Runs a scenario once. Failures within the run are part of the measurement.
///
/// # Errors
/// If a file cannot be written, or no provider offers the model.
pub async fn run_scenario(
    jaato: &Jaato,
    plan: &BenchPlan,
    run: &BenchRun<'_>,
    with_trace: bool,
) -> Result<RunMeasurement> {
    let folder = plan.folder.join(run.scenario).join(run.side.name());
    make_folder(&folder)?;
    let ledger = Arc::new(TokenLedger::new());
    let mut calls = CallTrace::default();
    let (text, error) = run_turn(jaato, plan, run, &ledger, &mut calls).await?;
    let path = folder.join(format!("run{}.jsonl", run.number));
    ledger.write_ledger(&path)?;
    let measured = RunMeasurement::new(&path, ledger.totals(), error);
    if with_trace {
        let trace = json!({
            "prompt": run.prompt, "text": text, "function_calls": calls.entries(),
            "summary": measured.to_summary_json(),
        });
        let path = folder.join(format!("run{}.trace.json", run.number));
        write_file(&path, &format!("{trace:#}\n"))?;
    }
    Ok(measured)
}

/// Runs the turn, and returns the answer and the error if there was one.
async fn run_turn(
    jaato: &Jaato,
    plan: &BenchPlan,
    run: &BenchRun<'_>,
    ledger: &Arc<TokenLedger>,
    calls: &mut CallTrace,
) -> Result<(String, Option<String>)> {
    let tools = plan.domain.allowed_tools(run.side, &plan.server);
    // Only the tools of the side can be allowed.
    let mut session = jaato.session().tools([tools.as_str()]).allow_all();
    if let Some(model) = &plan.model {
        session = session.model(model);
    }
    let session = session.ledger(Arc::clone(ledger) as _).open()?;
    let mut turn = session.send(run.prompt);
    while let Some(event) = turn.next().await {
        calls.add(event);
    }
    let ended = match turn.await {
        Ok(report) if report.outcome == Outcome::Done => (report.text, None),
        Ok(report) => {
            let text = format!("it ended as {:?}", report.outcome).to_lowercase();
            (report.text, Some(text))
        }
        Err(error) => (String::new(), Some(error.message)),
    };
    session.close().await;
    Ok(ended)
}
