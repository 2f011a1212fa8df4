//! The lines that a person types: edited on a terminal, plain from a pipe.
//!
//! Until the first key the prompt gives way to what wakes the conversation and to questions. From
//! then on the line is the person's: everything else waits until it is sent.

use std::collections::VecDeque;
use std::io::{self, BufRead as _, Read as _};

use jaato_runtime::session_loop::{Cancel, Wake};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Behavior, CompletionType, Config};
use tokio::task::JoinHandle;

use crate::ask::ForLines;
use crate::exit::{Exit, Failure};
use crate::terminal::{self, IdlePrompt, Keys};
use crate::view::View;
use crate::words::Words;

/// What stands before what is typed.
const PROMPT: &str = "> ";
/// Longest line, in bytes: it must cross to the provider with everything else.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Terminals that an editor cannot draw on, by their `TERM`.
const NO_EDITING_ON: [&str; 3] = ["dumb", "cons25", "emacs"];

/// What came of reading a line.
#[derive(Debug)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// The person dropped the line (Ctrl-C).
    Dropped,
    /// The conversation was woken while nothing was typed.
    Woken,
    /// A question wants the terminal while nothing was typed.
    Asked,
    /// There are no more.
    End,
}

/// Edits a line, and offers words by Tab.
type Editor = rustyline::Editor<Words, DefaultHistory>;

/// What a wait for a line looks at beside the line.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// What wakes the conversation, where that is heard.
    pub wake: Option<&'a Wake>,
    /// Holds back what is shown while a line is typed.
    pub view: &'a View,
    /// Whether it is over.
    pub over: &'a Cancel,
}

impl Beside<'_> {
    async fn woken(&self) {
        match self.wake {
            Some(wake) => wake.woken().await,
            None => std::future::pending().await,
        }
    }
}

/// Reads lines from standard input.
pub struct Lines {
    source: Source,
    /// Lines that were typed before their time, where no editor shows them.
    early: VecDeque<String>,
}

/// Where lines come from.
enum Source {
    /// A terminal with an editor.
    Edited {
        /// Away while a line is read on another thread.
        editor: Option<Box<Editor>>,
        /// How the terminal was before the editor changed it.
        terminal: Option<Termios>,
    },
    /// A terminal that gives out whole lines.
    Terminal,
    /// A pipe or a file, and the line that is being read, across wakes.
    Pipe(Option<JoinHandle<Result<Line, Failure>>>),
}

/// What a prompt came to behind which nothing was typed.
enum Idle {
    /// Something is typed.
    Typed(IdlePrompt),
    /// Something else came, or there is no place for a prompt.
    Else(Option<Line>),
}

impl Lines {
    /// Looks at the terminal once; without an editor for it, lines come plain.
    pub fn new(words: Words) -> Self {
        let is_terminal = terminal::input_is_terminal();
        let source = if is_terminal { of_terminal(words) } else { Source::Pipe(None) };
        Self { source, early: VecDeque::new() }
    }

    /// Reads the next line; the end once it is over. Lines that were typed early stand in the
    /// editor already, so that the person sees them before they are sent; without one each is a
    /// line.
    ///
    /// # Errors
    /// When standard input cannot be read, or a line is too long or not UTF-8.
    pub async fn next(
        &mut self,
        place: &ForLines<'_>,
        beside: Beside<'_>,
    ) -> Result<Line, Failure> {
        let early = place.typed_early();
        match &mut self.source {
            Source::Pipe(reading) => next_of_pipe(reading, beside).await,
            Source::Terminal => {
                self.early.extend(early);
                if let Some(line) = self.early.pop_front() {
                    return Ok(Line::Text(line));
                }
                next_of_terminal(place, beside).await
            }
            Source::Edited { editor, terminal } => {
                let begun = early.join("\n");
                let line = next_edited(editor, begun, place, beside).await;
                if let (Ok(Line::End), Some(terminal)) = (&line, terminal) {
                    // The editor may still wait on its thread, and will not give the terminal back.
                    // A terminal that is gone needs nothing.
                    let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, terminal);
                }
                line
            }
        }
    }
}

