//! Measures the gcs: how much of a long conversation each leaves out, and how many of the facts in
//! it the model still gets, in the request or by one call of `recall`.
//!
//! The conversations are generated, one of them around the turns of a real export. The scripted
//! model works like a real one in two ways: it runs a command again if no trace of the first run is
//! left, and it calls `recall` with the words of a question whose answer it does not see.

mod conversation;
mod model;

use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use jaato_sessions::{Durability, SessionRecord, SessionStore, record_type};
use jaato_types::SessionId;
use serde_json::{Value, json};

use self::conversation::PlantedConversation;
use self::model::{ForgetfulModel, SummaryKind};
use super::agents::BenchmarkAgents;
use super::script::ModelScript;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// The gcs, each with whether it asks a model for summaries.
const GCS: [(&str, bool); 4] =
    [("truncate", false), ("summarize", true), ("hybrid", true), ("budget", false)];

/// The window of the scripted model in tokens. Its first part holds the prompt and the tools.
const WINDOW_TOKENS: u64 = 24_000;

/// The least collections of the long conversation.
const COLLECTIONS_MIN: f64 = 20.0;

/// The least share of facts that hybrid with recall gives the model.
const FACTS_PERCENT_MIN: f64 = 95.0;

/// The most that hybrid sends of a history, in percent.
const SENT_PERCENT_MAX: f64 = 50.0;

/// Most time to plan and apply over the large history, relative to writing and reading it as JSON.
const PLAN_TIMES_MAX: f64 = 3.0;

/// The messages of the large history: 1,000,000 tokens of four bytes.
const MESSAGES: usize = 10_000;
const MESSAGE_BYTES: usize = 400;

/// Measures all of it.
pub fn measure_gc(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "gc")?;
    let mut figures = Vec::new();
    for conversation in PlantedConversation::all_conversations() {
        for (gc, summarizes) in GCS {
            let kinds: &[SummaryKind] = match summarizes {
                true => &[SummaryKind::Good, SummaryKind::Empty],
                false => &[SummaryKind::Good],
            };
            for &summaries in kinds {
                let result = run_conversation(&agents, &conversation, gc, summaries)?;
                figures.extend(result.benchmark_figures(&conversation, gc, summaries));
            }
        }
    }
    figures.extend(measure_large_history(&agents)?);
    Ok(BenchmarkOutcome::Figures(figures))
}

/// The result of one conversation.
struct ConversationResult {
    model: Arc<ForgetfulModel>,
    collections: usize,
    seconds: f64,
}

/// Has the conversation in one chat.
fn run_conversation(
    agents: &BenchmarkAgents,
    conversation: &PlantedConversation,
    gc: &str,
    summaries: SummaryKind,
) -> Result<ConversationResult> {
    let model = Arc::new(ForgetfulModel::new(conversation.clone(), summaries));
    let choosing = Arc::clone(&model);
    agents.server.play_script(ModelScript::from_chooser(Arc::new(move |body| {
        choosing.answer_request(body)
    })));
    write_gc_config(agents, gc)?;
    let mut input = conversation.prompt_lines().join("\n");
    input.push('\n');
    let started = Instant::now();
    let stderr = run_chat(agents, &["--no-save", "--yes"], &input)?;
    let seconds = started.elapsed().as_secs_f64();
    let collections = stderr.lines().filter(|line| line.starts_with(&format!("gc {gc}: "))).count();
    ensure!(
        model.has_been_asked_all(),
        "{} with gc-{gc}: the chat ended early:\n{stderr}",
        conversation.name
    );
    Ok(ConversationResult { model, collections, seconds })
}

impl ConversationResult {
    fn benchmark_figures(
        &self,
        conversation: &PlantedConversation,
        gc: &str,
        summaries: SummaryKind,
    ) -> Vec<BenchmarkFigure> {
        let about = match summaries {
            SummaryKind::Good => "",
            SummaryKind::Empty => ", summaries without facts",
        };
        let figure = |what: &str, measured: f64, unit: &'static str, target: FigureTarget| {
            let name = format!("gc: {}, {gc}{about}: {what}", conversation.name);
            BenchmarkFigure::new(&name, measured, unit, target)
        };
        let least = |least: f64, applies: bool| match applies {
            true => FigureTarget::AtLeast(least),
            false => FigureTarget::None,
        };
        let most = |most: f64, applies: bool| match applies {
            true => FigureTarget::AtMost(most),
            false => FigureTarget::None,
        };
        let seen = self.model.seen_facts();
        let is_hybrid = gc == "hybrid";
        let is_long = conversation.is_long;
        let facts = percent_of(seen.facts_sent + seen.facts_recalled, seen.facts);
        let constraints = percent_of(seen.constraints_sent, seen.constraints);
        let sent = percent_of(seen.last_bytes, seen.all_bytes);
        vec![
            figure("collections", self.collections as f64, "", least(COLLECTIONS_MIN, is_long)),
            figure("time", self.seconds, "s", FigureTarget::None),
            figure(
                "history that is sent at the end",
                sent,
                "%",
                most(SENT_PERCENT_MAX, is_hybrid && is_long),
            ),
            figure("constraints in the request", constraints, "%", FigureTarget::AtLeast(100.0)),
            figure(
                "facts in the request",
                percent_of(seen.facts_sent, seen.facts),
                "%",
                FigureTarget::None,
            ),
            figure("facts with one recall", facts, "%", least(FACTS_PERCENT_MIN, is_hybrid)),
            figure("calls that run again", seen.calls_again as f64, "", FigureTarget::AtMost(0.0)),
        ]
    }
}

