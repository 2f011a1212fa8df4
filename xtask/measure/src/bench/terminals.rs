//! What terminals cost: a flood against the emulator alone and a bare reader, 64 at once, and the
//! wait for a result.

use std::ffi::OsString;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::installed::Installed;
use super::processes::{descendants_of, processor_ns, pss_kib};
use super::table::{Figure, Target, median};
use super::yardstick::figure;
use super::{Outcome, ROUNDS};
use crate::batch::Batch;
use xtask::child;
use xtask::workspace::Workspace;

/// A flood through a session, in hundredths of the slower of its two halves.
const FLOOD_PERCENT_MIN: f64 = 70.0;
/// A call while others flood.
const ANSWER_MS_MAX: f64 = 50.0;
/// All terminals and screens, with all processes of jaato: those of the programs count too.
const MEMORY_MIB_MAX: f64 = 128.0;
/// What floods may add once their screens are full.
const GROWTH_MIB_MAX: f64 = 8.0;
/// Processor time of a second in which nothing happens: one tick of the clock by which systems
/// count it.
const IDLE_MS_MAX: f64 = 10.0;
/// From the prompt to the result.
const STEP_MS_MAX: f64 = 10.0;
/// Against who waits for silence.
const SILENCE_MS: f64 = 500.0;
const SILENCE_TIMES_MIN: f64 = 20.0;

/// Bytes of the flood.
const FLOOD_BYTES: usize = 100_000_000;
const LINE: &str = "2026-01-01T00:00:00Z info worker 17 has taken job 4711 and ended it well";

const TERMINALS: usize = 64;
const FLOODS: usize = 8;
/// Calls of each terminal that does not flood.
const ECHOES: usize = 4;
/// Steps of each program, of which the median counts.
const STEPS: usize = 30;

const CONFIG: &str = "version = 1\n[plugins.tool-interactive-shell]\nmax_sessions = 64\n";

/// Measures terminals.
pub fn terminals(workspace: &Workspace) -> Result<Outcome> {
    let plugins = ["environment-local", "tool-interactive-shell"];
    let installed = Installed::new(workspace, "terminals", &plugins, &[], CONFIG)?;
    let mut figures = flood(workspace, &installed)?;
    figures.extend(many(&installed)?);
    figures.extend(steps(&installed)?);
    Ok(Outcome::Figures(figures))
}

fn start(installed: &Installed) -> Result<Batch> {
    // A prompt of one's own may do anything.
    installed.start(&[("PS1", OsString::from("$ ")), ("ENV", OsString::new())], &[])
}

fn spawn(session: &mut Batch, command: &str) -> Result<String> {
    let told = session.call("shell_spawn", &json!({ "command": command }))?;
    let id = told["session_id"].as_str().context("`shell_spawn` gave no session")?;
    Ok(id.to_owned())
}

fn type_line(session: &mut Batch, id: &str, line: &str, timeout: f64) -> Result<(f64, Value)> {
    let input = json!({ "session_id": id, "input": format!("{line}\n"), "timeout": timeout });
    let begun = Instant::now();
    let told = session.call("shell_input", &input)?;
    Ok((begun.elapsed().as_secs_f64() * 1e3, told))
}

/// `cat` of much text.
fn flood(workspace: &Workspace, installed: &Installed) -> Result<Vec<Figure>> {
    let file = installed.file("flood");
    let lines = FLOOD_BYTES.div_ceil(LINE.len() + 1);
    fs::write(&file, format!("{LINE}\n").repeat(lines))
        .with_context(|| format!("writing `{}`", file.display()))?;
    let mut best: Option<(f64, f64, f64)> = None;
    for _ in 0..ROUNDS {
        let mut alone = child::cargo(&workspace.root);
        alone.args(["run", "--quiet", "--release", "-p", "tool-interactive-shell"]);
        alone.args(["--example", "terminal_bench", "--"]).arg(&file);
        let told = child::output(&mut alone)?;
        let round = (
            flood_ms(installed, lines)?,
            figure(&told, "emulator_ms")?,
            figure(&told, "reader_ms")?,
        );
        let score = |(ours, emulator, reader): (f64, f64, f64)| emulator.max(reader) / ours;
        if best.is_none_or(|best| score(round) > score(best)) {
            best = Some(round);
        }
    }
    let (ours, emulator, reader) = best.context("there is a round")?;
    let speed = |ms: f64| FLOOD_BYTES as f64 / 1e3 / ms;
    Ok(vec![
        Figure::new("terminals: 100 MB, the emulator", speed(emulator), "MB/s", Target::None),
        Figure::new("terminals: 100 MB, a bare reader", speed(reader), "MB/s", Target::None),
        Figure::new(
            "terminals: 100 MB through a session, to the slower",
            100.0 * emulator.max(reader) / ours,
            "%",
            Target::AtLeast(FLOOD_PERCENT_MIN),
        ),
    ])
}

