//! The keys with a special meaning in the line editor: Enter and its variants, Esc, Ctrl-C and
//! Ctrl-Z.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::{Mutex, MutexGuard};
use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, KeyCode, KeyEvent, Modifiers, Movement,
    RepeatCount,
};

use super::PROMPT;
use super::pastes::Pastes;
use crate::ask::WaitingQuestions;
use crate::{platform, terminal};

/// Limit on the bytes of a key that is not a character.
const KEY_BYTES_MAX: usize = 8;

/// Stops the running turn. Returns false if none runs.
pub type StopTurn = Arc<dyn Fn() -> bool + Send + Sync>;

/// Sees every key of a line before the editor does. Clones share their state.
#[derive(Clone)]
pub struct Keys {
    seen: Arc<Mutex<Seen>>,
    pastes: Arc<Mutex<Pastes>>,
    stop_turn: StopTurn,
    queue: Arc<Queue>,
    questions: Arc<Mutex<Option<WaitingQuestions>>>,
}

/// The messages that were sent during a turn, as the editor knows them.
#[derive(Default)]
struct Queue {
    /// Whether the turn has such messages.
    has_any: AtomicBool,
    /// Messages that no step has taken. They come back before the draft.
    returned: Mutex<Vec<String>>,
}

/// A key other than Enter that ended a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKey {
    /// Ctrl-C, which drops the line.
    Drop,
    /// Esc, which stops the turn. The line stays a draft, after the queued messages.
    Stop,
    /// Esc on an empty line.
    Escape,
    /// A key that left the draft empty.
    Empty,
    /// Ctrl-C while a question waits, which gets the terminal.
    GiveWay,
}

#[derive(Debug, Default)]
struct Seen {
    /// Bytes that were typed before the editor began to read, by a paste or a program.
    typed_ahead: usize,
    /// The approximate number of bytes of the keys since then.
    bytes: usize,
    /// The key that ended the line, unless it was Enter.
    ended_by: Option<EndKey>,
    /// The line at each backslash before Enter that made a new line.
    continued: Vec<String>,
}

impl Keys {
    /// Creates a value whose Esc stops the turn.
    pub fn new(stop_turn: StopTurn) -> Self {
        Self {
            seen: Arc::default(),
            pastes: Arc::default(),
            stop_turn,
            queue: Arc::default(),
            questions: Arc::default(),
        }
    }

    /// Records that an editor begins, and counts the bytes that were typed ahead.
    pub fn begin(&self) {
        let typed_ahead = platform::pending_input_bytes();
        *self.seen.lock() = Seen { typed_ahead, ..Seen::default() };
    }

    /// Returns true if the editor has more typed-ahead text than the keys so far.
    pub fn has_more(&self) -> bool {
        let seen = self.seen.lock();
        seen.bytes < seen.typed_ahead
    }

    /// Records that the editor begins the next line.
    pub fn begin_line(&self) {
        self.seen.lock().ended_by = None;
    }

    /// Returns the key that ended the line, unless it was Enter.
    pub fn ended_by(&self) -> Option<EndKey> {
        self.seen.lock().ended_by
    }

    /// Makes the draft give way to these questions when it is empty or dropped.
    pub fn watch_questions(&self, questions: WaitingQuestions) {
        *self.questions.lock() = Some(questions);
    }

    fn question_waits(&self) -> bool {
        self.questions.lock().as_ref().is_some_and(WaitingQuestions::has_any)
    }

    /// Notes whether messages were queued during the turn.
    pub fn note_queued(&self, has_any: bool) {
        self.queue.has_any.store(has_any, Relaxed);
    }

    /// Makes the next Enter put a message before the draft, instead of sending the draft alone.
    pub fn return_message(&self, text: String) {
        self.queue.returned.lock().push(text);
    }

    /// Takes the messages that no Enter has put before a draft.
    pub fn take_returned(&self) -> Vec<String> {
        std::mem::take(&mut *self.queue.returned.lock())
    }

