//! `test`: every check and test of the house, in the order in which they fail fastest.
//!
//! The tests of the binary run against the *test house*: an installed layout with the binary and
//! all plugins of one profile, so that nothing is compiled twice. Each phase runs even if an
//! earlier one failed, unless it cannot; the exit code is 0 only if all went well.

mod isolated;
mod items;
mod miri;
mod phases;
mod tally;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use self::items::Tier;
use self::phases::Phases;
use self::tally::Tally;
use crate::artifacts::{self, CargoShows, Selection};
use crate::build_plugins::{HOST, check_all};
use crate::gather::{gather, place_file};
use crate::setup::Engine;
use crate::workspace::Workspace;
use crate::{child, setup, tidy};

/// Tells the tests where the test house stands.
const HOUSE_VARIABLE: &str = "JAATO_TEST_HOUSE";

/// Names the file to which a test that is left out appends one line with the reason.
const SKIP_LOG_VARIABLE: &str = "JAATO_SKIP_LOG";

/// Items that need programs of others.
const OUTSIDE_ITEMS: [&str; 3] = ["mcp-servers", "mcp-suite", "outside"];

/// How much the tests with random bytes try, as a multiple of what they try elsewhere.
const FUZZ_VARIABLE: &str = "JAATO_FUZZ_TIMES";

/// Half a minute for all of them together, on two cores: a count, so that each run tries the same.
const FUZZ_TIMES_IN_FULL: &str = "5";

/// Runs the chore.
pub fn start(words: Vec<OsString>) -> Result<ExitCode> {
    let Asked { filter, full } = parse(words)?;
    let workspace = Workspace::load()?;
    let house = workspace.target.join("house");
    let log = house.join("skipped.log");
    fs::create_dir_all(&house).with_context(|| format!("making `{}`", house.display()))?;
    fs::write(&log, "").with_context(|| format!("emptying `{}`", log.display()))?;
    let tier = match (full, &filter) {
        (true, _) => Tier::full(&workspace.root)?,
        (false, None) => Tier::of_what_changed(&workspace.root)?,
        // Who names tests wants those.
        (false, Some(_)) => Tier::default(),
    };
    let mut phases = Phases::default();
    let mut missing = Vec::new();
    // Items that could not do what they are for.
    let mut unable = Vec::new();
    phases.run("setup", || {
        missing.extend(setup::prepare(&workspace)?);
        Ok(())
    });
    if filter.is_none() {
        check_sources(&workspace, &mut phases);
    } else {
        println!("a filter is given: format, tidy and clippy are left out");
    }
    let mut jaato = None;
    phases.run("build", || {
        jaato = Some(build_house(&workspace, &house)?);
        Ok(())
    });
    // Tests build them too, each in turn; here the table of phases shows what they take.
    phases.run("fixtures", || artifacts::build_fixtures(&workspace));
    if tier.runs("miri") {
        phases.run("miri", || {
            let why_not = miri::look(&workspace)?;
            if why_not.is_some() {
                unable.push("miri");
            }
            missing.extend(why_not);
            Ok(())
        });
    }
    if OUTSIDE_ITEMS.iter().any(|name| tier.runs(name)) {
        phases.run("outside", || {
            let lines = match child::is_ci() {
                true => setup::outside::fetch(&workspace.target),
                false => setup::outside::missing(&workspace.target),
            };
            if !lines.is_empty() {
                unable.extend(OUTSIDE_ITEMS);
            }
            missing.extend(lines);
            Ok(())
        });
    }
    let mut tally = Tally::default();
    if let Some(jaato) = jaato {
        if child::is_ci() {
            phases.run("model", || {
                missing.extend(setup::pull_model(&jaato));
                Ok(())
            });
        }
        let mut engine = None;
        phases.run("engine", || {
            match Engine::find(&workspace.target) {
                Ok(found) => engine = Some(found),
                Err(line) => missing.push(line),
            }
            Ok(())
        });
        let variable = engine.as_ref().and_then(Engine::variable);
        phases.run("tests", || {
            let engine = variable.clone();
            run_tests(&workspace.root, &house, &log, filter, &tier, engine, &mut tally)
        });
        if tier.runs("isolated") {
            phases.run("isolated", || {
                let root = &workspace.root;
                isolated::isolated_tests(root, &house, &log, &tier, variable, &mut tally)
            });
        }
    }
    let skipped = read_log(&log)?;
    for line in tier.lines() {
        println!("left out: {line}");
    }
    let code = finish(&workspace.target, &phases, &tally, &missing, &skipped)?;
    if full && code == ExitCode::SUCCESS {
        tier.record(&workspace.root, &unable)?;
    }
    Ok(code)
}

/// What the words of the command line ask for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// A part of the names of the tests that are to run, and then nothing but tests.
    filter: Option<String>,
    /// Whether the whole full tier runs, also what did not change.
    full: bool,
}

