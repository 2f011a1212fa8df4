//! Measures subagents: the processor time and the memory of 100 that each call a tool ten times,
//! and the time from the call that spawns one to its first request.

use std::fs;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::agents::{AgentKind, AgentRun, BenchmarkAgents};
use super::script::{ModelScript, ScriptedAnswer};
use super::server::content_text;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// The children of the one parent.
const CHILDREN: usize = 100;

/// The children that the parent spawns in one step, because a step has at most 32 calls.
const SPAWNED_AT_ONCE: usize = 20;

/// The calls of each child, one in each step.
const CALLS: usize = 10;

/// The most processor time, relative to the same calls in one session.
const TIMES_MAX: f64 = 1.5;

/// The most memory of a further child.
const CHILD_MIB_MAX: f64 = 1.0;

/// The longest time from the request that is answered with the spawning call to the child's first.
const FIRST_REQUEST_MS_MAX: f64 = 5.0;

/// The task of a child, which tells its requests from those of the parent.
const CHILD_TASK: &str = "Read the environment ten times.";

/// The tool that is called. It starts no process, so that the sessions dominate.
const CALLED_TOOL: &str = "get_environment";

/// Measures all of it.
pub fn measure_children(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "agents")?;
    let config = agents.home().user_folder().join(".config/jaato/config.toml");
    fs::create_dir_all(config.parent().context("a file has a folder")?)?;
    // No gc, because the script counts the results.
    let model = "[models.\"openai/scripted\"]\ncontext_limit = 10000000\n";
    let steps_max = CHILDREN * CALLS + 2;
    fs::write(&config, format!("[session]\nsteps_max = {steps_max}\n{model}"))?;
    let called = json!({ "aspect": "os" });
    let one_session = ModelScript::with_tool_calls(CALLED_TOOL, &called, 1, CHILDREN * CALLS);
    let (one, many) = (parent_script(1), parent_script(CHILDREN));
    let (mut one_session_ms, mut many_ms) = (f64::INFINITY, f64::INFINITY);
    let (mut first_ms, mut one_mib, mut many_mib) = (f64::INFINITY, 0.0_f64, 0.0_f64);
    for _ in 0..ROUNDS {
        let run = agents.run_script(AgentKind::Jaato, &one_session)?;
        check_requests(&run, CHILDREN * CALLS + 1)?;
        one_session_ms = one_session_ms.min(cpu_ms(&run));
        let (run, seen) = agents.run_with_memory(AgentKind::Jaato, &many)?;
        check_requests(&run, CHILDREN * (CALLS + 1) + 2)?;
        many_ms = many_ms.min(cpu_ms(&run));
        many_mib = many_mib.max(seen.together as f64 / 1024.0);
        let (run, seen) = agents.run_with_memory(AgentKind::Jaato, &one)?;
        first_ms = first_ms.min(first_request_ms(&run)?);
        one_mib = one_mib.max(seen.together as f64 / 1024.0);
    }
    let further = (CHILDREN - 1) as f64;
    let figure = |what: &str, measured, unit, target| {
        BenchmarkFigure::new(&format!("agents: {what}"), measured, unit, target)
    };
    let (times, child_mib) = (many_ms / one_session_ms, (many_mib - one_mib) / further);
    Ok(BenchmarkOutcome::Figures(vec![
        figure("processor, 1,000 calls in one session", one_session_ms, "ms", FigureTarget::None),
        figure("processor, the same in 100 children", many_ms, "ms", FigureTarget::None),
        figure("the second to the first", times, "times", FigureTarget::AtMost(TIMES_MAX)),
        figure("peak memory with one child", one_mib, "MiB", FigureTarget::None),
        figure("each further child", child_mib, "MiB", FigureTarget::AtMost(CHILD_MIB_MAX)),
        figure(
            "from the spawning answer to the child's request",
            first_ms,
            "ms",
            FigureTarget::AboutAtMost(FIRST_REQUEST_MS_MAX),
        ),
    ]))
}

/// Returns the script of a parent that spawns children and ends when they have ended.
fn parent_script(children: usize) -> ModelScript {
    let call = |name: &str, arguments: Value, count| ScriptedAnswer::Tool {
        name: name.to_owned(),
        arguments,
        count,
    };
    ModelScript::from_chooser(Arc::new(move |body| {
        let messages: &[Value] = body["messages"].as_array().map_or(&[], Vec::as_slice);
        let results = messages.iter().filter(|message| message["role"] == "tool").count();
        let is_child = messages.iter().any(|message| {
            message["role"] == "user" && content_text(&message["content"]).contains(CHILD_TASK)
        });
        match (is_child, results) {
            (true, CALLS) => ScriptedAnswer::final_message(),
            (true, _) => call(CALLED_TOOL, json!({ "aspect": "os" }), 1),
            (false, spawned) if spawned < children => {
                let count = SPAWNED_AT_ONCE.min(children - spawned);
                call("spawn_subagent", json!({ "task": CHILD_TASK }), count)
            }
            (false, _) => ScriptedAnswer::final_message(),
        }
    }))
}

fn cpu_ms(run: &AgentRun) -> f64 {
    run.ended.cpu.as_secs_f64() * 1e3
}

/// A run that leaves out calls would look fast. The answers of children may come in one message or
/// in several.
fn check_requests(run: &AgentRun, least: usize) -> Result<()> {
    let count = run.asked.len();
    ensure!(count >= least, "{count} requests, and at least {least} are needed");
    Ok(())
}

/// Returns the time from the parent's first request to that of its child.
fn first_request_ms(run: &AgentRun) -> Result<f64> {
    let mut first = run.asked.iter().filter(|asked| asked.results == 0).map(|asked| asked.at);
    let (Some(parent), Some(child)) = (first.next(), first.next()) else {
        anyhow::bail!("the child made no request");
    };
    Ok(child.duration_since(parent).as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_told_from_their_parent_by_their_task() {
        let choose = parent_script(3).chooser.unwrap();
        let user = |text: &str| json!({ "role": "user", "content": text });
        let result = json!({ "role": "tool", "content": "x" });
        let answer = |messages: &[Value]| choose(&json!({ "messages": messages }));
        let spawned = answer(&[user("go")]);
        assert!(matches!(spawned, ScriptedAnswer::Tool { count: 3, .. }), "{spawned:?}");
        let spawned = [&[user("go")][..], &vec![result.clone(); 3]].concat();
        assert_eq!(answer(&spawned), ScriptedAnswer::final_message());
        let mut child = vec![user(CHILD_TASK)];
        for _ in 0..CALLS {
            assert!(matches!(answer(&child), ScriptedAnswer::Tool { count: 1, .. }));
            child.push(result.clone());
        }
        assert_eq!(answer(&child), ScriptedAnswer::final_message());
    }
}