    /// Returns the pastes.
    pub fn pastes(&self) -> MutexGuard<'_, Pastes> {
        self.pastes.lock()
    }

    /// Removes the backslashes that made new lines from a line. Other backslashes are part of the
    /// text.
    pub fn without_continuations(&self, line: String) -> String {
        let mut line = line;
        for begun in self.seen.lock().continued.drain(..).rev() {
            let goes_on = line.strip_prefix(&begun).is_some_and(|rest| rest.starts_with('\n'));
            if goes_on {
                line.remove(begun.len() - 1);
            }
        }
        line
    }

    fn note(&self, key: KeyEvent) {
        let mut seen = self.seen.lock();
        match key {
            // The length of a paste is unknown.
            KeyEvent(KeyCode::BracketedPasteStart, _) => seen.typed_ahead = 0,
            KeyEvent(KeyCode::Char(sign), Modifiers::NONE) => seen.bytes += sign.len_utf8(),
            KeyEvent(KeyCode::Enter, Modifiers::NONE)
            | KeyEvent(KeyCode::Char('J'), Modifiers::CTRL) => seen.bytes += 1,
            _ => seen.bytes += KEY_BYTES_MAX,
        }
    }

    fn enter_command(&self, context: &EventContext<'_>) -> Cmd {
        let line = context.line();
        if context.pos() == line.len() && ends_in_a_backslash(line) {
            self.seen.lock().continued.push(line.to_owned());
            return Cmd::Newline;
        }
        if !is_command(line)
            && let Some(whole) = self.with_returned(line)
        {
            return Cmd::Replace(Movement::WholeBuffer, Some(whole));
        }
        terminal::line_ends();
        Cmd::AcceptLine
    }

    /// Returns the returned messages followed by the draft, or `None` if no message was returned.
    fn with_returned(&self, line: &str) -> Option<String> {
        let mut returned = self.take_returned();
        if returned.is_empty() {
            return None;
        }
        let draft = self.without_continuations(line.to_owned());
        returned.extend(Some(draft).filter(|draft| !draft.is_empty()));
        Some(returned.join("\n"))
    }

    fn escape(&self, line: &str) -> Cmd {
        let end = match line.is_empty() {
            // The line is empty, so the prompt of the idle or working chat is shown again.
            true => EndKey::Escape,
            false if self.queue.has_any.load(Relaxed) => EndKey::Stop,
            false => {
                (self.stop_turn)();
                return Cmd::Noop;
            }
        };
        if end == EndKey::Escape {
            (self.stop_turn)();
        }
        self.end_line(end)
    }

    fn end_line(&self, by: EndKey) -> Cmd {
        self.seen.lock().ended_by = Some(by);
        terminal::line_ends();
        Cmd::AcceptLine
    }
}

impl ConditionalEventHandler for Keys {
    fn handle(
        &self,
        event: &Event,
        _times: RepeatCount,
        _positive: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let key = *event.get(0)?;
        // The terminal turned an Enter before the editor began into a line end.
        let is_typed_ahead = self.has_more();
        self.note(key);
        let cmd = self.pastes().take(key, context.line(), context.pos());
        if cmd.is_some() {
            return cmd;
        }
        let is_empty_next = match erased_by(key, context.line(), context.pos()) {
            Some(Erased::Character) => true,
            // The editor can put the text back, unless a question needs the terminal.
            Some(Erased::Words) => self.question_waits(),
            None => false,
        };
        if is_empty_next {
            return Some(self.end_line(EndKey::Empty));
        }
        match key {
            KeyEvent(KeyCode::Enter, Modifiers::NONE) => Some(self.enter_command(context)),
            KeyEvent(KeyCode::Char('J'), Modifiers::CTRL) if is_typed_ahead => {
                Some(self.enter_command(context))
            }
            KeyEvent(KeyCode::Enter, Modifiers::ALT)
            | KeyEvent(KeyCode::Char('J'), Modifiers::CTRL | Modifiers::CTRL_ALT) => {
                Some(Cmd::Newline)
            }
            KeyEvent(KeyCode::Esc, Modifiers::NONE) => Some(self.escape(context.line())),
            // Not `Cmd::Interrupt`, after which the editor does not draw the line again.
            KeyEvent(KeyCode::Char('C'), Modifiers::CTRL) => {
                let gives_way = self.question_waits();
                Some(self.end_line(if gives_way { EndKey::GiveWay } else { EndKey::Drop }))
            }
            KeyEvent(KeyCode::Char('D'), Modifiers::CTRL) if context.line().is_empty() => {
                terminal::line_ends();
                None
            }
            KeyEvent(KeyCode::Char('Z'), Modifiers::CTRL) => {
                terminal::stop_here();
                if context.line().is_empty() {
                    // The line is empty, so the chat waits for the first key again.
                    terminal::line_ends();
                    return Some(Cmd::AcceptLine);
                }
                Some(Cmd::Repaint)
            }
            _ => None,
        }
    }
}

/// The text that a key erases.
#[derive(Debug, PartialEq, Eq)]
enum Erased {
    /// At most one character.
    Character,
    /// Words, which the editor can put back.
    Words,
}

/// Returns what a key erases if it leaves nothing of a line of one row.
fn erased_by(key: KeyEvent, line: &str, pos: usize) -> Option<Erased> {
    let (is_start, is_end) = (pos == 0, pos == line.len());
    let columns = PROMPT.len() + console::measure_text_width(line);
    if line.contains('\n') || columns >= terminal::size().1 {
        return None;
    }
    let is_character = line.chars().count() <= 1;
    let (is_whole, erased) = match key {
        KeyEvent(KeyCode::Backspace, Modifiers::NONE)
        | KeyEvent(KeyCode::Char('H'), Modifiers::CTRL) => {
            (is_end && is_character, Erased::Character)
        }
        KeyEvent(KeyCode::Delete, Modifiers::NONE) => (is_start && is_character, Erased::Character),
        KeyEvent(KeyCode::Char('U'), Modifiers::CTRL) => (is_end, Erased::Words),
        KeyEvent(KeyCode::Char('K'), Modifiers::CTRL) => (is_start, Erased::Words),
        KeyEvent(KeyCode::Char('W'), Modifiers::CTRL)
        | KeyEvent(KeyCode::Backspace, Modifiers::ALT) => {
            (is_end && line.chars().all(char::is_alphanumeric), Erased::Words)
        }
        _ => return None,
    };
    is_whole.then_some(erased)
}

