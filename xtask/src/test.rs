//! `test`: runs all checks and tests, those that fail fastest first.
//!
//! The tests of the binary use the *test house*: an installed layout with the binary and all
//! plugins of one profile, so that nothing is compiled twice. Each phase runs even if an earlier
//! one failed, unless it needs its result. The exit code is 0 only if all phases succeeded.

mod isolated;
mod items;
mod miri;
mod phases;
mod programs;
mod tally;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use self::items::{SelectedTier, TierItem};
use self::phases::TestPhases;
use self::programs::TestProgramSettings;
use self::tally::TestTally;
use crate::artifacts::{self, BuildSelection, PassthroughBuildObserver, TestProgram};
use crate::build_plugins::{HOST, check_plugin_files};
use crate::gather::{gather_plugins, place_file};
use crate::setup::TestContainerEngine;
use crate::workspace::CargoWorkspace;
use crate::{child, setup, tidy};

/// The variable with the path of the test house.
const HOUSE_VARIABLE: &str = "JAATO_TEST_HOUSE";

/// The variable with the file to which each skipped test appends a line with its reason.
const SKIP_LOG_VARIABLE: &str = "JAATO_SKIP_LOG";

/// Items that need other projects' programs.
const OUTSIDE_ITEMS: [&str; 3] = ["mcp-servers", "mcp-suite", "outside"];

/// Items that are a phase of their own.
const PHASES: [&str; 2] = ["isolated", "miri"];

/// The variable that multiplies the tries of tests with random bytes.
const FUZZ_VARIABLE: &str = "JAATO_FUZZ_TIMES";

/// Takes half a minute for all of them on two cores. A count, so that each run tries the same.
const FUZZ_TIMES_IN_FULL: &str = "5";

/// Runs the chore.
pub fn run_tests(words: Vec<OsString>) -> Result<ExitCode> {
    let mut run = TestRun::begin_run(parse_selection(words)?)?;
    run.prepare_machine();
    run.check_sources();
    run.build_house_for_tests();
    run.run_miri_phase();
    run.prepare_external_packages();
    run.run_test_programs();
    let code = run.finish_run()?;
    if !matches!(run.selection, TestSelection::Filter(_)) {
        let skipped = read_log(&run.log)?;
        run.tier.record_passed_items(&run.workspace.root, |item| run.has_passed(item, &skipped))?;
    }
    Ok(code)
}

/// What to run.
#[derive(Debug, PartialEq, Eq)]
enum TestSelection {
    /// All checks and tests, and the items of the full tier that are due and fit into the time.
    Everything,
    /// The same with all items.
    Full,
    /// Only the tests of one item.
    Item(&'static TierItem),
    /// Only tests with this part in their names.
    Filter(String),
}

fn parse_selection(words: Vec<OsString>) -> Result<TestSelection, lexopt::Error> {
    use lexopt::prelude::*;

    let mut chosen = None;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        if chosen.is_some() {
            return Err("a run takes one of `--full`, `--item NAME` and a filter".into());
        }
        chosen = Some(match argument {
            Value(word) => TestSelection::Filter(word.string()?),
            Long("full") => TestSelection::Full,
            Long("item") => TestSelection::Item(TierItem::find_item(&parser.value()?.string()?)?),
            _ => return Err(argument.unexpected()),
        });
    }
    Ok(chosen.unwrap_or(TestSelection::Everything))
}

/// A test run with its phases.
struct TestRun {
    workspace: CargoWorkspace,
    /// The test house.
    house: PathBuf,
    /// The file for the reasons of skipped tests.
    log: PathBuf,
    selection: TestSelection,
    tier: SelectedTier,
    phases: TestPhases,
    tally: TestTally,
    /// A line for each missing program.
    missing: Vec<String>,
    /// Items of the full tier that could not run because of a missing program.
    unable: Vec<&'static str>,
    /// The result of the build, if it succeeded.
    built: Option<TestBuild>,
}

/// The files that the tests need.
struct TestBuild {
    /// The binary in the test house.
    jaato: PathBuf,
    programs: Vec<TestProgram>,
}