fn percent_of(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn write_gc_config(agents: &BenchmarkAgents, gc: &str) -> Result<()> {
    let folder = agents.home().user_folder().join(".config/jaato");
    fs::create_dir_all(&folder).with_context(|| format!("making `{}`", folder.display()))?;
    let text = format!(
        "[gc]\nplugin = \"{gc}\"\npreserve_recent_turns = 3\n\
        [models.\"openai/scripted\"]\ncontext_limit = {WINDOW_TOKENS}\n"
    );
    let file = folder.join("config.toml");
    fs::write(&file, text).with_context(|| format!("writing `{}`", file.display()))
}

/// Runs a chat with this input. Returns its standard error.
fn run_chat(agents: &BenchmarkAgents, words: &[&str], input: &str) -> Result<String> {
    let mut command = agents.jaato_command(&[&["chat"][..], words].concat());
    command
        .args(["--model", "openai/scripted"])
        .env("OPENAI_BASE_URL", agents.server.base_url())
        .env("OPENAI_API_KEY", "for-the-bench")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("starting `jaato`")?;
    let mut pipe = child.stdin.take().context("the chat has no standard input")?;
    let input = input.to_owned();
    // Written on another thread, because both pipes can fill up.
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().context("waiting for `jaato`")?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "`jaato chat` failed: {stderr}");
    writer.join().ok().context("writing the prompts panicked")?.context("writing the prompts")?;
    Ok(stderr)
}

/// Collects in a history of 1,000,000 tokens in 10,000 messages. The yardstick writes this history
/// as JSON and reads it again.
fn measure_large_history(agents: &BenchmarkAgents) -> Result<Vec<BenchmarkFigure>> {
    write_gc_config(agents, "truncate")?;
    let store = SessionStore::new(agents.home().user_folder().join(".local/share/jaato/sessions"));
    let id = SessionId::new("20260101-000000-gclong");
    let mut writer =
        store.create_session(&id, &agents.home().work_folder().to_string_lossy(), None)?;
    let records: Vec<SessionRecord> = (0..MESSAGES).map(history_message).collect();
    writer.append_records(records.iter().cloned(), Durability::Written)?;
    drop(writer);
    let (mut json_ms, mut opened_ms, mut collected_ms) =
        (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    let bodies: Vec<Value> = (0..MESSAGES).map(message_body).collect();
    for round in 0..ROUNDS {
        let started = Instant::now();
        let text = serde_json::to_string(&bodies)?;
        let read: Vec<Value> = serde_json::from_str(&text)?;
        ensure!(read.len() == MESSAGES, "the history changed");
        json_ms = json_ms.min(started.elapsed().as_secs_f64() * 1e3);
        let resume = ["--resume", id.as_str()];
        let started = Instant::now();
        run_chat(agents, &resume, "")?;
        opened_ms = opened_ms.min(started.elapsed().as_secs_f64() * 1e3);
        let copy = SessionId::new(format!("20260101-00000{round}-gccopy"));
        store.fork_session(&id, &copy, None)?;
        let started = Instant::now();
        let stderr = run_chat(agents, &["--resume", copy.as_str()], "/gc\n")?;
        collected_ms = collected_ms.min(started.elapsed().as_secs_f64() * 1e3);
        ensure!(stderr.contains("old messages left out"), "nothing was collected: {stderr}");
    }
    let times = (collected_ms - opened_ms) / json_ms;
    let figure = |what: &str, measured: f64, unit: &'static str, target: FigureTarget| {
        BenchmarkFigure::new(&format!("gc: 10,000 messages: {what}"), measured, unit, target)
    };
    let target = FigureTarget::AboutAtMost(PLAN_TIMES_MAX);
    Ok(vec![
        figure("written and read as JSON", json_ms, "ms", FigureTarget::None),
        figure("a collection, to that", times, "times", target),
    ])
}

fn message_body(at: usize) -> Value {
    let role = if at.is_multiple_of(2) { "user" } else { "model" };
    let text = format!("{at} {}", "some words ".repeat(MESSAGE_BYTES / 11));
    json!({ "role": role, "parts": [{ "type": "text", "text": text }] })
}

fn history_message(at: usize) -> SessionRecord {
    SessionRecord::new(record_type::MESSAGE, message_body(at))
}
