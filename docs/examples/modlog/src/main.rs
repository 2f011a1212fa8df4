//! Makes a training set from the modification log of a COBOL program: one pair of a question and an
//! answer for each entry of the log.
//!
//! The steps: read the program, parse its log, explain each entry, write the pairs. A model parses
//! and explains (`model.rs`), or fixed rules do (`history.rs`, `lines.rs`).

mod args;
mod entries;
mod files;
mod history;
mod lines;
mod model;
mod pairs;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use jaato_library::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::args::Arguments;
use crate::entries::LogEntry;
use crate::history::Program;
use crate::model::Model;
use crate::pairs::TrainingPair;

/// The maximum number of shown problems of an entries file.
const PROBLEMS_MAX: usize = 50;

/// Pairs from one line of progress to the next.
const PROGRESS_STEP: usize = 5;

fn main() -> ExitCode {
    let mut args = Arguments::parse();
    let shown = if args.writes_to_stdout() { OutputMode::OnStderr } else { OutputMode::OnStdout };
    match run(&mut args, shown) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.kind == ErrorKind::InvalidArguments { 2 } else { 1 })
        }
    }
}

/// Where lines about the progress go.
#[derive(Debug, Clone, Copy)]
enum OutputMode {
    OnStdout,
    OnStderr,
}

impl OutputMode {
    /// Shows a line.
    fn print_line(self, text: &str) {
        // If no one reads the lines, the files still count.
        let _ = match self {
            Self::OnStdout => writeln!(std::io::stdout(), "{text}"),
            Self::OnStderr => writeln!(std::io::stderr(), "{text}"),
        };
    }

    /// Shows a line, unless `VERBOSE` is 0 or false.
    fn print_detail(self, text: &str) {
        if is_verbose() {
            self.print_line(text);
        }
    }
}

fn is_verbose() -> bool {
    !matches!(std::env::var("VERBOSE").as_deref(), Ok("0" | "false" | "False"))
}

fn run(args: &mut Arguments, shown: OutputMode) -> Result<()> {
    args.apply_mode().iter().for_each(|line| shown.print_line(line));
    args.check_arguments()?.into_iter().for_each(|line| shown.print_line(line));
    let program = Arc::new(Program::new(&files::read_text(&args.source)?));
    let model = match args.steps.heuristic_lines {
        true => None,
        false => {
            shown.print_detail("[1/7] Starting the host of the model...");
            Some(Model::start(args.env_file.clone(), Arc::clone(&program))?)
        }
    };
    let made = make_training_set(args, &program, model.as_ref(), shown);
    if let Some(line) = model.map(Model::finish) {
        shown.print_detail(&line);
    }
    let summary = made?;
    match is_verbose() {
        true => shown.print_line(&format!("[6/7] ✅ Done. {}\n[7/7] Complete.", summary.in_detail)),
        false => shown.print_line(&summary.short),
    }
    Ok(())
}

/// Two texts about the result.
struct RunSummary {
    in_detail: String,
    short: String,
}

fn make_training_set(
    args: &Arguments,
    program: &Program,
    model: Option<&Model>,
    shown: OutputMode,
) -> Result<RunSummary> {
    let entries = match args.entries_in.as_deref().filter(|_| args.steps.explain_only) {
        Some(path) => load_entries(args, path, shown)?,
        None => parse_entries(args, program, model, shown)?,
    };
    if args.steps.parse_only {
        shown.print_detail("[parse-only] Skipping explanation stage.");
        let text = format!("Parsed {} entries.", entries.len());
        return Ok(RunSummary { in_detail: text.clone(), short: text });
    }
    shown.print_detail("[4/7] Generating training pairs...");
    let count = write_pairs(args, &entries, program, model, shown)?;
    let out = args.out.display();
    shown.print_detail(&format!("[5/7] Generated {count} pairs -> {out}"));
    let mut in_detail = format!("Wrote {count} examples to {out}");
    let mut short = format!("Wrote {count} examples.");
    if let Some(path) = args.entries_in.as_deref().filter(|_| args.steps.explain_only) {
        in_detail += &format!(" (entries loaded from {})", path.display());
    } else if let Some(path) = &args.entries_out {
        in_detail += &format!("; entries written to {}", path.display());
        short += &format!(" Entries: {}", entries.len());
    }
    if args.steps.heuristic_lines {
        in_detail += " (heuristic line mapping enabled)";
    }
    Ok(RunSummary { in_detail, short })
}