fn flood_ms(installed: &Installed, lines: usize) -> Result<f64> {
    let mut session = start(installed)?;
    let id = spawn(&mut session, "sh")?;
    let (took, told) = type_line(&mut session, &id, "cat flood", 30.0)?;
    let file = told["output_file"].as_str().context("the flood was not cut")?;
    let whole = fs::read(file)?;
    session.end()?;
    let count = whole.iter().filter(|byte| **byte == b'\n').count();
    let is_ready = told["reason"] == "waiting" || told["reason"] == "prompt";
    if count != lines || !is_ready {
        bail!("the flood did not come whole: {}, {count} lines, not {lines}", told["reason"]);
    }
    Ok(took)
}

/// As many terminals as there may be, some of them flooding.
fn many(installed: &Installed) -> Result<Vec<Figure>> {
    let mut session = start(installed)?;
    let root = session.id();
    let ids: Vec<String> =
        (0..TERMINALS).map(|_| spawn(&mut session, "sh")).collect::<Result<_>>()?;
    let idle_ms = idle_ms(root)?;
    let (floods, others) = ids.split_at(FLOODS);
    for id in floods {
        type_line(&mut session, id, "yes", 0.0)?;
    }
    let mut longest: f64 = 0.0;
    let mut before = 0.0;
    for round in 0..ECHOES {
        for id in others {
            let word = format!("moon-{round}-{id}");
            let (took, told) = type_line(&mut session, id, &format!("echo {word}"), 10.0)?;
            if told["output"] != format!("{word}\n$ ") {
                bail!("`echo {word}` came to {told}");
            }
            longest = longest.max(took);
        }
        if round == 0 {
            // The screens are full by then.
            before = memory_mib(root);
        }
    }
    let after = memory_mib(root);
    session.end()?;
    Ok(vec![
        Figure::new(
            "terminals: 64 idle for a second, processor time",
            idle_ms,
            "ms",
            Target::AtMost(IDLE_MS_MAX),
        ),
        Figure::new(
            "terminals: longest `echo` of 56, beside 8 `yes`",
            longest,
            "ms",
            Target::AboutAtMost(ANSWER_MS_MAX),
        ),
        Figure::new("terminals: memory of all 64", after, "MiB", Target::AtMost(MEMORY_MIB_MAX)),
        Figure::new(
            "terminals: memory, growth while `yes` runs",
            after - before,
            "MiB",
            Target::AtMost(GROWTH_MIB_MAX),
        ),
    ])
}

fn tree(root: u32) -> Vec<u32> {
    let mut all = descendants_of(root);
    all.push(root);
    all
}

fn memory_mib(root: u32) -> f64 {
    pss_kib(&tree(root)) as f64 / 1024.0
}

/// Processor time of all processes over a second; of a few seconds the quietest.
fn idle_ms(root: u32) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let before = processor_ns(&tree(root)).context("processor time cannot be seen")?;
        std::thread::sleep(Duration::from_secs(1));
        let after = processor_ns(&tree(root)).context("processor time cannot be seen")?;
        least = least.min(after.saturating_sub(before) as f64 / 1e6);
    }
    Ok(least)
}

/// Steps of programs that answer at once: what they take is nearly all ours.
fn steps(installed: &Installed) -> Result<Vec<Figure>> {
    let programs = [
        ("bash --norc --noprofile", "bash", "echo $((6 * 7))"),
        ("python3 -q", "python3", "6 * 7"),
        ("sqlite3", "sqlite3", "select 6 * 7;"),
    ];
    let mut session = start(installed)?;
    let mut all = Vec::new();
    for (command, program, line) in programs {
        if !is_there(program) {
            println!("not measured: there is no `{program}`");
            continue;
        }
        let id = spawn(&mut session, command)?;
        for _ in 0..STEPS {
            let (took, told) = type_line(&mut session, &id, line, 10.0)?;
            if !told["output"].as_str().is_some_and(|text| text.contains("42\n")) {
                bail!("`{line}` of `{program}` came to {told}");
            }
            all.push(took);
        }
        session.call("shell_close", &json!({ "session_id": id }))?;
    }
    session.end()?;
    let step = median(all);
    Ok(vec![
        Figure::new(
            "terminals: a step of a shell, Python, SQLite",
            step,
            "ms",
            Target::AboutAtMost(STEP_MS_MAX),
        ),
        Figure::new(
            "terminals: 500 ms of silence, to that",
            SILENCE_MS / step,
            "times",
            Target::AtLeast(SILENCE_TIMES_MIN),
        ),
    ])
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
