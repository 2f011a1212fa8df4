//! An open line editor. It reads keys on its own thread until the line is sent or dropped and no
//! typed-ahead text is left, regardless of the conversation.

use std::sync::Arc;
use std::time::Duration;

use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Behavior, CompletionType, Config, Event, EventHandler, ExternalPrinter as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::history::{HISTORY_LINES_MAX, HistoryFile};
use super::keys::{self, EndKey, Keys, StopTurn};
use super::{Line, PROMPT, PROMPT_AT_WORK, UnsentLine, input_failure};
use crate::ask::ForLines;
use crate::completion_words::LineEditorHelper;
use crate::exit::CommandFailure;
use crate::terminal::{self, CtrlC, OpenQuestion, Printer};
use crate::view::View;

/// How long to wait for the rest of a key, in milliseconds, because Esc is the first byte of many
/// keys.
const KEY_REST_MS: u16 = 100;

/// How often held output is shown above the line.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// Edits a line and completes words with Tab.
pub type Editor = rustyline::Editor<LineEditorHelper, DefaultHistory>;

/// Creates editors with the same settings.
pub struct Editors {
    words: LineEditorHelper,
    keys: Keys,
    history: HistoryFile,
}

/// The parts of the terminal that an open editor uses.
pub struct Screen {
    /// `None` if standard error is not a terminal.
    pub open: Option<OpenQuestion>,
    /// Reserves the terminal for the user who types.
    pub place: ForLines,
    /// Shows the running work when the editor closes.
    pub view: Arc<View>,
    /// Whether a turn runs.
    pub is_at_work: bool,
}

/// An open editor.
pub struct OpenEditor {
    lines: UnboundedReceiver<Result<Line, CommandFailure>>,
    ended: JoinHandle<Option<Box<Editor>>>,
}

impl Editors {
    /// Stores the settings. Creates no editor.
    pub fn new(words: LineEditorHelper, history: HistoryFile, stop_turn: StopTurn) -> Self {
        Self { words, keys: Keys::new(stop_turn), history }
    }