impl TestRun {
    fn begin_run(selection: TestSelection) -> Result<Self> {
        let workspace = CargoWorkspace::load()?;
        let house = workspace.target.join("house");
        let log = house.join("skipped.log");
        fs::create_dir_all(&house).with_context(|| format!("making `{}`", house.display()))?;
        fs::write(&log, "").with_context(|| format!("emptying `{}`", log.display()))?;
        let tier = match &selection {
            TestSelection::Full => SelectedTier::all_items(&workspace.root)?,
            TestSelection::Everything => SelectedTier::changed_items(&workspace.root)?,
            TestSelection::Item(item) => SelectedTier::one_item(&workspace.root, item)?,
            // A filter selects only those tests and no items.
            TestSelection::Filter(_) => SelectedTier::default(),
        };
        Ok(Self {
            workspace,
            house,
            log,
            selection,
            tier,
            phases: TestPhases::default(),
            tally: TestTally::default(),
            missing: Vec::new(),
            unable: Vec::new(),
            built: None,
        })
    }

    fn prepare_machine(&mut self) {
        self.phases.run_phase("setup", || {
            self.missing.extend(setup::prepare_machine(&self.workspace)?);
            Ok(())
        });
    }

    fn check_sources(&mut self) {
        if !self.is_complete_run() {
            println!("with a filter or an item, format, tidy and doctests are skipped");
            return;
        }
        self.phases.run_phase("format", || {
            // The examples and the programs that embed jaato are their own workspaces.
            for folder in [".", "docs/examples", "docs/examples/embed-chat"] {
                let folder = self.workspace.root.join(folder);
                child::run_command(child::cargo_command(&folder).args(["fmt", "--all", "--check"]))
                    .with_context(|| {
                        format!("`cargo fmt --all` in {} fixes it", folder.display())
                    })?;
            }
            Ok(())
        });
        self.phases.run_phase("tidy", || tidy::check_workspace(&self.workspace));
    }

    fn build_house_for_tests(&mut self) {
        // Compile with Clippy, so that its warnings come with the build.
        self.phases.run_phase("build", || {
            let (build, warnings) = build_house(&self.workspace, &self.house)?;
            self.built = Some(build);
            match warnings {
                0 => Ok(()),
                count => bail!("the compiler and Clippy give {count} warnings"),
            }
        });
        // Tests would build the fixtures too, one by one. Here the table of phases shows their
        // time.
        self.phases.run_phase("fixtures", || artifacts::build_fixtures(&self.workspace));
    }

    fn run_miri_phase(&mut self) {
        if !self.tier.has_item("miri") {
            return;
        }
        self.phases.run_phase("miri", || {
            let why_not = miri::run_miri(&self.workspace)?;
            if why_not.is_some() {
                self.unable.push("miri");
            }
            self.missing.extend(why_not);
            Ok(())
        });
    }

    fn prepare_external_packages(&mut self) {
        if !OUTSIDE_ITEMS.iter().any(|name| self.tier.has_item(name)) {
            return;
        }
        self.phases.run_phase("outside", || {
            let lines = match child::is_ci() {
                true => setup::outside::fetch_missing_packages(&self.workspace.target),
                false => setup::outside::list_missing_packages(&self.workspace.target),
            };
            if !lines.is_empty() {
                self.unable.extend(OUTSIDE_ITEMS);
            }
            self.missing.extend(lines);
            Ok(())
        });
    }

    fn run_test_programs(&mut self) {
        let Some(TestBuild { jaato, programs }) = &self.built else { return };
        if child::is_ci() {
            self.phases.run_phase("model", || {
                self.missing.extend(setup::pull_model(jaato));
                Ok(())
            });
        }
        let mut engine = None;
        self.phases.run_phase("engine", || {
            match TestContainerEngine::find_or_start(&self.workspace.target) {
                Ok(found) => engine = Some(found),
                Err(line) => self.missing.push(line),
            }
            Ok(())
        });
        let mut variables = vec![
            (HOUSE_VARIABLE, self.house.clone().into_os_string()),
            (SKIP_LOG_VARIABLE, self.log.clone().into_os_string()),
        ];
        variables.extend(engine.as_ref().and_then(TestContainerEngine::engine_variable));
        if self.tier.has_item("fuzz") && std::env::var_os(FUZZ_VARIABLE).is_none() {
            variables.push((FUZZ_VARIABLE, FUZZ_TIMES_IN_FULL.into()));
        }
        let filters = match &self.selection {
            TestSelection::Everything | TestSelection::Full => Vec::new(),
            TestSelection::Item(item) => item.tests.to_vec(),
            TestSelection::Filter(filter) => vec![filter.as_str()],
        };
        let setting = TestProgramSettings {
            filters,
            left_out: self.tier.skipped_tests().collect(),
            variables,
        };
        let is_phase =
            matches!(&self.selection, TestSelection::Item(item) if PHASES.contains(&item.name));
        if !is_phase {
            self.phases.run_phase("tests", || {
                programs::run_test_programs(programs, &setting, &mut self.tally)
            });
        }
        if self.tier.has_item("isolated") {
            self.phases.run_phase("isolated", || {
                programs::run_isolated(programs, &setting, &mut self.tally)
            });
        }
        if self.is_complete_run() {
            self.phases.run_phase("doctests", || {
                programs::run_doctests(&self.workspace.root, &setting, &mut self.tally)
            });
        }
    }