fn of_terminal(words: Words) -> Source {
    let name = std::env::var("TERM").unwrap_or_default();
    if NO_EDITING_ON.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        return Source::Terminal;
    }
    let config = Config::builder().behavior(Behavior::PreferTerm).auto_add_history(true);
    let config = config.completion_type(CompletionType::List);
    match Editor::with_config(config.build()) {
        Ok(mut editor) => {
            editor.set_helper(Some(words));
            let editor = Some(Box::new(editor));
            Source::Edited { editor, terminal: tcgetattr(io::stdin()).ok() }
        }
        Err(_) => Source::Terminal,
    }
}

/// Shows the prompt until something is typed, or something else comes.
async fn idle(keys: Keys, place: &ForLines<'_>, beside: Beside<'_>) -> Result<Idle, Failure> {
    let gone = |error: io::Error| failed(format!("cannot read from the terminal: {error}"));
    while terminal::errors_are_terminal() {
        let opened = tokio::select! {
            biased;
            () = beside.over.cancelled() => return Ok(Idle::Else(Some(Line::End))),
            opened = beside.view.open_question() => opened,
        };
        let Some(open) = opened else { return Ok(Idle::Else(None)) };
        // A terminal that stands still must not keep a signal from being heard.
        let showing = tokio::task::spawn_blocking(move || IdlePrompt::show(open, PROMPT, keys));
        let prompt = tokio::select! {
            biased;
            () = beside.over.cancelled() => return Ok(Idle::Else(Some(Line::End))),
            shown = showing => shown.map_err(io::Error::other).flatten().map_err(gone)?,
        };
        let line = tokio::select! {
            biased;
            () = beside.over.cancelled() => Line::End,
            typed = prompt.typed() => {
                typed.map_err(gone)?;
                return Ok(Idle::Typed(prompt));
            }
            () = place.wanted() => Line::Asked,
            () = beside.woken() => Line::Woken,
            // Shown above a prompt that stands there again.
            () = prompt.something_is_held() => continue,
        };
        return Ok(Idle::Else(Some(line)));
    }
    beside.view.settle().await;
    Ok(Idle::Else(None))
}

async fn next_edited(
    slot: &mut Option<Box<Editor>>,
    begun: String,
    place: &ForLines<'_>,
    beside: Beside<'_>,
) -> Result<Line, Failure> {
    let mut held = None;
    if begun.is_empty() {
        match idle(Keys::Editor, place, beside).await? {
            Idle::Typed(prompt) => held = prompt.hand_over(),
            Idle::Else(Some(line)) => return Ok(line),
            Idle::Else(None) => {}
        }
    } else {
        held = beside.view.open_question().await;
    }
    place.begin_typing();
    let editor = slot.take();
    // A person may take their time: the wait must not hold up signals.
    let reading = tokio::task::spawn_blocking(move || edit(editor, &begun));
    let (editor, line) = tokio::select! {
        biased;
        () = beside.over.cancelled() => return Ok(Line::End),
        read = reading => read.map_err(|error| failed(error.to_string()))?,
    };
    *slot = editor;
    drop(held);
    line
}

async fn next_of_terminal(place: &ForLines<'_>, beside: Beside<'_>) -> Result<Line, Failure> {
    let held = match idle(Keys::Lines, place, beside).await? {
        Idle::Typed(prompt) => prompt.hand_over(),
        Idle::Else(Some(line)) => return Ok(line),
        Idle::Else(None) => None,
    };
    place.begin_typing();
    let line = plain_line(beside.over, tokio::task::spawn_blocking(plain)).await;
    drop(held);
    line
}

async fn next_of_pipe(
    reading: &mut Option<JoinHandle<Result<Line, Failure>>>,
    beside: Beside<'_>,
) -> Result<Line, Failure> {
    beside.view.settle().await;
    let running = reading.take().unwrap_or_else(|| tokio::task::spawn_blocking(plain));
    let running = reading.insert(running);
    let line = tokio::select! {
        biased;
        () = beside.over.cancelled() => return Ok(Line::End),
        () = beside.woken() => return Ok(Line::Woken),
        line = running => line.map_err(|error| failed(error.to_string()))?,
    };
    *reading = None;
    line
}

async fn plain_line(
    over: &Cancel,
    reading: JoinHandle<Result<Line, Failure>>,
) -> Result<Line, Failure> {
    tokio::select! {
        biased;
        () = over.cancelled() => Ok(Line::End),
        read = reading => read.map_err(|error| failed(error.to_string()))?,
    }
}

fn edit(editor: Option<Box<Editor>>, begun: &str) -> (Option<Box<Editor>>, Result<Line, Failure>) {
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
