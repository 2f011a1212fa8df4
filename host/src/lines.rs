//! The lines that the user types: edited on a terminal, plain from a pipe.
//!
//! Before the first key, the prompt gives way to questions and to events that wake the
//! conversation. After that, the user owns the line: other output is shown above it, and questions
//! wait until it is sent. The same applies while a turn runs, if the terminal has an editor.

mod edited;
mod history;
mod keys;
mod pastes;

use std::collections::VecDeque;
use std::io::{self, BufRead as _, Read as _};
use std::sync::Arc;

use jaato_runtime::session_loop::{Cancel, WakeWaiter};
use nix::sys::signal::Signal;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use tokio::task::JoinHandle;

use self::edited::{Editor, Editors, OpenEditor, Screen};
pub use self::history::HistoryFile;
pub use self::keys::StopTurn;
use crate::ask::{ForLines, Stage};
use crate::completion_words::LineEditorHelper;
use crate::exit::{CommandFailure, Exit};
use crate::terminal::{self, IdlePrompt, Keys, PromptBeside};
use crate::view::View;

/// The text before the typed line.
const PROMPT: &str = "> ";
/// The same while a turn runs, with a row above it that shows the work.
const PROMPT_AT_WORK: &str = "\n> ";
/// Longest line, in bytes. The line must fit into a request to the provider with everything else.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The result of reading a line.
#[derive(Debug)]
pub enum Line {
    /// A line, without its end.
    Text(String),
    /// The user ended this line without sending it.
    Dropped(UnsentLine),
    /// The conversation was woken while the user typed nothing.
    Woken,
    /// The input has ended.
    End,
}

/// A line that ended without being sent.
#[derive(Debug)]
pub enum UnsentLine {
    /// The user dropped it (Ctrl-C).
    Dropped(String),
    /// The line stays a draft, and the turn stops (Esc).
    Kept(String),
}

/// Other things to watch while waiting for a line.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// Wakes the conversation, if there is such an event source.
    pub wake: Option<&'a WakeWaiter>,
    /// Decides who uses the terminal.
    pub stage: &'a Arc<Stage>,
    /// Holds other output back while the user types a line.
    pub view: &'a Arc<View>,
    /// Cancelled when the conversation is over.
    pub over: &'a Cancel,
}

impl Beside<'_> {
    async fn woken(&self) {
        match self.wake {
            Some(wake) => wake.wait_for_wake().await,
            None => std::future::pending().await,
        }
    }
}

/// Reads lines from standard input.
pub struct Lines {
    source: Source,
    /// Lines that were typed too early, if no editor shows them.
    early: VecDeque<String>,
}

/// The source of lines.
enum Source {
    /// A terminal with an editor.
    Edited(Box<Edited>),
    /// A terminal that delivers whole lines.
    Terminal,
    /// A pipe or a file, and the line that is being read. A wake does not interrupt the read.
    Pipe(Option<JoinHandle<Result<Line, CommandFailure>>>),
}

/// A terminal with an editor.
struct Edited {
    editors: Arc<Editors>,
    /// `None` while it is open.
    editor: Option<Box<Editor>>,
    open: Option<OpenEditor>,
    /// The text with which the next line begins.
    begun: Vec<String>,
    /// Signals that the process continues after it was stopped.
    continued: Option<SignalStream>,
}

/// The result of a prompt after which nothing was typed.
enum Idle {
    /// The user has typed something.
    Typed(IdlePrompt),
    /// The prompt is shown again.
    Again,
    /// A question waits for the terminal.
    Asked,
    /// Another event came, or a prompt cannot be shown.
    Else(Option<Line>),
}

impl Lines {
    /// Checks the terminal once. Without an editor for it, lines are plain.
    pub fn new(
        words: LineEditorHelper,
        history: impl FnOnce() -> HistoryFile,
        stop_turn: StopTurn,
    ) -> Self {
        let source = match terminal::input_is_terminal() {
            true => terminal_source(words, history, stop_turn),
            false => Source::Pipe(None),
        };
        Self { source, early: VecDeque::new() }
    }

