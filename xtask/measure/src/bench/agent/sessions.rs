//! Measures saved sessions: what saving costs a run, appending to a long session, resuming it, and
//! listing many.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use jaato_sessions::{Durability, SessionRecord, SessionStore, record_type};
use jaato_types::SessionId;
use serde_json::json;

use super::agents::{AgentKind, BenchmarkAgents};
use super::script::ModelScript;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// Most that saving adds to the wall time of a run.
const SAVING_MS_MAX: f64 = 1.0;

/// Most that saving adds to the memory of a run.
const SAVING_MIB_MAX: f64 = 1.0;

/// Most that an append to the long session takes, relative to one to an empty session.
const APPEND_TIMES_MAX: f64 = 1.2;

/// Longest time from the start of `chat --resume` of the long session to its end.
const RESUME_MS_MAX: f64 = 100.0;

/// Longest time of a list.
const LIST_MS_MAX: f64 = 30.0;

/// The sessions of the list.
const LISTED: usize = 10_000;

/// The messages of the long session: 1,000,000 tokens of four bytes.
const MESSAGES: usize = 2_000;
const MESSAGE_BYTES: usize = 2_000;

/// The pairs of runs in a round.
const PAIRS: usize = 7;

/// The appends of a measurement.
const APPENDS: usize = 500;

/// The delay of each answer while the memory is observed.
const PAUSE: Duration = Duration::from_millis(40);

/// Measures all of it.
pub fn measure_sessions(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "sessions")?;
    let mut figures = measure_saving(&agents)?;
    let store = SessionStore::new(agents.home().user_folder().join(".local/share/jaato/sessions"));
    let long = write_long_session(&store)?;
    figures.push(measure_append(&store, &long)?);
    figures.extend(measure_resume(&agents, &long)?);
    figures.push(measure_listing(&agents, &store)?);
    Ok(BenchmarkOutcome::Figures(figures))
}

fn session_figure(
    what: &str,
    measured: f64,
    unit: &'static str,
    target: FigureTarget,
) -> BenchmarkFigure {
    BenchmarkFigure::new(&format!("sessions: {what}"), measured, unit, target)
}

/// Runs with and without saving, alternately. The lowest time and the highest memory of each count.
fn measure_saving(agents: &BenchmarkAgents) -> Result<Vec<BenchmarkFigure>> {
    let script = ModelScript::with_command_per_step(&["echo hello"]);
    let kinds = [AgentKind::Jaato, AgentKind::JaatoUnsaved];
    let (mut wall_ms, mut mib) = ([f64::INFINITY; 2], [0.0_f64; 2]);
    for _ in 0..ROUNDS {
        for _ in 0..PAIRS {
            for (at, who) in kinds.into_iter().enumerate() {
                let ended = agents.run_script(who, &script)?.ended;
                wall_ms[at] = wall_ms[at].min(ended.wall.as_secs_f64() * 1e3);
            }
        }
        for (at, who) in kinds.into_iter().enumerate() {
            let (_, seen) = agents.run_with_memory(who, &script.clone().with_pause(PAUSE))?;
            mib[at] = mib[at].max(seen.together as f64 / 1024.0);
        }
    }
    let ([saved_ms, unsaved_ms], [saved_mib, unsaved_mib]) = (wall_ms, mib);
    let (ms, mib) = (saved_ms - unsaved_ms, saved_mib - unsaved_mib);
    Ok(vec![
        session_figure("a run without saving", unsaved_ms, "ms", FigureTarget::None),
        session_figure("saving adds to a run", ms, "ms", FigureTarget::AboutAtMost(SAVING_MS_MAX)),
        session_figure(
            "saving adds to its memory",
            mib,
            "MiB",
            FigureTarget::AtMost(SAVING_MIB_MAX),
        ),
    ])
}

fn session_message(at: usize) -> SessionRecord {
    let role = if at.is_multiple_of(2) { "user" } else { "model" };
    let text = format!("{at} {}", "some words ".repeat(MESSAGE_BYTES / 11));
    let parts = json!([{ "type": "text", "text": text }]);
    SessionRecord::new(record_type::MESSAGE, json!({ "role": role, "parts": parts }))
}

