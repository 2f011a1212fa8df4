//! Asks a model: the user's own one, through the plugins of an installed jaato.

use std::path::PathBuf;
use std::sync::Arc;

use jaato_library::blocking::BlockingJaato;
use jaato_library::client::TokenLedger;
use jaato_library::config::ValueOrigin;
use jaato_library::types::{Event, Outcome};
use jaato_library::{Configuration, Error, ErrorKind, Jaato, Result, Tool, schemars};
use serde::Deserialize;
use serde_json::json;

use crate::entries::{LogEntry, entries_from_answer};
use crate::history::Program;
use crate::lines::{ChangedLine, changed_lines, format_excerpt};

/// The tool by which a model finds lines without reading the whole program.
const TOOL: &str = "changed_lines_tool";

/// The configuration key that offers the tool in place of the whole program. Its variable is
/// `AI_USE_CHAT_FUNCTIONS`.
const TOOLS_KEY: &str = "tools.offered";

const SYSTEM: &str =
    "You explain changes of COBOL programs. You answer with facts from the source.";

/// A model and the program about which it is asked.
pub struct Model {
    jaato: BlockingJaato,
    ledger: Arc<TokenLedger>,
    program: Arc<Program>,
    has_tool: bool,
}

/// The arguments of the tool.
#[derive(Deserialize, schemars::JsonSchema)]
#[schemars(crate = "jaato_library::schemars")]
struct ChangedLinesInput {
    /// The description of the modification.
    description: String,
    /// The tag that marks changed lines, if there is one.
    delimiter: Option<String>,
}

/// An answer, and the lines that the tool found for it.
struct ModelReply {
    text: String,
    lines: Vec<ChangedLine>,
}

impl Model {
    /// Starts a host with the user's configuration and the installed plugins. `JAATO` names the
    /// installed executable, which is otherwise searched on `PATH`.
    ///
    /// # Errors
    /// If jaato is not installed, or its configuration is not valid.
    pub fn start(env_file: Option<PathBuf>, program: Arc<Program>) -> Result<Self> {
        let searched = Arc::clone(&program);
        let description = "Finds the lines of the program that a modification probably changed.";
        let tool = Tool::typed(TOOL, description, move |input: ChangedLinesInput, _cx| {
            let lines = changed_lines(&input.description, input.delimiter.as_deref(), &searched);
            async move { Ok::<_, String>(json!({ "lines": lines })) }
        });
        let executable = std::env::var_os("JAATO").unwrap_or_else(|| "jaato".into());
        let mut builder = Jaato::builder()
            .configuration(Configuration::OfUser)
            .executable(executable)
            .tool(tool.allowed().read_only());
        if let Some(path) = env_file {
            builder = builder.env_file(path);
        }
        let jaato = BlockingJaato::start(builder)?;
        let setup = jaato.inner().runtime().setup();
        // Tools are offered by default, so that only the user's own choice counts.
        let is_chosen = setup.config.origins_of_key(TOOLS_KEY) != [ValueOrigin::BuiltIn];
        let has_tool = is_chosen && setup.config.tools_offered;
        Ok(Self { jaato, ledger: Arc::default(), program, has_tool })
    }

    /// Finds the entries of the log.
    ///
    /// # Errors
    /// If the model cannot be asked.
    pub fn parse_history(&self, history: &str) -> Result<Vec<LogEntry>> {
        let prompt = format!(
            "The comments at the start of this COBOL program contain a log of its modifications:\n\
             \n{history}\n\n\
             Return a JSON array with one object for each modification of the log, in its order. \
             The keys are `date` (as in the log), `programmer`, `description` (the whole text in \
             one line) and `delimiter` (the tag that marks the changed lines of the program, or \
             null). Answer only with the array."
        );
        Ok(entries_from_answer(&self.ask(&prompt, &[])?.text))
    }

    /// Explains which code a modification changed.
    ///
    /// # Errors
    /// If the model cannot be asked.
    pub fn explain(&self, entry: &LogEntry) -> Result<String> {
        let modification = format!(
            "Modification ({}) from {} by {}, delimiter {}: {}",
            entry.change_type,
            entry.date,
            entry.programmer.as_deref().unwrap_or("an unknown programmer"),
            entry.delimiter.as_deref().unwrap_or("none"),
            entry.description
        );
        let task = "Explain in a few sentences which paragraphs, statements and fields of the \
                    program this modification changed, and quote them.";
        let (prompt, tools) = match self.has_tool {
            true => {
                (format!("{modification}\n\n{task} Find the lines with `{TOOL}`."), &[TOOL][..])
            }
            // The program comes first, so that servers can cache it for all entries.
            false => (
                format!(
                    "A COBOL program:\n\n{}\n\n{modification}\n\n{task}",
                    self.program.source()
                ),
                &[][..],
            ),
        };
        let ModelReply { text, lines } = self.ask(&prompt, tools)?;
        let text = match (text.trim(), &lines[..]) {
            ("", []) => "No explanation returned.",
            ("", _) => "Identified likely affected lines via heuristic tool.",
            (text, _) => text,
        };
        Ok(match &lines[..] {
            [] => text.to_owned(),
            lines => {
                format!(
                    "{text}\n\nLikely affected lines (tool heuristic):\n{}",
                    format_excerpt(lines)
                )
            }
        })
    }

    /// Asks in a new session, so that no answer depends on earlier ones.
    fn ask(&self, prompt: &str, tools: &[&str]) -> Result<ModelReply> {
        let session = self.jaato.session().system(SYSTEM).tools(tools.iter().copied());
        let session = self.jaato.open(session.ledger(Arc::clone(&self.ledger) as _))?;
        let mut turn = session.send(prompt);
        let mut lines = Vec::new();
        for event in turn.by_ref() {
            if let Event::ToolCallFinished { mut result, is_error: false, .. } = event {
                let found = result.remove("lines").unwrap_or_default();
                lines = serde_json::from_value(found).unwrap_or(lines);
            }
        }
        let report = turn.wait()?;
        session.close();
        match report.outcome {
            Outcome::Done => Ok(ModelReply { text: report.text, lines }),
            outcome => {
                let text = format!("the model's answer is not complete: it ended as {outcome:?}");
                Err(Error::new(ErrorKind::LimitReached, text.to_lowercase()))
            }
        }
    }

    /// Ends the host, and returns a line about the use of tokens.
    pub fn finish(self) -> String {
        let sums = self.ledger.summarize();
        let setup = self.jaato.inner().runtime().setup();
        let path = setup.config.ledger.path.clone().or_else(|| setup.folders.ledger_file().ok());
        let path = path.filter(|_| setup.config.ledger.enabled);
        let line = format!(
            "[ledger] Calls={} prompt={} output={} total={} -> {}",
            sums.calls,
            sums.total_prompt_tokens,
            sums.total_output_tokens,
            sums.total_tokens,
            path.map_or_else(|| "N/A".to_owned(), |path| path.display().to_string())
        );
        self.jaato.close();
        line
    }
}