fn parse(words: Vec<OsString>) -> Result<Asked, lexopt::Error> {
    use lexopt::prelude::*;

    let (mut filter, mut full) = (None, false);
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) if filter.is_none() => filter = Some(word.string()?),
            Long("full") => full = true,
            _ => return Err(argument.unexpected()),
        }
    }
    if full && filter.is_some() {
        return Err("`--full` runs everything: it takes no filter".into());
    }
    Ok(Asked { filter, full })
}

fn check_sources(workspace: &Workspace, phases: &mut Phases) {
    let root = &workspace.root;
    phases.run("format", || {
        child::run(child::cargo(root).args(["fmt", "--all", "--check"]))
            .context("`cargo fmt --all` puts it right")
    });
    phases.run("tidy", || tidy::check(workspace));
    phases.run("clippy", || {
        let mut clippy = child::cargo(root);
        clippy.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
        child::run(&mut clippy)
    });
}

/// Builds everything in one profile and lays binary and plugins out as they are installed. Gives
/// the house's binary.
fn build_house(workspace: &Workspace, house: &Path) -> Result<PathBuf> {
    let selection = Selection::EverythingForTests;
    let built = artifacts::build(workspace, "dev", selection, &mut CargoShows)?;
    let binary = built.binary(HOST)?;
    let bin = house.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("making `{}`", bin.display()))?;
    let jaato = bin.join(binary.file_name().context("the binary has no name")?);
    place_file(binary, &jaato)?;
    let plugins = gather(&built.plugins(workspace)?, &house.join("plugins"))?;
    check_all(&jaato, &plugins)?;
    Ok(jaato)
}

/// Runs cargo's tests, doctests among them.
fn run_tests(
    root: &Path,
    house: &Path,
    log: &Path,
    filter: Option<String>,
    tier: &Tier,
    engine: Option<(&str, OsString)>,
    tally: &mut Tally,
) -> Result<()> {
    let mut command = child::cargo(root);
    command.args(["test", "--workspace", "--no-fail-fast"]).args(filter).arg("--");
    for part in tier.skipped_tests() {
        command.args(["--skip", part]);
    }
    command.env(HOUSE_VARIABLE, house).env(SKIP_LOG_VARIABLE, log);
    command.envs(engine);
    if tier.runs("fuzz") && std::env::var_os(FUZZ_VARIABLE).is_none() {
        command.env(FUZZ_VARIABLE, FUZZ_TIMES_IN_FULL);
    }
    tallied(&mut command, tally)
}

/// Runs cargo's tests, passes on each line as it comes, and counts.
fn tallied(command: &mut Command, tally: &mut Tally) -> Result<()> {
    command.stdout(Stdio::piped());
    let mut child =
        command.spawn().with_context(|| format!("starting {}", child::shown(command)))?;
    let mut lines = BufReader::new(child.stdout.take().context("cargo has no standard output")?);
    let mut terminal = std::io::stdout().lock();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).context("reading the tests' output")? > 0 {
        terminal.write_all(&line).context("passing on the tests' output")?;
        // A failing test may print what is no UTF-8; the lines that count are.
        tally.read(&String::from_utf8_lossy(&line));
        line.clear();
    }
    let status = child.wait().context("waiting for the tests")?;
    if !status.success() && tally.failed == 0 {
        bail!("the tests failed without a failed test: a program crashed, or did not compile");
    }
    child::check(command, status)
}

/// What tests were left out, and why.
fn read_log(log: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(log).with_context(|| format!("reading `{}`", log.display()))?;
    Ok(tally::skipped_lines(&text))
}

fn finish(
    target: &Path,
    phases: &Phases,
    tally: &Tally,
    missing: &[String],
    skipped: &[String],
) -> Result<ExitCode> {
    let file = target.join("test-phases.json");
    fs::write(&file, phases.as_json()).with_context(|| format!("writing `{}`", file.display()))?;
    println!("\n{}", phases.as_table());
    for line in missing {
        println!("not there: {line}");
    }
    for line in skipped {
        println!("SKIPPED: {line}");
    }
    let verdict = tally::verdict(tally, phases.failed(), skipped.len());
    println!("{}", verdict.line);
    Ok(if verdict.good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_one_filter_is_understood() {
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect();
        let asked = |filter: Option<&str>, full| Asked { filter: filter.map(str::to_owned), full };
        assert_eq!(parse(words("")).unwrap(), asked(None, false));
        assert_eq!(parse(words("gate")).unwrap(), asked(Some("gate"), false));
        assert_eq!(parse(words("--full")).unwrap(), asked(None, true));
        assert!(parse(words("gate policy")).is_err());
        assert!(parse(words("gate --full")).is_err(), "a part of all is not all");
        assert!(parse(words("--nocapture")).is_err());
    }
}