    fn is_complete_run(&self) -> bool {
        matches!(self.selection, TestSelection::Everything | TestSelection::Full)
    }

    /// Returns true if the item's tests passed and none was skipped. An item without tests of its
    /// own is a phase, or runs all tests in another way.
    fn has_passed(&self, item: &TierItem, skipped: &[String]) -> bool {
        let failed = self.phases.failed_phases();
        let is_skipped = |part: &&str| skipped.iter().any(|line| line.contains(part));
        let is_good = match item.tests {
            [] if failed.contains(&"tests") => false,
            [] => !failed.contains(&item.name),
            parts if parts.iter().any(is_skipped) => false,
            parts => parts.iter().all(|part| self.tally.has_passed_all(part)),
        };
        is_good && self.built.is_some() && !self.unable.contains(&item.name)
    }

    fn finish_run(&self) -> Result<ExitCode> {
        if self.is_complete_run() {
            self.tier.skipped_item_lines().iter().for_each(|line| println!("not run: {line}"));
        }
        let file = self.workspace.target.join("test-phases.json");
        fs::write(&file, self.phases.as_json())
            .with_context(|| format!("writing `{}`", file.display()))?;
        println!("\nslowest tests:\n{}\n{}", self.tally.format_slowest(), self.phases.as_table());
        for line in &self.missing {
            println!("not there: {line}");
        }
        let skipped = read_log(&self.log)?;
        for line in &skipped {
            println!("SKIPPED: {line}");
        }
        let verdict =
            tally::compute_verdict(&self.tally, self.phases.failed_phases(), skipped.len());
        println!("{}", verdict.line);
        Ok(if verdict.good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Builds and checks everything in one profile, and creates the installed layout of binary and
/// plugins. Also returns the number of warnings.
fn build_house(workspace: &CargoWorkspace, house: &Path) -> Result<(TestBuild, usize)> {
    let selection = BuildSelection::EverythingForTests;
    let built =
        artifacts::build_artifacts(workspace, "dev", selection, &mut PassthroughBuildObserver)?;
    let binary = built.find_binary(HOST)?;
    let bin = house.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("making `{}`", bin.display()))?;
    let jaato = bin.join(binary.file_name().context("the binary has no name")?);
    place_file(binary, &jaato)?;
    let plugins = gather_plugins(&built.plugin_libraries(workspace)?, &house.join("plugins"))?;
    check_plugin_files(&jaato, &plugins)?;
    let programs = built.test_programs(workspace);
    Ok((TestBuild { jaato, programs }, built.warnings))
}

/// Returns the lines of skipped tests, each with its reason.
fn read_log(log: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(log).with_context(|| format!("reading `{}`", log.display()))?;
    Ok(tally::unique_skipped_lines(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_an_item_or_all_is_understood() {
        let words = |line: &str| line.split_whitespace().map(OsString::from).collect();
        assert_eq!(parse_selection(words("")).unwrap(), TestSelection::Everything);
        assert_eq!(
            parse_selection(words("gate")).unwrap(),
            TestSelection::Filter("gate".to_owned())
        );
        assert_eq!(parse_selection(words("--full")).unwrap(), TestSelection::Full);
        let TestSelection::Item(item) = parse_selection(words("--item miri")).unwrap() else {
            panic!("an item was named");
        };
        assert_eq!(item.name, "miri");
        assert!(
            parse_selection(words("--item moon"))
                .is_err_and(|error| error.to_string().contains("miri"))
        );
        assert!(parse_selection(words("gate policy")).is_err());
        assert!(parse_selection(words("gate --full")).is_err(), "a part of all is not all");
        assert!(parse_selection(words("--nocapture")).is_err());
    }
}