    /// Reads the next line, or the end when the conversation is over. Lines that were typed early
    /// are already in the editor, so that the user sees them before sending. Without an editor,
    /// each of them is a line.
    ///
    /// # Errors
    /// If standard input cannot be read, or a line is too long or not UTF-8.
    pub async fn next(&mut self, beside: Beside<'_>) -> Result<Line, CommandFailure> {
        loop {
            if let Source::Edited(edited) = &mut self.source
                && edited.open.is_some()
            {
                match edited.open_line(beside.over).await {
                    // The turn has ended, so the user edits the draft again.
                    Some(Ok(Line::Dropped(UnsentLine::Kept(draft)))) => edited.begin_with(draft),
                    Some(line) => return line,
                    None => {}
                }
                continue;
            }
            let Some(place) = beside.stage.for_lines(beside.over).await else {
                return Ok(Line::End);
            };
            let early = place.typed_early();
            let line = match &mut self.source {
                Source::Pipe(reading) => Some(next_of_pipe(reading, beside).await),
                Source::Terminal => {
                    self.early.extend(early.lines().map(str::to_owned));
                    match self.early.pop_front() {
                        Some(line) => Some(Ok(Line::Text(line))),
                        None => next_of_terminal(place, beside).await.transpose(),
                    }
                }
                Source::Edited(edited) => {
                    edited.begin_with(early);
                    edited.begin_idle(place, beside).await.transpose()
                }
            };
            if let Some(line) = line {
                return line;
            }
        }
    }

    /// Reads the next line while a turn runs. Without an editor, it never returns. Dropping the
    /// future loses nothing, because a half-typed line continues.
    ///
    /// # Errors
    /// The same as for [`Lines::next`].
    pub async fn next_beside_turn(&mut self, beside: Beside<'_>) -> Result<Line, CommandFailure> {
        let Source::Edited(edited) = &mut self.source else {
            return std::future::pending().await;
        };
        loop {
            if edited.open.is_some() {
                if let Some(line) = edited.open_line(beside.over).await {
                    return line;
                }
                continue;
            }
            let Some(place) = beside.stage.for_lines(beside.over).await else {
                return Ok(Line::End);
            };
            edited.begin_with(place.typed_early());
            edited.begin_beside_turn(place, beside).await?;
        }
    }

    /// Begins the next line with a text that the user has not sent yet.
    pub fn begin_with(&mut self, text: String) {
        match &mut self.source {
            Source::Edited(edited) => edited.begin_with(text),
            Source::Terminal | Source::Pipe(_) => self.early.push_back(text),
        }
    }

    /// Notes whether messages were queued during the turn: if so, Esc ends the draft.
    pub fn note_queued(&self, has_any: bool) {
        if let Source::Edited(edited) = &self.source {
            edited.editors.keys().note_queued(has_any);
        }
    }

    /// Returns true if a line is being edited.
    pub fn has_draft(&self) -> bool {
        matches!(&self.source, Source::Edited(edited) if edited.open.is_some())
    }

    /// Stops reading and restores the terminal.
    pub async fn end(&mut self) {
        if let Source::Edited(edited) = &mut self.source
            && let Some(open) = edited.open.take()
        {
            // The editor's thread may still wait for a key, and would not restore the terminal.
            open.abort().await;
        }
        terminal::give_terminal_back();
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        terminal::give_terminal_back();
    }
}

fn terminal_source(
    words: LineEditorHelper,
    history: impl FnOnce() -> HistoryFile,
    stop_turn: StopTurn,
) -> Source {
    terminal::remember_terminal();
    if !terminal::can_edit() {
        return Source::Terminal;
    }
    let editors = Arc::new(Editors::new(words, history(), stop_turn));
    match editors.first() {
        Ok(editor) => Source::Edited(Box::new(Edited {
            editors,
            editor: Some(editor),
            open: None,
            begun: Vec::new(),
            continued: signal(SignalKind::from_raw(Signal::SIGCONT as i32)).ok(),
        })),
        Err(_) => Source::Terminal,
    }
}

