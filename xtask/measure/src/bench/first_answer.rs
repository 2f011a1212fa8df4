//! Measures the README's first command: how long until the model starts to answer, the first time
//! and with its saved prefix, and how much memory it takes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::home::BenchmarkHome;
use super::processes::PeakMemory;
use super::table::{BenchmarkFigure, FigureTarget};
use super::{BenchmarkOutcome, weights};
use xtask::workspace::CargoWorkspace;
use xtask::{child, run};

/// The task in the README.
const TASK: &str = "What operating system am I running on?";

/// The tool that answers it.
const TOOL: &str = "get_environment";

/// The longest time to the first token in a home without the model's cache.
const FIRST_TIME_S_MAX: f64 = 15.0;

/// The longest time to the first token if the saved prefix is read back.
const SAVED_S_MAX: f64 = 3.0;

/// The maximum memory of `jaato` and its helpers.
const MEMORY_GIB_MAX: f64 = 4.25;

/// The same limit if memory is tight.
const TIGHT_MEMORY_GIB_MAX: f64 = 2.75;

/// The variable that the manifest of `provider-local` sets if memory is tight.
const TIGHT: (&str, &str) = ("MISTRALRS_FORCE_AVX2", "1");

/// The maximum number of tokens of the system prompt, tools and examples, with all default tools.
const PREFIX_TOKENS_MAX: f64 = 700.0;

/// The pairs of runs. A pair takes half a minute, and no yardstick needs more of them.
const PAIRS: usize = 2;

/// How often to sample the memory.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The log line of the model's plugin at the first token of an answer.
const FIRST_TOKEN: &str = " provider-local: first token";

/// The measurements of one run.
#[derive(Debug, Default)]
struct FirstAnswerMeasurement {
    first_token_s: f64,
    peak_gib: Option<f64>,
    cached_tokens: f64,
}

/// Runs the command the first time, and again with the saved prefix.
pub fn measure_first_answer(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let jaato = run::build_release(workspace)?;
    let Some(weights) = weights::find_weights(&jaato)? else {
        return Ok(BenchmarkOutcome::Skipped(weights::MISSING.to_owned()));
    };
    let (mut first_s, mut saved_s) = (f64::INFINITY, f64::INFINITY);
    let (mut prefix, mut peak_gib) = (0.0, None);
    for _ in 0..PAIRS {
        let home = home_with_weights(workspace, &weights)?;
        let first = run_first_answer(&home, &jaato, None).context("the first time")?;
        let second = run_first_answer(&home, &jaato, None).context("with the saved prefix")?;
        if second.cached_tokens == 0.0 {
            bail!("the second run did not find the prefix that the first one saved");
        }
        first_s = first_s.min(first.first_token_s);
        saved_s = saved_s.min(second.first_token_s);
        // No part of the task is saved, so the cached tokens are the prefix.
        prefix = second.cached_tokens;
        peak_gib =
            peak_gib.into_iter().chain(first.peak_gib).chain(second.peak_gib).reduce(f64::max);
    }
    let seconds = |what: &str, measured, limit| {
        BenchmarkFigure::new(what, measured, "s", FigureTarget::AboutAtMost(limit))
    };
    let mut figures = vec![
        seconds("first answer: first token, the first time", first_s, FIRST_TIME_S_MAX),
        seconds("first answer: first token, prefix saved", saved_s, SAVED_S_MAX),
        BenchmarkFigure::new(
            "first answer: tokens of the prefix",
            prefix,
            "",
            FigureTarget::AtMost(PREFIX_TOKENS_MAX),
        ),
    ];
    let tight = run_first_answer(&home_with_weights(workspace, &weights)?, &jaato, Some(TIGHT));
    let tight_gib = tight.context("as with little memory")?.peak_gib;
    let peaks = [
        ("first answer: peak memory", peak_gib, MEMORY_GIB_MAX),
        ("first answer: the same where memory is tight", tight_gib, TIGHT_MEMORY_GIB_MAX),
    ];
    for (what, peak, limit) in peaks {
        match peak {
            Some(peak) => {
                figures.push(BenchmarkFigure::new(what, peak, "GiB", FigureTarget::AtMost(limit)))
            }
            None => println!("not measured: this system does not tell a process's peak memory"),
        }
    }
    Ok(BenchmarkOutcome::Figures(figures))
}

/// Creates a home that contains only the weights.
fn home_with_weights(workspace: &CargoWorkspace, weights: &Path) -> Result<BenchmarkHome> {
    let home = BenchmarkHome::new(workspace, "first-answer")?;
    let models = weights.parent().context("the weights have no parent folder")?;
    let (cache, link) = (home.cache_folder(), home.cache_folder().join("models"));
    fs::create_dir_all(&cache).with_context(|| format!("making `{}`", cache.display()))?;
    std::os::unix::fs::symlink(models, &link)
        .with_context(|| format!("linking `{}`", link.display()))?;
    Ok(home)
}

