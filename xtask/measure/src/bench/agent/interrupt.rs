//! Measures how long after Ctrl-C and `kill -9` all processes of `jaato` are gone, whatever it was
//! doing.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::wait::WaitStatus;

use super::agents::{AgentKind, BenchmarkAgents};
use super::script::{ModelScript, ScriptedAnswer};
use super::tree::ProcessTree;
use crate::bench::processes::descendants_of;
use crate::bench::table::{BenchmarkFigure, FigureTarget};
use crate::bench::{BenchmarkOutcome, ROUNDS};
use xtask::workspace::CargoWorkspace;

/// The longest time after Ctrl-C until all processes are gone.
const INTERRUPTED_MS_MAX: f64 = 100.0;

/// The longest time after `kill -9` of the host until all processes are gone.
const KILLED_MS_MAX: f64 = 100.0;

/// The exit code after Ctrl-C.
const CANCELLED: i32 = 130;

/// How long `jaato` may take to reach the interrupted state.
const READY_S_MAX: Duration = Duration::from_secs(20);

/// The time between an observable event, such as a request or a file, and the state to interrupt.
const SETTLE: Duration = Duration::from_millis(100);

/// Processes that are still alive after this time will never end.
const GONE_S_MAX: Duration = Duration::from_secs(5);

/// How often to check for a file.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The activity at the time of the signal.
struct InterruptCase {
    name: &'static str,
    /// The command of a call. `FILE` is the file to which it writes the process id that must be
    /// gone.
    command: Option<&'static str>,
    /// Whether the stream hangs, after the call if there is one. Otherwise the call is running.
    hangs: bool,
}

const CASES: &[InterruptCase] = &[
    InterruptCase { name: "the stream hangs", command: None, hangs: true },
    InterruptCase {
        name: "a tool runs",
        command: Some("echo $$ > FILE; exec sleep 300"),
        hangs: false,
    },
    InterruptCase {
        name: "a tool that ignores signals",
        command: Some("trap '' INT TERM HUP; echo $$ > FILE; sleep 300; sleep 300"),
        hangs: false,
    },
    InterruptCase {
        name: "what left its session",
        command: Some("env -i setsid sh -c '(sleep 300 & echo $! > FILE)'"),
        hangs: true,
    },
];

/// The signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InterruptSignal {
    Interrupt,
    Kill,
}

/// The measurement of one end.
struct InterruptMeasurement {
    gone: Duration,
    left: usize,
}

/// Interrupts and kills each case.
pub fn measure_interrupts(workspace: &CargoWorkspace) -> Result<BenchmarkOutcome> {
    let agents = BenchmarkAgents::new(workspace, "interrupt")?;
    let (mut figures, mut left) = (Vec::new(), 0);
    for (signal, name, limit) in [
        (InterruptSignal::Interrupt, "Ctrl-C", INTERRUPTED_MS_MAX),
        (InterruptSignal::Kill, "kill -9", KILLED_MS_MAX),
    ] {
        for case in CASES {
            let mut best_ms = f64::INFINITY;
            for _ in 0..ROUNDS {
                let ending = interrupt_case(&agents, case, signal)
                    .with_context(|| format!("{name} while: {}", case.name))?;
                best_ms = best_ms.min(ending.gone.as_secs_f64() * 1e3);
                left += ending.left;
            }
            let what = format!("interrupt: {name}, {}", case.name);
            figures.push(BenchmarkFigure::new(
                &what,
                best_ms,
                "ms",
                FigureTarget::AboutAtMost(limit),
            ));
        }
    }
    let what = "interrupt: processes left";
    figures.push(BenchmarkFigure::new(what, left as f64, "", FigureTarget::AtMost(0.0)));
    Ok(BenchmarkOutcome::Figures(figures))
}

fn interrupt_case(
    agents: &BenchmarkAgents,
    case: &InterruptCase,
    signal: InterruptSignal,
) -> Result<InterruptMeasurement> {
    let file = agents.output_path("pid");
    if file.exists() {
        fs::remove_file(&file).with_context(|| format!("removing `{}`", file.display()))?;
    }
    let tree = agents.start_agent(AgentKind::Jaato, &case_script(case, &file))?;
    let ready = wait_until_ready(agents, case, &file);
    let seen: Vec<u32> = descendants_of(std::process::id());
    let sent = match signal {
        InterruptSignal::Interrupt => tree.send_interrupt(),
        InterruptSignal::Kill => tree.kill_command(),
    };
    wait_for_exit(agents, tree, signal, ready, &seen, sent)
}

/// Waits for the processes, even after an error.
fn wait_for_exit(
    agents: &BenchmarkAgents,
    tree: ProcessTree,
    signal: InterruptSignal,
    ready: Result<Option<u32>>,
    seen: &[u32],
    sent: Result<Instant>,
) -> Result<InterruptMeasurement> {
    let ended = tree.wait_for_end(GONE_S_MAX)?;
    let told = ready
        .with_context(|| format!("it was not ready: {:?}", agents.describe_failure(&ended)))?;
    let sent = sent?;
    let well = match signal {
        InterruptSignal::Interrupt => matches!(ended.status, WaitStatus::Exited(_, CANCELLED)),
        InterruptSignal::Kill => matches!(ended.status, WaitStatus::Signaled(..)),
    };
    if !well {
        bail!("it ended otherwise: {}", agents.describe_failure(&ended)?);
    }
    let alive = |process: &&u32| Path::new("/proc").join(process.to_string()).exists();
    let still_there = seen.iter().chain(&told).filter(alive).count();
    Ok(InterruptMeasurement { gone: ended.gone - sent, left: ended.killed + still_there })
}

fn case_script(case: &InterruptCase, file: &Path) -> ModelScript {
    let mut answers = Vec::new();
    if let Some(command) = case.command {
        answers.push(ScriptedAnswer::Calls(vec![
            command.replace("FILE", &file.display().to_string()),
        ]));
    }
    answers.push(if case.hangs { ScriptedAnswer::Hang } else { ScriptedAnswer::final_message() });
    ModelScript::from_answers(answers)
}

/// Returns the process id that the command wrote, if there is one.
fn wait_until_ready(
    agents: &BenchmarkAgents,
    case: &InterruptCase,
    file: &Path,
) -> Result<Option<u32>> {
    let start = Instant::now();
    while case.hangs && !agents.server.next_request(READY_S_MAX)?.hangs {}
    let mut told = None;
    while case.command.is_some() && told.is_none() {
        if start.elapsed() > READY_S_MAX {
            bail!("the command wrote no process id within {READY_S_MAX:?}");
        }
        // The file does not exist yet, or is still empty.
        told = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
        std::thread::sleep(LOOK_EVERY);
    }
    std::thread::sleep(SETTLE);
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_case_hangs_in_the_model_or_in_its_call() {
        let scripts: Vec<ModelScript> =
            CASES.iter().map(|case| case_script(case, Path::new("/tmp/pid"))).collect();
        assert_eq!(scripts[0].answers, [ScriptedAnswer::Hang]);
        let call = |command: &str| ScriptedAnswer::Calls(vec![command.to_owned()]);
        let runs = call("echo $$ > /tmp/pid; exec sleep 300");
        assert_eq!(scripts[1].answers, [runs, ScriptedAnswer::final_message()]);
        assert_eq!(scripts[3].answers[1], ScriptedAnswer::Hang);
    }
}