/// Returns true if a line is for jaato, and not for the model.
pub fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('/') && !line.starts_with("//")
}

/// Returns true if a line continues in the next one. Two backslashes are a literal one.
fn ends_in_a_backslash(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_backslash_at_the_end_goes_on_and_two_are_meant() {
        for (line, goes_on) in [("", false), ("a", false), ("a\\", true), (r"C:\\", false)] {
            assert_eq!(ends_in_a_backslash(line), goes_on, "{line}");
        }
        assert!(ends_in_a_backslash("\\"));
    }

    #[test]
    fn only_a_backslash_that_made_a_new_line_is_taken_out() {
        let keys = Keys::new(Arc::new(|| false));
        keys.seen.lock().continued = ["a\\", "a\\\nb\\", "gone\\"].map(str::to_owned).into();
        let line = "a\\\nb\\\nls \\\n-l".to_owned();
        assert_eq!(keys.without_continuations(line), "a\nb\nls \\\n-l");
        assert_eq!(keys.without_continuations("a\\\nb".to_owned()), "a\\\nb");
    }

    #[test]
    fn returned_messages_are_put_before_the_draft_once() {
        let keys = Keys::new(Arc::new(|| false));
        assert_eq!(keys.with_returned("half"), None);
        keys.return_message("one".to_owned());
        keys.return_message("two".to_owned());
        assert_eq!(keys.with_returned("half").as_deref(), Some("one\ntwo\nhalf"));
        assert_eq!(keys.with_returned("half"), None);
        keys.return_message("one".to_owned());
        assert_eq!(keys.with_returned("").as_deref(), Some("one"));
    }

    #[test]
    fn esc_ends_a_draft_only_if_messages_are_queued() {
        let stops = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stops);
        let keys = Keys::new(Arc::new(move || stopped.swap(true, Relaxed)));
        keys.note_queued(true);
        assert_eq!((keys.escape("half"), keys.ended_by()), (Cmd::AcceptLine, Some(EndKey::Stop)));
        // The turn is stopped by who gets the line, so that the line is there before the end.
        assert!(!stops.load(Relaxed));
        keys.begin();
        keys.note_queued(false);
        assert_eq!((keys.escape("half"), keys.ended_by()), (Cmd::Noop, None));
        assert!(stops.load(Relaxed));
        assert_eq!((keys.escape(""), keys.ended_by()), (Cmd::AcceptLine, Some(EndKey::Escape)));
    }

    #[test]
    fn key_that_leaves_nothing_of_a_line_is_known() {
        let none = Modifiers::NONE;
        let backspace = KeyEvent(KeyCode::Backspace, none);
        for (key, line, pos, erased) in [
            (backspace, "é", 2, Some(Erased::Character)),
            (backspace, "", 0, Some(Erased::Character)),
            (backspace, "ab", 2, None),
            (backspace, "a", 0, None),
            (KeyEvent(KeyCode::Delete, none), "a", 0, Some(Erased::Character)),
            (KeyEvent::ctrl('U'), "some words", 10, Some(Erased::Words)),
            (KeyEvent::ctrl('U'), "some words", 4, None),
            (KeyEvent::ctrl('U'), "two\nrows", 8, None),
            (KeyEvent::ctrl('K'), "some words", 0, Some(Erased::Words)),
            (KeyEvent::ctrl('W'), "words", 5, Some(Erased::Words)),
            (KeyEvent::ctrl('W'), "some words", 10, None),
            (KeyEvent(KeyCode::Char('a'), none), "", 0, None),
        ] {
            assert_eq!(erased_by(key, line, pos), erased, "{key:?} {line:?} {pos}");
        }
    }

    #[test]
    fn what_was_typed_ahead_is_counted_by_its_keys() {
        let keys = Keys::new(Arc::new(|| false));
        keys.seen.lock().typed_ahead = "é\rb".len();
        let none = Modifiers::NONE;
        for (key, has_more) in [
            (KeyEvent(KeyCode::Char('é'), none), true),
            (KeyEvent(KeyCode::Enter, none), true),
            (KeyEvent(KeyCode::Char('b'), none), false),
        ] {
            keys.note(key);
            assert_eq!(keys.has_more(), has_more, "{key:?}");
        }
        // The terminal marks the end of a paste.
        keys.seen.lock().typed_ahead = 1000;
        keys.note(KeyEvent(KeyCode::BracketedPasteStart, none));
        assert!(!keys.has_more());
    }
}