/// Runs the command to its successful end.
fn run_first_answer(
    home: &BenchmarkHome,
    jaato: &Path,
    variable: Option<(&str, &str)>,
) -> Result<FirstAnswerMeasurement> {
    let log = home.cache_folder().join("jaato.log");
    let logged_before = read_log(&log)?.len();
    let mut command = home.isolated_command(jaato);
    command.args(["--offline", "run", "--output", "json", TASK]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).envs(variable);
    let started = SystemTime::now();
    let mut child =
        command.spawn().with_context(|| format!("starting {}", child::command_text(&command)))?;
    let (events, peak_gib) = watch_events(&mut child)?;
    let status = child.wait().context("waiting for `jaato run`")?;
    let text = check_events(&events)?;
    child::check_status(&command, status)?;
    println!("  it answered: {text}");
    let logged = read_log(&log)?;
    let first_token = logged.get(logged_before..).and_then(first_token_seconds);
    let first_token = first_token.with_context(|| {
        format!("the model's plugin logged no first token in `{}`", log.display())
    })?;
    let started = started.duration_since(UNIX_EPOCH).context("the clock stands before 1970")?;
    let usage = events.iter().find(|event| event["event"] == "usage");
    Ok(FirstAnswerMeasurement {
        first_token_s: first_token - started.as_secs_f64(),
        peak_gib,
        cached_tokens: usage.and_then(|usage| usage["cached_tokens"].as_f64()).unwrap_or(0.0),
    })
}

/// Reads the events, and samples the memory between them.
fn watch_events(child: &mut Child) -> Result<(Vec<Value>, Option<f64>)> {
    let lines = child.stdout.take().context("`jaato run` has no standard output")?;
    let (sender, receiver) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(lines).lines() {
            // The receiver has given up.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let (mut events, mut peaks) = (Vec::new(), PeakMemory::default());
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                let line = line.context("reading the events")?;
                events.push(serde_json::from_str(&line).context("reading an event")?);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        peaks.sample_process_tree(child.id());
    }
    // The thread has sent its last line.
    reader.join().ok().context("the reader of events panicked")?;
    Ok((events, peaks.sum_gib()))
}

/// Checks that a fast answer is a right one: a notice came first, then the tool call, and the turn
/// ended well.
fn check_events(events: &[Value]) -> Result<&str> {
    let position = |kind: &str| events.iter().position(|event| event["event"] == kind);
    let last = events.last().filter(|event| event["event"] == "turn_finished");
    let last = last.context("`jaato run` ended without an end of the turn")?;
    if last["outcome"] != "done" {
        bail!("the turn ended badly: {last}");
    }
    let Some(call) = position("tool_call_started").filter(|&at| events[at]["name"] == TOOL) else {
        bail!("the model did not call `{TOOL}` first; it answered: {}", last["text"]);
    };
    if position("notice").is_none_or(|notice| notice > call) {
        bail!("no notice was shown while the model was loaded");
    }
    last["text"].as_str().context("the end of the turn has no text")
}

fn read_log(path: &PathBuf) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error).with_context(|| format!("reading `{}`", path.display())),
    }
}

/// Returns the time of the first token in seconds since 1970, with which each log line starts.
fn first_token_seconds(log: &str) -> Option<f64> {
    let line = log.lines().find(|line| line.contains(FIRST_TOKEN))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample_events() -> Vec<Value> {
        vec![
            json!({"event": "turn_started", "prompt": TASK}),
            json!({"event": "notice", "text": "loading"}),
            json!({"event": "tool_call_started", "name": TOOL}),
            json!({"event": "turn_finished", "outcome": "done", "text": "Linux"}),
        ]
    }

    #[test]
    fn good_run_calls_the_tool_shows_a_notice_and_ends_normally() {
        assert_eq!(check_events(&sample_events()).unwrap(), "Linux");
        for (left_out, expected) in [
            (1, "no notice was shown"),
            (2, "the model did not call `get_environment` first"),
            (3, "without an end of the turn"),
        ] {
            let mut events = sample_events();
            events.remove(left_out);
            let error = check_events(&events).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let mut events = sample_events();
        events[3]["outcome"] = json!("failed");
        assert!(check_events(&events).is_err());
    }

    #[test]
    fn first_token_time_is_read_from_the_first_matching_log_line() {
        let log = "17.250 warn host: x\n18.125 debug provider-local: first token after 9 ms\n\
                   19.000 debug provider-local: first token after 1 ms\n";
        assert_eq!(first_token_seconds(log), Some(18.125));
        assert_eq!(first_token_seconds("17.250 warn host: x\n"), None);
    }
}
