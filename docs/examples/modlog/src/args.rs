//! The command line: the original's options, its modes, and the combinations that it refuses.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use jaato_library::{Error, ErrorKind, Result};

/// The entries file of modes that need one.
const ENTRIES_FILE: &str = "modlog_entries.jsonl";

/// Make training pairs from the modification log of a COBOL program
#[derive(Debug, Clone, Parser)]
pub struct Arguments {
    /// The COBOL source file
    #[arg(long, value_name = "FILE")]
    pub source: PathBuf,

    /// The file for the training pairs; `-` is standard output
    #[arg(long, value_name = "FILE", default_value = "training_data.jsonl")]
    pub out: PathBuf,

    /// Write the entries of the log to this file
    #[arg(long, value_name = "FILE")]
    pub entries_out: Option<PathBuf>,

    /// With --explain-only: read the entries from this file
    #[arg(long, value_name = "FILE")]
    pub entries_in: Option<PathBuf>,

    /// Read variables such as MODEL_NAME from this file
    #[arg(long, value_name = "FILE")]
    pub env_file: Option<PathBuf>,

    /// Choose a combination of the following options, in place of the given ones
    #[arg(long)]
    pub mode: Option<RunMode>,

    #[command(flatten)]
    pub steps: RunSteps,

    /// Pass at most this many characters of the log to the model; 0 means no limit
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub max_history_chars: usize,
}

/// The steps that run, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct RunSteps {
    /// Stop after the entries are written to --entries-out
    #[arg(long)]
    pub parse_only: bool,

    /// Read the entries from --entries-in and only make the pairs
    #[arg(long)]
    pub explain_only: bool,

    /// Use no model: parse the log and find changed lines by fixed rules
    #[arg(long)]
    pub heuristic_lines: bool,

    /// Write each pair as soon as it is made
    #[arg(long)]
    pub stream: bool,

    /// Check the entries before pairs are made
    #[arg(long)]
    pub validate_entries: bool,

    /// Append the pairs to --out instead of overwriting it
    #[arg(long)]
    pub append: bool,
}

/// A combination of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunMode {
    /// Only parse the log
    Parse,
    /// Parse the log and make pairs
    Full,
    /// Write each pair as soon as it is made
    FullStream,
    /// Use no model
    FullHeuristic,
    /// Append the pairs to the file
    FullAppend,
    /// Make pairs from the entries file
    Explain,
    /// The same, and write each pair as soon as it is made
    ExplainStream,
    /// Check the entries file, then make pairs from it
    ExplainValidate,
}

impl RunMode {
    fn to_steps(self) -> RunSteps {
        let none = RunSteps::default();
        match self {
            Self::Parse => RunSteps { parse_only: true, ..none },
            Self::Full => none,
            Self::FullStream => RunSteps { stream: true, ..none },
            Self::FullHeuristic => RunSteps { heuristic_lines: true, ..none },
            Self::FullAppend => RunSteps { append: true, ..none },
            Self::Explain => RunSteps { explain_only: true, ..none },
            Self::ExplainStream => RunSteps { explain_only: true, stream: true, ..none },
            Self::ExplainValidate => {
                RunSteps { explain_only: true, validate_entries: true, ..none }
            }
        }
    }
}

impl RunSteps {
    /// Returns the options with this name and whether they are set.
    fn named_steps(&self) -> [(&'static str, bool); 6] {
        [
            ("--parse-only", self.parse_only),
            ("--explain-only", self.explain_only),
            ("--heuristic-lines", self.heuristic_lines),
            ("--stream", self.stream),
            ("--validate-entries", self.validate_entries),
            ("--append", self.append),
        ]
    }
}

impl Arguments {
    /// Returns true if the pairs go to standard output.
    pub fn writes_to_stdout(&self) -> bool {
        self.out.as_os_str() == "-"
    }

    /// Replaces the options by those of the mode, and returns lines that say so.
    pub fn apply_mode(&mut self) -> Vec<String> {
        let Some(mode) = self.mode else { return Vec::new() };
        let given = self.steps.named_steps().into_iter().filter(|(_, is_set)| *is_set);
        let given: Vec<&str> = given.map(|(name, _)| name).collect();
        let mut lines = Vec::new();
        if !given.is_empty() {
            lines.push(format!("[warn] --mode overrides explicit flags: {}", given.join(", ")));
        }
        self.steps = mode.to_steps();
        if self.steps.parse_only {
            self.entries_out.get_or_insert_with(|| ENTRIES_FILE.into());
        }
        if self.steps.explain_only {
            self.entries_in.get_or_insert_with(|| ENTRIES_FILE.into());
        }
        let name = mode.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default();
        // The words of the original, whose output other programs may read.
        let word = |is_set| if is_set { "True" } else { "False" };
        let RunSteps {
            parse_only,
            explain_only,
            heuristic_lines,
            stream,
            validate_entries,
            append,
        } = self.steps;
        lines.push(format!(
            "[mode] Applied mode \"{name}\" -> parse_only={} explain_only={} stream={} \
             heuristic={} validate={} append={}",
            word(parse_only),
            word(explain_only),
            word(stream),
            word(heuristic_lines),
            word(validate_entries),
            word(append)
        ));
        lines
    }

    /// Checks the combination of options, and returns warnings.
    ///
    /// # Errors
    /// `invalid_arguments` for options that contradict each other.
    pub fn check_arguments(&self) -> Result<Vec<&'static str>> {
        let RunSteps { parse_only, explain_only, heuristic_lines, stream, append, .. } = self.steps;
        let refused = [
            (parse_only && explain_only, "cannot use --parse-only and --explain-only together"),
            (
                explain_only && self.entries_in.is_none(),
                "--explain-only requires --entries-in FILE",
            ),
            (parse_only && self.entries_out.is_none(), "--parse-only requires --entries-out FILE"),
            (append && parse_only, "--append has no effect with --parse-only"),
            (append && self.writes_to_stdout(), "--append requires a file in --out, not `-`"),
            (self.out == self.source, "--out would overwrite --source: choose another file"),
        ];
        if let Some((_, text)) = refused.into_iter().find(|(is_refused, _)| *is_refused) {
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let unused = self.entries_in.is_some() && !explain_only;
        let warnings = [
            (
                heuristic_lines && stream,
                "[warn] --heuristic-lines overrides --stream (batch mode required).",
            ),
            (unused, "[warn] --entries-in has no effect without --explain-only."),
        ];
        Ok(warnings.into_iter().filter(|(is_due, _)| *is_due).map(|(_, text)| text).collect())
    }
}
