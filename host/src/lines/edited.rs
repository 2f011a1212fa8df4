//! A line editor that is open: it reads keys on a thread of its own until the line is sent, dropped
//! or nothing more was typed ahead, whatever the conversation does meanwhile.

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
use super::{Line, PROMPT, PROMPT_AT_WORK, UnsentLine, failed};
use crate::ask::ForLines;
use crate::exit::CommandFailure;
use crate::terminal::{self, CtrlC, OpenQuestion, Printer};
use crate::view::View;
use crate::words::LineEditorHelper;

/// How long the rest of a key is waited for, in milliseconds: Esc is the first byte of many keys.
const KEY_REST_MS: u16 = 100;

/// How often what was written meanwhile is shown above the line.
const SHOWN_EVERY: Duration = Duration::from_millis(50);

/// Edits a line, and offers words by Tab.
pub type Editor = rustyline::Editor<LineEditorHelper, DefaultHistory>;

/// Makes editors that are alike.
pub struct Editors {
    words: LineEditorHelper,
    keys: Keys,
    history: HistoryFile,
}

/// What an open editor has of the terminal.
pub struct Screen {
    /// Nothing where errors are no terminal.
    pub open: Option<OpenQuestion>,
    /// The terminal is who types' own for as long.
    pub place: ForLines,
    /// Shows what goes on when it ends.
    pub view: Arc<View>,
    /// Whether a turn runs.
    pub is_at_work: bool,
}

/// An editor that is open.
pub struct OpenEditor {
    lines: UnboundedReceiver<Result<Line, CommandFailure>>,
    ended: JoinHandle<Option<Box<Editor>>>,
}

impl Editors {
    /// Makes none yet.
    pub fn new(words: LineEditorHelper, history: HistoryFile, stop_turn: StopTurn) -> Self {
        Self { words, keys: Keys::new(stop_turn), history }
    }

    /// Makes the first.
    ///
    /// # Errors
    /// When there is no terminal for one.
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

    /// Returns what the keys mean.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns a text as a draft shows it.
    pub fn folded(&self, text: String) -> String {
        self.keys.pastes().fold_again(text)
    }

    /// Opens an editor on a line that is begun already.
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
        // A person may take their time: the wait must not hold up signals.
        let keys = self.keys.clone();
        keys.watch_questions(place.waiting_questions());
        let mut reading =
            tokio::task::spawn_blocking(move || self.read(editor, begun, is_at_work, &send));
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
            // Nothing is typed there. A terminal that is gone needs nothing.
            let _ = open.erase_rows(1 + usize::from(is_at_work));
        }
        drop(open);
        // Ctrl-C stops what follows. A terminal that is gone shows so to whoever reads next.
        let _ = terminal::read_keys(CtrlC::Signal);
        drop(place);
        view.go_on();
        editor
    }

    fn read(
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
                // Nothing to send: the text was erased or dropped, and the turn continues.
                (Ok(_), Some(EndKey::Empty | EndKey::GiveWay)) => {
                    (Ok(Line::Text(String::new())), true)
                }
                (Ok(line), Some(EndKey::Escape) | None) => {
                    (Ok(Line::Text(self.sent(&mut editor, line, is_at_work))), true)
                }
                (Err(ReadlineError::Eof), _) => (Ok(Line::End), false),
                (Err(error), _) => {
                    (Err(failed(format!("cannot read from the terminal: {error}"))), false)
                }
            };
            // Nobody waits for it any more where the conversation is over.
            let _ = send.send(line);
            if !may_have_more || !self.keys.has_more() {
                break;
            }
        }
        if terminal::is_given_in_vain() {
            // It would show that with the next line, behind what is written now.
            let history = std::mem::take(editor.history_mut());
            if let Ok(another) = self.another(history) {
                return another;
            }
        }
        editor
    }

    /// Returns the text that a line sends, and keeps the line for Up.
    fn sent(&self, editor: &mut Editor, line: String, is_at_work: bool) -> String {
        let line = self.keys.without_continuations(line);
        let whole = self.keys.pastes().unfold(&line);
        // A long paste is not kept: Up would show all of it.
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
    /// Waits for the next line; none when the editor is no longer open.
    pub async fn line(&mut self) -> Option<Result<Line, CommandFailure>> {
        self.lines.recv().await
    }

    /// Waits until it has given the terminal back; returns the editor.
    pub async fn ended(&mut self) -> Option<Box<Editor>> {
        (&mut self.ended).await.ok().flatten()
    }

    /// Takes the terminal away from it: nothing more is read.
    pub async fn abort(self) {
        self.ended.abort();
        // An error says that it was aborted.
        let _ = self.ended.await;
    }
}

fn printer(editor: &mut Editor) -> Option<Printer> {
    let mut printer = editor.create_external_printer().ok()?;
    // A terminal that is gone shows nothing.
    Some(Box::new(move |text| drop(printer.print(text))))
}