/// Becomes ready when the process continues after it was stopped.
async fn wait_until_continued(stream: &mut Option<SignalStream>) {
    let is_heard = match stream {
        Some(stream) => stream.recv().await.is_some(),
        None => false,
    };
    if !is_heard {
        std::future::pending::<()>().await;
    }
}

impl Edited {
    /// Begins the next line with this text, too. If a line is being edited, Enter puts the text
    /// before it.
    fn begin_with(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let text = self.editors.folded(text);
        match &self.open {
            Some(_) => self.editors.keys().return_message(text),
            None => self.begun.push(text),
        }
    }

    /// Waits for a line of the open editor. Returns `None` if the editor has closed.
    async fn open_line(&mut self, over: &Cancel) -> Option<Result<Line, CommandFailure>> {
        let open = self.open.as_mut()?;
        let line = tokio::select! {
            biased;
            () = over.cancelled() => return Some(Ok(Line::End)),
            line = open.line() => line,
        };
        if line.is_none() {
            self.editor = open.ended().await;
            self.open = None;
            self.begun.extend(self.editors.keys().take_returned());
        }
        line
    }

    /// Shows the prompt between turns, and opens the editor when there is some text. Returns any
    /// other result.
    async fn begin_idle(
        &mut self,
        place: ForLines,
        beside: Beside<'_>,
    ) -> Result<Option<Line>, CommandFailure> {
        let open = if self.begun.is_empty() {
            match idle(Keys::Editor, &mut self.continued, &place, beside).await? {
                Idle::Typed(prompt) => prompt.hand_over(),
                Idle::Again | Idle::Asked => return Ok(None),
                Idle::Else(Some(line)) => return Ok(Some(line)),
                Idle::Else(None) => None,
            }
        } else {
            beside.view.open_question().await
        };
        let view = Arc::clone(beside.view);
        self.open(Screen { open, place, view, is_at_work: false })?;
        Ok(None)
    }

    /// Waits for the first key while a turn runs, and opens the editor for it. Gives way to a
    /// question.
    async fn begin_beside_turn(
        &mut self,
        place: ForLines,
        beside: Beside<'_>,
    ) -> Result<(), CommandFailure> {
        if !terminal::errors_are_terminal() {
            return std::future::pending().await;
        }
        let view = Arc::clone(beside.view);
        if !self.begun.is_empty() {
            let open = view.open_line().await;
            return self.open(Screen { open, place, view, is_at_work: true });
        }
        let prompt = PromptBeside::show(PROMPT).map_err(read_failure)?;
        beside.view.go_on();
        tokio::select! {
            biased;
            () = beside.over.cancelled() => return Ok(()),
            typed = prompt.typed() => typed.map_err(read_failure)?,
            () = place.wanted() => return Ok(()),
            () = wait_until_continued(&mut self.continued) => return Ok(()),
        }
        let open = view.open_line().await;
        drop(prompt);
        self.open(Screen { open, place, view, is_at_work: true })
    }

    /// Opens the editor with the text so far. Takes that text only here, because nothing is awaited
    /// after it and a dropped future would lose it.
    fn open(&mut self, screen: Screen) -> Result<(), CommandFailure> {
        terminal::read_keys(terminal::CtrlC::Key).map_err(read_failure)?;
        let editor = match self.editor.take() {
            Some(editor) => editor,
            None => self.editors.first().map_err(|error| read_failure(io::Error::other(error)))?,
        };
        let begun = std::mem::take(&mut self.begun).join("\n");
        self.open = Some(self.editors.open(editor, begun, screen));
        Ok(())
    }
}

