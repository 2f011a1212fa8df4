//! `bench`: measures the promises of the design and compares them with the targets.
//!
//! Machines differ and are busy with other work. A target is therefore a ratio to a yardstick of
//! the same run if possible. The best of several rounds counts, because noise only slows down.

mod agent;
mod files;
mod first_answer;
mod home;
mod library;
mod policy;
mod processes;
mod stolen_time;
mod table;
mod weights;
mod yardstick;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::stolen_time::ProcessorTicks;
use self::table::{BenchmarkFigure, FigureVerdict};
use xtask::workspace::CargoWorkspace;

/// The rounds of a comparison.
const ROUNDS: usize = 5;

/// A benchmark that can run alone.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    measure: fn(&CargoWorkspace) -> Result<BenchmarkOutcome>,
}

/// The outcome of a benchmark.
enum BenchmarkOutcome {
    Figures(Vec<BenchmarkFigure>),
    /// Measured with a bad yardstick or on a bad machine: neither met nor missed.
    Void {
        figures: Vec<BenchmarkFigure>,
        why: String,
    },
    /// It cannot run here. The line explains why and what to do.
    Skipped(String),
}

/// Measures only on Linux, where process trees can be followed to their end, with their time and
/// memory.
fn measure_on_linux(
    measure: fn(&CargoWorkspace) -> Result<BenchmarkOutcome>,
    workspace: &CargoWorkspace,
) -> Result<BenchmarkOutcome> {
    if cfg!(target_os = "linux") {
        return measure(workspace);
    }
    Ok(BenchmarkOutcome::Skipped("following processes works only on Linux".to_owned()))
}

const BENCHES: &[Benchmark] = &[
    Benchmark {
        name: "files",
        about: "confined files against plain calls, walks and patterns against `ignore`",
        measure: files::measure_files,
    },
    Benchmark {
        name: "policy",
        about: "a decision over 500 rules and a command line of 4 KiB",
        measure: policy::measure_policy,
    },
    Benchmark {
        name: "library",
        about: "100 embedded sessions that stream at once, against plain channels, and opening one",
        measure: |workspace| measure_on_linux(library::measure_library, workspace),
    },
    Benchmark {
        name: "first-answer",
        about: "the README's first command: first token, memory, tokens of the prefix",
        measure: first_answer::measure_first_answer,
    },
    Benchmark {
        name: "run",
        about: "`jaato run` with one tool call and an answer, against an agent on rig-core",
        measure: |workspace| measure_on_linux(agent::measure_cost, workspace),
    },
    Benchmark {
        name: "shell-calls",
        about: "twenty shell calls in a row and eight side by side, against the same agent",
        measure: |workspace| measure_on_linux(agent::measure_shell_calls, workspace),
    },
    Benchmark {
        name: "agents",
        about: "100 subagents with ten calls each, against the same calls in one session; until the first request",
        measure: |workspace| measure_on_linux(agent::measure_children, workspace),
    },
    Benchmark {
        name: "sessions",
        about: "what saving costs a run, appending to a long session, resuming it, listing many",
        measure: |workspace| measure_on_linux(agent::measure_sessions, workspace),
    },
    Benchmark {
        name: "gc",
        about: "what each gc leaves out of long conversations, and which facts in them the model still gets",
        measure: |workspace| measure_on_linux(agent::measure_gc, workspace),
    },
    Benchmark {
        name: "mcp",
        about: "calls of an MCP server's tools, also side by side, and a start with ten servers of which one hangs",
        measure: |workspace| measure_on_linux(agent::measure_mcp, workspace),
    },
    Benchmark {
        name: "flood",
        about: "a command that prints 22 MB: memory, what reaches the model, what is kept",
        measure: |workspace| measure_on_linux(agent::measure_flood, workspace),
    },
    Benchmark {
        name: "interrupt",
        about: "Ctrl-C and `kill -9` in mid-stream and while a tool runs: until nothing is left",
        measure: |workspace| measure_on_linux(agent::measure_interrupts, workspace),
    },
];

/// The load per processor at which the machine counts as busy.
const BUSY_LOAD_MIN: f64 = 0.5;

/// The exit code if a benchmark is void and nothing worse happened.
const EXIT_VOID: u8 = 3;

