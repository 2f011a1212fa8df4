//! `accuracy`: runs real programs through the real tools, and counts the results that arrive too
//! early or too late.
//!
//! The scripts are data (`accuracy/programs/*.json`): the input of each step, and the screen
//! content that proves that the program is done. A separate observer ([`recorder`]) records when
//! the program last wrote to its terminal. This gives the latencies, and shows what the rule of 500
//! ms of silence would have done with the same output. A missing program counts as wrong.

mod caller;
mod play;
mod programs;
mod recorder;
mod report;
mod services;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;

use self::caller::ToolCaller;
use self::programs::AccuracyProgram;
use self::recorder::TerminalWriteRecorder;
use self::report::{AccuracyReport, ProgramReport};
use self::services::AccuracyServers;
use xtask::child::is_ci;
use xtask::run;
use xtask::setup::is_root;
use xtask::workspace::CargoWorkspace;

/// The command that installs what the programs need.
const INSTALL: &str = "CI=true cargo xtask accuracy --install";

/// The options.
#[derive(Default)]
struct AccuracyOptions {
    /// Parts of names. Empty for all programs.
    names: Vec<String>,
    install: bool,
    list: bool,
    /// The user that runs `jaato`, if it is another one than the current user.
    user: Option<String>,
    /// A folder with `bin/jaato` and `plugins`.
    house: Option<PathBuf>,
}

impl AccuracyOptions {
    fn parse_options(words: Vec<OsString>) -> Result<Self> {
        let (mut options, mut words) = (Self::default(), lexopt::Parser::from_args(words));
        while let Some(word) = words.next()? {
            match word {
                Long("install") => options.install = true,
                Long("list") => options.list = true,
                Long("user") => options.user = Some(words.value()?.string()?),
                Long("house") => options.house = Some(words.value()?.into()),
                Value(name) => options.names.push(name.string()?),
                word => return Err(word.unexpected().into()),
            }
        }
        Ok(options)
    }

    fn is_selected(&self, program: &AccuracyProgram) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| program.name.contains(name))
    }
}

/// Runs the chore.
pub fn run_accuracy_chore(words: Vec<OsString>) -> Result<ExitCode> {
    let options = AccuracyOptions::parse_options(words)?;
    let programs: Vec<AccuracyProgram> = programs::read_programs()?
        .into_iter()
        .filter(|program| options.is_selected(program))
        .collect();
    if options.list {
        for program in &programs {
            println!("{} ({} steps)", program.name, program.steps.len());
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !cfg!(target_os = "linux") {
        bail!("observing terminals works only on Linux");
    }
    let workspace = CargoWorkspace::load()?;
    let folder = workspace.target.join("accuracy");
    if options.install {
        if !(is_root() && is_ci()) {
            bail!("installing packages needs root and `CI=true`: {INSTALL}");
        }
        services::install_programs(&folder)?;
    }
    let jaato = match &options.house {
        Some(house) => house.join("bin/jaato"),
        None => run::build_release(&workspace)?,
    };
    let recorder = TerminalWriteRecorder::start_recording()?;
    let services = AccuracyServers::start_servers(&folder, options.user.as_deref())?;
    let mut report = AccuracyReport::default();
    for (number, program) in programs.iter().enumerate() {
        let missing = services.list_missing_programs(program);
        if !missing.is_empty() {
            report.add_program(ProgramReport::from_missing_programs(program, &missing));
            continue;
        }
        if program.is_for_root && options.user.is_some() {
            continue;
        }
        let place = services.create_folder(program, number)?;
        let caller = ToolCaller::start_session(&jaato, &place, options.user.as_deref());
        let mut caller = caller.with_context(|| format!("playing `{}`", program.name))?;
        let played = play::play_program(program, &place, &mut caller, &recorder);
        caller.end_session();
        place.clear_folder();
        report.add_program(played.with_context(|| format!("playing `{}`", program.name))?);
    }
    print!("{}", report.format_report(INSTALL));
    Ok(if report.has_met_targets() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