    /// Creates the first editor.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub fn first(&self) -> rustyline::Result<Box<Editor>> {
        let mut editor = self.another(DefaultHistory::default())?;
        self.history.load(&mut editor);
        Ok(editor)
    }

    fn another(&self, history: DefaultHistory) -> rustyline::Result<Box<Editor>> {
        let config = Config::builder()
            .behavior(Behavior::PreferTerm)
            .completion_type(CompletionType::List)
            .keyseq_timeout(Some(KEY_REST_MS))
            .build();
        let mut editor = Editor::with_history(config, history)?;
        editor.set_max_history_size(HISTORY_LINES_MAX)?;
        editor.set_history_ignore_space(true);
        editor.set_history_ignore_dups(true)?;
        editor.set_helper(Some(self.words.clone()));
        let keys = EventHandler::Conditional(Box::new(self.keys.clone()));
        editor.bind_sequence(Event::Any, keys);
        Ok(Box::new(editor))
    }

    /// Returns the meaning of the keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns a text as a draft shows it.
    pub fn folded(&self, text: String) -> String {
        self.keys.pastes().fold_again(text)
    }

    /// Opens an editor on a line that may contain text.
    pub fn open(
        self: &Arc<Self>,
        editor: Box<Editor>,
        begun: String,
        screen: Screen,
    ) -> OpenEditor {
        screen.place.begin_typing();
        let (send, lines) = unbounded_channel();
        let editors = Arc::clone(self);
        let ended = tokio::spawn(async move { editors.run(editor, begun, screen, send).await });
        OpenEditor { lines, ended }
    }

    async fn run(
        self: Arc<Self>,
        mut editor: Box<Editor>,
        begun: String,
        screen: Screen,
        send: UnboundedSender<Result<Line, CommandFailure>>,
    ) -> Option<Box<Editor>> {
        let Screen { open, place, view, is_at_work } = screen;
        if let Some(open) = &open
            && let Some(printer) = printer(&mut editor)
        {
            open.print_above(printer);
        }
        // The user may take a long time, and the wait must not delay signals.
        let keys = self.keys.clone();
        keys.watch_questions(place.waiting_questions());
        let mut reading =
            tokio::task::spawn_blocking(move || self.read_line(editor, begun, is_at_work, &send));
        let mut ticks = tokio::time::interval(SHOWN_EVERY);
        let editor = loop {
            tokio::select! {
                biased;
                read = &mut reading => break read.ok(),
                _ = ticks.tick() => terminal::show_above(),
            }
        };
        let is_erased = matches!(keys.ended_by(), Some(EndKey::Escape | EndKey::Empty));
        if let Some(open) = open.as_ref().filter(|_| is_erased) {
            // The row is empty. A terminal that is gone needs no cleanup.
            let _ = open.erase_rows(1 + usize::from(is_at_work));
        }
        drop(open);
        // Ctrl-C stops the following work. If the terminal is gone, the next read fails.
        let _ = terminal::read_keys(CtrlC::Signal);
        drop(place);
        view.go_on();
        editor
    }

    fn read_line(
        &self,
        mut editor: Box<Editor>,
        mut begun: String,
        is_at_work: bool,
        send: &UnboundedSender<Result<Line, CommandFailure>>,
    ) -> Box<Editor> {
        self.keys.begin();
        let prompt = if is_at_work { PROMPT_AT_WORK } else { PROMPT };
        loop {
            self.keys.begin_line();
            terminal::line_begins(is_at_work);
            let read = editor.readline_with_initial(prompt, (&std::mem::take(&mut begun), ""));
            terminal::line_ends();
            let (line, may_have_more) = match (read, self.keys.ended_by()) {
                (Ok(line), Some(EndKey::Drop)) => {
                    (Ok(Line::Dropped(UnsentLine::Dropped(line))), false)
                }
                (Ok(line), Some(EndKey::Stop)) => {
                    let draft = UnsentLine::Kept(self.keys.without_continuations(line));
                    (Ok(Line::Dropped(draft)), false)
                }
                // Nothing is sent, because the text was erased or dropped, and the turn continues.
                (Ok(_), Some(EndKey::Empty | EndKey::GiveWay)) => {
                    (Ok(Line::Text(String::new())), true)
                }
                (Ok(line), Some(EndKey::Escape) | None) => {
                    (Ok(Line::Text(self.text_to_send(&mut editor, line, is_at_work))), true)
                }
                (Err(ReadlineError::Eof), _) => (Ok(Line::End), false),
                (Err(error), _) => {
                    (Err(input_failure(format!("cannot read from the terminal: {error}"))), false)
                }
            };
            // The receiver is gone if the conversation is over.
            let _ = send.send(line);
            if !may_have_more || !self.keys.has_more() {
                break;
            }
        }
        if terminal::is_given_in_vain() {
            // The editor would show that text with its next line, after later output.
            let history = std::mem::take(editor.history_mut());
            if let Ok(another) = self.another(history) {
                return another;
            }
        }
        editor
    }

    /// Returns the text that a line sends, and stores the line for Up.
    fn text_to_send(&self, editor: &mut Editor, line: String, is_at_work: bool) -> String {
        let line = self.keys.without_continuations(line);
        let whole = self.keys.pastes().unfold(&line);
        // A long paste is not stored, because Up would show all of it.
        if whole.is_none() {
            self.history.keep(editor, &line);
        }
        let text = whole.unwrap_or(line);
        if is_at_work && !text.trim().is_empty() && !keys::is_command(&text) {
            self.keys.note_queued(true);
        }
        text
    }
}

impl OpenEditor {
    /// Waits for the next line. Returns `None` if the editor has closed.
    pub async fn line(&mut self) -> Option<Result<Line, CommandFailure>> {
        self.lines.recv().await
    }

    /// Waits until the editor has restored the terminal. Returns the editor.
    pub async fn ended(&mut self) -> Option<Box<Editor>> {
        (&mut self.ended).await.ok().flatten()
    }

    /// Stops the editor's use of the terminal. No more keys are read.
    pub async fn abort(self) {
        self.ended.abort();
        // The result says only that the task was aborted.
        let _ = self.ended.await;
    }
}

fn printer(editor: &mut Editor) -> Option<Printer> {
    let mut printer = editor.create_external_printer().ok()?;
    // If the terminal is gone, there is nothing to show.
    Some(Box::new(move |text| drop(printer.print(text))))
}