fn parse_entries(
    args: &Arguments,
    program: &Program,
    model: Option<&Model>,
    shown: OutputMode,
) -> Result<Vec<LogEntry>> {
    shown.print_detail("[2/7] Loading COBOL source...");
    let history = program.history_text(args.max_history_chars);
    let entries = match model {
        Some(model) => {
            shown.print_detail("[3/7] Parsing modification history (model call)...");
            model.parse_history(&history)?
        }
        None => {
            shown.print_detail("[3/7] Parsing modification history (by its columns)...");
            history::parse_history(&history, program)
        }
    };
    if entries.is_empty() {
        let hint = "the log is in comments before the WORKING-STORAGE SECTION; --entries-in takes \
                    entries from a file";
        return Err(Error::failed("No modification entries identified; aborting.").with_hint(hint));
    }
    if let Some(path) = &args.entries_out {
        let shown_path = path.display();
        shown.print_detail(&format!(
            "[early] Writing {} raw entries to {shown_path}",
            entries.len()
        ));
        entries::write_entries(path, &entries)?;
    }
    if args.steps.validate_entries {
        let values = entries.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
        check_entries(&values.map_err(|error| Error::failed(error.to_string()))?, shown)?;
    }
    Ok(entries)
}

fn load_entries(args: &Arguments, path: &Path, shown: OutputMode) -> Result<Vec<LogEntry>> {
    shown.print_detail("[2/7] Loading entries from file (skip parse stage)...");
    let values = entries::read_entries(path)?;
    shown.print_detail(&format!("[loaded] {} entries from {}", values.len(), path.display()));
    if args.steps.validate_entries {
        check_entries(&values, shown)?;
    }
    let entry = |(value, number): (&Value, usize)| {
        LogEntry::from_json(value).ok_or_else(|| {
            let text = format!("entry {number} of `{}` has no description", path.display());
            Error::new(ErrorKind::InvalidArguments, text)
                .with_hint("--validate-entries lists all problems of the file")
        })
    };
    values.iter().zip(1..).map(entry).collect()
}

/// Shows the problems of entries.
fn check_entries(values: &[Value], shown: OutputMode) -> Result<()> {
    shown.print_detail("[validation] Checking entry schema...");
    let problems = entries::validate_entries(values);
    for problem in problems.iter().take(PROBLEMS_MAX) {
        shown.print_line(&format!("[validation][error] {problem}"));
    }
    if !problems.is_empty() {
        let text = format!("Validation failed with {} problems.", problems.len());
        return Err(Error::failed(text));
    }
    shown.print_detail(&format!("[validation] {} entries passed schema checks.", values.len()));
    Ok(())
}

/// Makes the pairs and writes them: each one as soon as it is made, or all at the end, so that a
/// failure leaves the file as it was.
fn write_pairs(
    args: &Arguments,
    entries: &[LogEntry],
    program: &Program,
    model: Option<&Model>,
    shown: OutputMode,
) -> Result<usize> {
    let streams = args.steps.stream && model.is_some();
    if args.steps.append {
        shown.print_detail(&format!(
            "[append] Writing pairs in append mode to {}",
            args.out.display()
        ));
    } else if streams && !args.writes_to_stdout() {
        files::write_text(&args.out, "")?;
    }
    let mut waiting = Vec::new();
    for (entry, count) in entries.iter().zip(1..) {
        let pair = match model {
            Some(model) => TrainingPair::with_explanation(entry, model.explain(entry)?),
            None => {
                let delimiter = entry.delimiter.as_deref();
                let lines = lines::changed_lines(&entry.description, delimiter, program);
                TrainingPair::with_heuristic_lines(entry, lines)
            }
        };
        waiting.push(pair);
        if streams {
            append_pairs(args, &waiting)?;
            waiting.clear();
            if count % PROGRESS_STEP == 0 {
                shown.print_detail(&format!("  [progress] {count} pairs written..."));
            }
        }
    }
    match args.steps.append || streams || args.writes_to_stdout() {
        true => append_pairs(args, &waiting)?,
        false => files::write_text(&args.out, &files::to_json_lines(&waiting)?)?,
    }
    Ok(entries.len())
}

fn append_pairs(args: &Arguments, pairs: &[TrainingPair]) -> Result<()> {
    let text = files::to_json_lines(pairs)?;
    if args.writes_to_stdout() {
        let mut output = std::io::stdout().lock();
        return output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush())
            .map_err(|error| files::unwritable_file_error(&args.out, &error));
    }
    files::append_text(&args.out, &text)
}