/// Shows the prompt until the user types something or another event comes.
async fn idle(
    keys: Keys,
    stopped: &mut Option<SignalStream>,
    place: &ForLines,
    beside: Beside<'_>,
) -> Result<Idle, CommandFailure> {
    if !terminal::errors_are_terminal() {
        beside.view.settle().await;
        return Ok(Idle::Else(None));
    }
    let opened = tokio::select! {
        biased;
        () = beside.over.cancelled() => return Ok(Idle::Else(Some(Line::End))),
        opened = beside.view.open_question() => opened,
    };
    let Some(open) = opened else { return Ok(Idle::Else(None)) };
    // A blocked terminal must not keep a signal from being handled.
    let showing = tokio::task::spawn_blocking(move || IdlePrompt::show(open, PROMPT, keys));
    let prompt = tokio::select! {
        biased;
        () = beside.over.cancelled() => return Ok(Idle::Else(Some(Line::End))),
        shown = showing => shown.map_err(io::Error::other).flatten().map_err(read_failure)?,
    };
    Ok(tokio::select! {
        biased;
        () = beside.over.cancelled() => Idle::Else(Some(Line::End)),
        typed = prompt.typed() => {
            typed.map_err(read_failure)?;
            return Ok(Idle::Typed(prompt));
        }
        () = place.wanted() => Idle::Asked,
        () = beside.woken() => Idle::Else(Some(Line::Woken)),
        // Show it above the prompt, and then the prompt again.
        () = prompt.something_is_held() => Idle::Again,
        () = wait_until_continued(stopped) => Idle::Again,
    })
}

fn read_failure(error: io::Error) -> CommandFailure {
    input_failure(format!("cannot read from the terminal: {error}"))
}

async fn next_of_terminal(
    place: ForLines,
    beside: Beside<'_>,
) -> Result<Option<Line>, CommandFailure> {
    let held = match idle(Keys::Lines, &mut None, &place, beside).await? {
        Idle::Typed(prompt) => prompt.hand_over(),
        Idle::Again | Idle::Asked => return Ok(None),
        Idle::Else(Some(line)) => return Ok(Some(line)),
        Idle::Else(None) => None,
    };
    place.begin_typing();
    let line = plain_line(beside.over, tokio::task::spawn_blocking(plain)).await;
    drop(held);
    line.map(Some)
}

async fn next_of_pipe(
    reading: &mut Option<JoinHandle<Result<Line, CommandFailure>>>,
    beside: Beside<'_>,
) -> Result<Line, CommandFailure> {
    beside.view.settle().await;
    let running = reading.take().unwrap_or_else(|| tokio::task::spawn_blocking(plain));
    let running = reading.insert(running);
    let line = tokio::select! {
        biased;
        () = beside.over.cancelled() => return Ok(Line::End),
        () = beside.woken() => return Ok(Line::Woken),
        line = running => line.map_err(|error| input_failure(error.to_string()))?,
    };
    *reading = None;
    line
}

async fn plain_line(
    over: &Cancel,
    reading: JoinHandle<Result<Line, CommandFailure>>,
) -> Result<Line, CommandFailure> {
    tokio::select! {
        biased;
        () = over.cancelled() => Ok(Line::End),
        read = reading => read.map_err(|error| input_failure(error.to_string()))?,
    }
}

fn plain() -> Result<Line, CommandFailure> {
    let mut bytes = Vec::new();
    let read = if terminal::input_is_terminal() {
        // Read without a buffer, because buffered text could not be distinguished from an answer to
        // a question.
        terminal::read_line().map(|line| bytes = line)
    } else {
        let mut input = io::stdin().lock().take(LINE_BYTES_MAX + 1);
        input.read_until(b'\n', &mut bytes).map(drop)
    };
    read.map_err(|error| input_failure(format!("cannot read standard input: {error}")))?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.len() as u64 > LINE_BYTES_MAX {
        return Err(input_failure(format!(
            "a line of standard input has more than {LINE_BYTES_MAX} bytes"
        ))
        .hint("put it into a file and name the file in a message"));
    }
    String::from_utf8(bytes).map(|text| Line::Text(text.trim_end().to_owned())).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        input_failure(format!("a line of standard input is not UTF-8: byte {at} is wrong"))
            .hint("iconv -t UTF-8 converts it")
    })
}

fn input_failure(text: String) -> CommandFailure {
    CommandFailure::new(Exit::Usage, text)
}
