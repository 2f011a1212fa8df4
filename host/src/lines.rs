//! The lines that a person types: edited on a terminal, plain from a pipe.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, Read as _};

use jaato_runtime::session_loop::Cancel;
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Behavior, CompletionType, Config};

use crate::exit::{Exit, Failure};
use crate::terminal;
use crate::words::Words;

/// What stands before what is typed.
const PROMPT: &str = "> ";
/// Longest line, in bytes: it must cross to the provider with everything else.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// What came of reading a line.
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// The person dropped the line (Ctrl-C).
    Dropped,
    /// There are no more.
    End,
}

/// Edits a line, and offers words by Tab.
type Editor = rustyline::Editor<Words, DefaultHistory>;

/// Reads lines from standard input.
pub struct Lines {
    /// There on a terminal. Away while a line is read on another thread.
    editor: Option<Editor>,
    /// How the terminal was before the editor changed it.
    terminal: Option<Termios>,
    /// Lines that were typed before their time, where no editor shows them.
    early: VecDeque<String>,
}

impl Lines {
    /// Looks at the terminal once; without an editor for it, lines come plain.
    pub fn new(words: Words) -> Self {
        let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(true);
        let config = config.completion_type(CompletionType::List).build();
        let editor = terminal::input_is_terminal().then(|| Editor::with_config(config));
        let editor = editor.and_then(Result::ok).map(|mut editor| {
            editor.set_helper(Some(words));
            editor
        });
        let terminal = editor.as_ref().and_then(|_| tcgetattr(io::stdin()).ok());
        Self { editor, terminal, early: VecDeque::new() }
    }

    /// Reads the next line; the end once `over` is set. Lines that were typed early stand in the
    /// editor already, so that the person sees them before they are sent; without one each is a
    /// line.
    ///
    /// # Errors
    /// When standard input cannot be read, or a line is too long or not UTF-8.
    pub async fn next(&mut self, early: Vec<String>, over: &Cancel) -> Result<Line, Failure> {
        if self.editor.is_none() {
            self.early.extend(early);
            return match self.early.pop_front() {
                Some(line) => Ok(Line::Text(line)),
                None => self.read(String::new(), over).await,
            };
        }
        self.read(early.join("\n"), over).await
    }

    async fn read(&mut self, begun: String, over: &Cancel) -> Result<Line, Failure> {
        let editor = self.editor.take();
        // A person may take their time: the wait must not hold up signals.
        let reading = tokio::task::spawn_blocking(move || read(editor, &begun));
        let (editor, line) = tokio::select! {
            biased;
            () = over.cancelled() => {
                // The editor still waits on its thread, and will not give the terminal back.
                if let Some(terminal) = &self.terminal {
                    // A terminal that is gone needs nothing.
                    let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, terminal);
                }
                return Ok(Line::End);
            }
            read = reading => read.map_err(|error| failed(error.to_string()))?,
        };
        self.editor = editor;
        line
    }
}

fn read(editor: Option<Editor>, begun: &str) -> (Option<Editor>, Result<Line, Failure>) {
    let Some(mut editor) = editor else { return (None, plain()) };
    let line = match editor.readline_with_initial(PROMPT, (begun, "")) {
        Ok(line) => Ok(Line::Text(line)),
        Err(ReadlineError::Interrupted) => Ok(Line::Dropped),
        Err(ReadlineError::Eof) => Ok(Line::End),
        Err(error) => Err(failed(format!("cannot read from the terminal: {error}"))),
    };
    (Some(editor), line)
}

fn plain() -> Result<Line, Failure> {
    let mut bytes = Vec::new();
    let read = if terminal::input_is_terminal() {
        // No buffer between: what waits in one could not be told from an answer to a question.
        terminal::read_line().map(|line| bytes = line)
    } else {
        let mut input = io::stdin().lock().take(LINE_BYTES_MAX + 1);
        input.read_until(b'\n', &mut bytes).map(drop)
    };
    read.map_err(|error| failed(format!("cannot read standard input: {error}")))?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.len() as u64 > LINE_BYTES_MAX {
        return Err(failed(format!(
            "a line of standard input has more than {LINE_BYTES_MAX} bytes"
        ))
        .hint("put it into a file and name the file in a message"));
    }
    String::from_utf8(bytes).map(|text| Line::Text(text.trim_end().to_owned())).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        failed(format!("a line of standard input is not UTF-8: byte {at} is wrong"))
            .hint("iconv -t UTF-8 converts it")
    })
}

fn failed(text: String) -> Failure {
    Failure::new(Exit::Usage, text)
}
