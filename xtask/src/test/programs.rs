//! Runs the workspace's test programs in parallel and times each of their tests.
//!
//! `cargo test` runs one program after the other. Most tests of the binary wait for processes,
//! which would leave half of the machine idle. Here, two programs run at a time, and the tests of
//! the binary use more threads than there are processors.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use super::isolated;
use super::tally::TestTally;
use crate::artifacts::{self, TestProgram};
use crate::child;

/// The tests of the binary that run alone at the end, because they count processes or measure time.
const SERIAL: &str = "jaato serial";

/// The programs that run at the same time: one that computes and one that waits use two processors.
const PROGRAMS_AT_ONCE: usize = 2;

/// The tests of the binary that run at the same time. They wait for processes, silence and
/// deadlines.
const THREADS_OF_THE_BINARY: &str = "8";

/// The program with the tests of the binary.
const BINARY: &str = "jaato it";

/// The programs that run alone at the end. The last one loads the machine for minutes.
const ALONE: [&str; 2] = [SERIAL, "jaato heavy"];

/// The settings of all programs in a run.
#[derive(Clone)]
pub struct TestProgramSettings<'a> {
    /// Parts of the names of the tests to run. If empty, all tests run.
    pub filters: Vec<&'a str>,
    /// Parts of the names of tests to skip.
    pub left_out: Vec<&'a str>,
    /// Environment variables of the programs.
    pub variables: Vec<(&'a str, std::ffi::OsString)>,
}

/// Runs all programs and adds their results to the tally.
///
/// # Errors
/// A program does not start, or fails without a failed test.
pub fn run_test_programs(
    programs: &[TestProgram],
    setting: &TestProgramSettings<'_>,
    tally: &mut TestTally,
) -> Result<()> {
    let libraries = std_library_folder()?;
    let (alone, mut together): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| ALONE.contains(&program.name.as_str()));
    // The longest program starts first, so that the run does not wait for it at the end.
    together.sort_by_key(|program| program.name != BINARY);
    let shared = Mutex::new((together.into_iter(), Vec::new()));
    let worker = || {
        loop {
            let next = shared.lock().unwrap_or_else(PoisonError::into_inner).0.next();
            let Some(program) = next else { return };
            let result = run_single_program(program, setting, &libraries);
            shared.lock().unwrap_or_else(PoisonError::into_inner).1.push(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..PROGRAMS_AT_ONCE {
            scope.spawn(worker);
        }
    });
    let mut results = shared.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    results
        .extend(alone.into_iter().map(|program| run_single_program(program, setting, &libraries)));
    let mut crashed = Vec::new();
    for result in results {
        match result {
            Ok((tally_of_one, crash)) => {
                tally.add_tally(tally_of_one);
                crashed.extend(crash);
            }
            // The results of the other programs still count.
            Err(error) => crashed.push(format!("{error:#}")),
        }
    }
    if !crashed.is_empty() {
        bail!("{}", crashed.join("; "));
    }
    Ok(())
}

/// Runs the tests of the binary again with every plugin in a worker.
///
/// # Errors
/// As [`run_test_programs`].
pub fn run_isolated(
    programs: &[TestProgram],
    setting: &TestProgramSettings<'_>,
    tally: &mut TestTally,
) -> Result<()> {
    let is_of_the_binary = |program: &&TestProgram| [BINARY, SERIAL].contains(&&*program.name);
    let programs: Vec<TestProgram> = programs.iter().filter(is_of_the_binary).cloned().collect();
    let mut setting = setting.clone();
    setting.left_out.extend(isolated::LEFT_OUT);
    setting.variables.push((isolated::VARIABLE, "1".into()));
    run_test_programs(&programs, &setting, tally)
}

/// Returns the program's results, and its output if it crashed.
fn run_single_program(
    program: &TestProgram,
    setting: &TestProgramSettings<'_>,
    libraries: &Path,
) -> Result<(TestTally, Option<String>)> {
    let mut command = Command::new(&program.path);
    child::clear_cargo_variables(&mut command);
    child::disable_incremental_data(&mut command);
    // Cargo sets this variable for tests, and `expect-test` finds its files with it.
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    match program.name.as_str() {
        BINARY => command.args(["--test-threads", THREADS_OF_THE_BINARY]),
        // One test at a time, also of the last program: the threads of a model spin while they
        // wait for each other, so two models at a time take longer than one after the other.
        name if ALONE.contains(&name) => command.args(["--test-threads", "1"]),
        _ => &mut command,
    };
    // The harness reports times only if unstable options are allowed, that is, if this variable has
    // any value. A compiler that a test starts reads `0` as the name of a crate that does not
    // exist.
    command.args(["-Z", "unstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "0");
    // Tests of a macro crate are linked with the compiler's own standard library.
    command.env("LD_LIBRARY_PATH", libraries);
    let (tally, text, status) = read_results(command, &program.name, setting)?;
    if tally.tests_run() > 0 || !status.success() {
        println!("{}: {}", program.name, tally.format_summary());
    }
    if status.success() {
        return Ok((tally, None));
    }
    println!("{}", text.trim_matches('\n'));
    let crash = (tally.failed == 0)
        .then(|| format!("`{}` ended with {status} though no test failed", program.name));
    Ok((tally, crash))
}

/// Runs the examples in doc comments and adds their results to the tally.
///
/// # Errors
/// When cargo does not start, or fails without a failed example.
pub fn run_doctests(
    root: &Path,
    setting: &TestProgramSettings<'_>,
    tally: &mut TestTally,
) -> Result<()> {
    let mut command = child::cargo_command(root);
    // Only examples have such a name. `--doc` would select other features, and the default profile
    // and compiler are not those of the build: cargo would compile almost everything again.
    command.args(["test", "--quiet", "--profile", "dev", "--workspace", "--no-fail-fast"]);
    command.args(["--", "(line"]);
    artifacts::enable_lints(&mut command)?;
    let (tally_of_docs, text, status) = read_results(command, "doctests", setting)?;
    println!("doctests: {}", tally_of_docs.format_summary());
    let failed = tally_of_docs.failed;
    tally.add_tally(tally_of_docs);
    if !status.success() {
        println!("{}", text.trim_matches('\n'));
        if failed == 0 {
            bail!("the examples in doc comments ended with {status} though none failed");
        }
    }
    Ok(())
}

/// Runs one command with the setting's tests. Gives its results, the rest of its output, and how it
/// ended.
fn read_results(
    mut command: Command,
    name: &str,
    setting: &TestProgramSettings<'_>,
) -> Result<(TestTally, String, ExitStatus)> {
    command.args(&setting.filters);
    for part in &setting.left_out {
        command.args(["--skip", part]);
    }
    command.envs(setting.variables.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("starting {}", child::command_text(&command)))?;
    let stdout = child.stdout.take().context("the tests have no standard output")?;
    let mut lines = BufReader::new(stdout);
    let (mut tally, mut text, mut line) = (TestTally::default(), String::new(), Vec::new());
    while lines.read_until(b'\n', &mut line).context("reading the tests' output")? > 0 {
        // A failing test may print invalid UTF-8, but the lines that are counted are valid.
        let read = String::from_utf8_lossy(&line);
        if !tally.read_line(name, &read) {
            text.push_str(&read);
        }
        line.clear();
    }
    let status = child.wait().context("waiting for the tests")?;
    Ok((tally, text, status))
}

/// The folder of the standard library as a dynamic library.
fn std_library_folder() -> Result<PathBuf> {
    let text = child::command_stdout(Command::new("rustc").args(["--print", "target-libdir"]))?;
    Ok(text.trim_end().into())
}