/// Writes a session of 1,000,000 tokens.
fn write_long_session(store: &SessionStore) -> Result<SessionId> {
    let id = SessionId::new("20260101-000000-longlo");
    let mut writer = store.create_session(&id, "/long", None)?;
    for at in 0..MESSAGES {
        writer.append_records([session_message(at)], Durability::Written)?;
    }
    Ok(id)
}

/// Appends to an empty session and to a copy of the long one.
fn measure_append(store: &SessionStore, long: &SessionId) -> Result<BenchmarkFigure> {
    let mut times = [f64::INFINITY; 2];
    for round in 0..ROUNDS {
        let empty = SessionId::new(format!("20260101-00000{round}-emptyy"));
        let copy = SessionId::new(format!("20260101-00000{round}-longer"));
        drop(store.create_session(&empty, "/empty", None)?);
        store.fork_session(long, &copy, None)?;
        for (at, id) in [&empty, &copy].into_iter().enumerate() {
            let mut writer = store.open_session(id, false)?.writer;
            let started = Instant::now();
            for at in 0..APPENDS {
                writer.append_records([session_message(at)], Durability::Written)?;
            }
            times[at] = times[at].min(started.elapsed().as_secs_f64());
        }
        store.delete_session(&empty)?;
        store.delete_session(&copy)?;
    }
    let [empty, long] = times;
    let target = FigureTarget::AtMost(APPEND_TIMES_MAX);
    Ok(session_figure(
        "an append to 1,000,000 tokens, to an empty session",
        long / empty,
        "times",
        target,
    ))
}

/// Resumes the long session in a chat whose input has ended, and starts a chat without a session.
fn measure_resume(agents: &BenchmarkAgents, long: &SessionId) -> Result<[BenchmarkFigure; 2]> {
    let model = ["--model", "openai/scripted"];
    let resumed = ["chat", "--resume", long.as_str()];
    let (mut resumed_ms, mut new_ms) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS * PAIRS {
        resumed_ms = resumed_ms.min(run_timed(agents, &[&resumed[..], &model].concat())?);
        new_ms = new_ms.min(run_timed(agents, &[&["chat"][..], &model].concat())?);
    }
    let target = FigureTarget::AboutAtMost(RESUME_MS_MAX);
    Ok([
        session_figure("a chat whose input has ended", new_ms, "ms", FigureTarget::None),
        session_figure("the same, resuming 1,000,000 tokens", resumed_ms, "ms", target),
    ])
}

fn measure_listing(agents: &BenchmarkAgents, store: &SessionStore) -> Result<BenchmarkFigure> {
    for at in 0..LISTED {
        let id = SessionId::new(format!("20260101-{at:06}-listed"));
        let mut writer = store.create_session(&id, "/listed", None)?;
        writer.append_records([session_message(0)], Durability::Written)?;
    }
    let words = ["session", "list", "--all"];
    // The first one indexes them.
    run_timed(agents, &words)?;
    let mut ms = f64::INFINITY;
    for _ in 0..ROUNDS * PAIRS {
        ms = ms.min(run_timed(agents, &words)?);
    }
    let what = format!("a list of {LISTED} sessions");
    Ok(session_figure(&what, ms, "ms", FigureTarget::AboutAtMost(LIST_MS_MAX)))
}

/// Runs `jaato` to its end. Returns the wall time in milliseconds.
fn run_timed(agents: &BenchmarkAgents, words: &[&str]) -> Result<f64> {
    let mut command = agents.jaato_command(words);
    command
        .env("OPENAI_BASE_URL", agents.server.base_url())
        .env("OPENAI_API_KEY", "for-the-bench")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let started = Instant::now();
    let output = command.output().context("starting `jaato`")?;
    let ms = started.elapsed().as_secs_f64() * 1e3;
    ensure!(
        output.status.success(),
        "`jaato {}` failed: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(ms)
}