/// Runs the chore.
pub fn run_bench_chore(words: Vec<OsString>) -> Result<ExitCode> {
    let Some(chosen) = parse_selection(words)? else {
        print!("{}", help_text());
        return Ok(ExitCode::SUCCESS);
    };
    let workspace = CargoWorkspace::load()?;
    let (busy, ticks) = (busy_warning(), ProcessorTicks::read_now());
    let (mut figures, mut lines) = (Vec::new(), Vec::new());
    let (mut failed, mut voided) = (0, 0);
    for bench in chosen {
        println!("measuring {}: {}", bench.name, bench.about);
        match (bench.measure)(&workspace) {
            Ok(BenchmarkOutcome::Figures(measured)) => figures.extend(measured),
            Ok(BenchmarkOutcome::Void { figures: measured, why }) => {
                voided += 1;
                figures.extend(measured.into_iter().map(BenchmarkFigure::without_target));
                lines.push(format!("VOID: {}: {why}", bench.name));
            }
            Ok(BenchmarkOutcome::Skipped(why)) => {
                lines.push(format!("SKIPPED: {}: {why}", bench.name))
            }
            Err(error) => {
                failed += 1;
                lines.push(format!("FAILED: {}: {error:#}", bench.name));
            }
        }
    }
    print!("\n{}", table::render_table(&figures));
    let stolen = ticks.and_then(|before| before.stolen_time_warning(&ProcessorTicks::read_now()?));
    lines.iter().chain(&busy).chain(&stolen).for_each(|line| println!("{line}"));
    let missed = figures
        .iter()
        .filter(|figure| figure.compare_with_target() == FigureVerdict::Missed)
        .count();
    if missed > 0 {
        println!("{missed} targets missed");
    }
    Ok(match (missed + failed, voided) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::from(EXIT_VOID),
        _ => ExitCode::FAILURE,
    })
}

/// Returns a warning if the machine is busy and the system reports it (Linux). Must be called
/// before anything is built.
fn busy_warning() -> Option<String> {
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    let processors = std::thread::available_parallelism().ok()?.get();
    load_warning(load.split(' ').next()?.parse().ok()?, processors)
}

fn load_warning(load: f64, processors: usize) -> Option<String> {
    (load > BUSY_LOAD_MIN * processors as f64).then(|| {
        let processors = if processors == 1 {
            "1 processor".to_owned()
        } else {
            format!("{processors} processors")
        };
        format!("BUSY: a load of {load} on {processors} before the first bench; times are too long")
    })
}

/// Returns the named benchmarks, or all of them. Returns `None` for `--help`.
fn parse_selection(words: Vec<OsString>) -> Result<Option<Vec<&'static Benchmark>>> {
    use lexopt::prelude::*;

    let mut named = Vec::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Value(name) => name,
            Long("help") | Short('h') => return Ok(None),
            _ => return Err(argument.unexpected().into()),
        };
        let Some(bench) = BENCHES.iter().find(|bench| name == bench.name) else {
            let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
            bail!("unknown bench `{}`; choose from: {}", name.to_string_lossy(), names.join(", "))
        };
        named.push(bench);
    }
    Ok(Some(if named.is_empty() { BENCHES.iter().collect() } else { named }))
}

fn help_text() -> String {
    let mut text = String::from(
        "cargo xtask bench [NAME…]\n\n\
         measure, and compare with the targets; exit code 1 when one is missed, 3 when a\n\
         measurement is void\n\n",
    );
    for bench in BENCHES {
        text.push_str(&format!("  {}\n      {}\n", bench.name, bench.about));
    }
    text.push_str(
        "\nA ratio to a yardstick of the same run, memory and counts miss beyond their targets. A\n\
         time without a yardstick depends on the machine: it misses beyond twice its target.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected_names(line: &str) -> Vec<&'static str> {
        let words = line.split_whitespace().map(OsString::from).collect();
        parse_selection(words).unwrap().unwrap().iter().map(|bench| bench.name).collect()
    }

    #[test]
    fn all_benches_run_unless_some_are_named() {
        let all: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        assert_eq!(selected_names(""), all);
        assert_eq!(selected_names("policy run"), ["policy", "run"]);
        let error = parse_selection(vec!["mpc".into()]).err().unwrap().to_string();
        assert!(error.starts_with("unknown bench `mpc`; choose from: "), "{error}");
    }

    #[test]
    fn busy_machine_gives_a_warning() {
        assert_eq!(load_warning(1.0, 2), None);
        let line = "BUSY: a load of 1.1 on 2 processors before the first bench; times are too long";
        assert_eq!(load_warning(1.1, 2).unwrap(), line);
    }

    #[test]
    fn help_names_every_bench_and_is_no_error() {
        for word in ["-h", "--help"] {
            assert!(parse_selection(vec!["run".into(), word.into()]).unwrap().is_none());
        }
        let text = help_text();
        assert!(BENCHES.iter().all(|bench| text.contains(bench.about)), "{text}");
    }
}
