//! What keys mean in the line editor, beyond what they mean in every one: Enter and its relatives,
//! Esc, Ctrl-C and Ctrl-Z.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustyline::{
    Cmd, ConditionalEventHandler, Event, EventContext, KeyCode, KeyEvent, Modifiers, RepeatCount,
};

use super::pastes::Pastes;
use crate::{platform, terminal};

/// Bytes of a key that is no character, at most.
const KEY_BYTES_MAX: usize = 8;

/// Stops the turn that runs; false if none does.
pub type StopTurn = Arc<dyn Fn() -> bool + Send + Sync>;

/// Sees every key of a line before the editor does. Clones are the same.
#[derive(Clone)]
pub struct Keys {
    seen: Arc<Mutex<Seen>>,
    pastes: Arc<Mutex<Pastes>>,
    stop_turn: StopTurn,
}

#[derive(Debug, Default)]
struct Seen {
    /// Bytes that were typed before the editor began to read: a paste, or a program's.
    typed_ahead: usize,
    /// Bytes of the keys that came since, about.
    bytes: usize,
    /// Ctrl-C ended the line.
    is_dropped: bool,
    /// What stood there, each time that a backslash before Enter made a new line.
    continued: Vec<String>,
    /// Esc ended a line in which nothing was typed.
    is_escaped: bool,
}

impl Keys {
    /// Makes one whose Esc stops the turn.
    pub fn new(stop_turn: StopTurn) -> Self {
        Self { seen: Arc::default(), pastes: Arc::default(), stop_turn }
    }

    /// Looks at what was typed ahead: an editor begins.
    pub fn begin(&self) {
        let typed_ahead = platform::bytes_waiting();
        *self.seen.lock() = Seen { typed_ahead, ..Seen::default() };
    }

    /// Tells whether more was typed ahead than the keys that came: the editor has it.
    pub fn has_more(&self) -> bool {
        let seen = self.seen.lock();
        seen.bytes < seen.typed_ahead
    }

    /// Returns true if Ctrl-C ended the line.
    pub fn is_dropped(&self) -> bool {
        self.seen.lock().is_dropped
    }

    /// Returns the pastes.
    pub fn pastes(&self) -> MutexGuard<'_, Pastes> {
        self.pastes.lock()
    }

    /// Takes the backslashes out of a line that made new lines of it; others are meant.
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

    /// Returns true if Esc ended the line, in which nothing was typed.
    pub fn is_escaped(&self) -> bool {
        self.seen.lock().is_escaped
    }

    fn note(&self, key: KeyEvent) {
        let mut seen = self.seen.lock();
        match key {
            // Nobody tells how long it is.
            KeyEvent(KeyCode::BracketedPasteStart, _) => seen.typed_ahead = 0,
            KeyEvent(KeyCode::Char(sign), Modifiers::NONE) => seen.bytes += sign.len_utf8(),
            KeyEvent(KeyCode::Enter, Modifiers::NONE)
            | KeyEvent(KeyCode::Char('J'), Modifiers::CTRL) => seen.bytes += 1,
            _ => seen.bytes += KEY_BYTES_MAX,
        }
    }

    fn enter(&self, context: &EventContext<'_>) -> Cmd {
        let line = context.line();
        if context.pos() == line.len() && ends_in_a_backslash(line) {
            self.seen.lock().continued.push(line.to_owned());
            return Cmd::Newline;
        }
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
        // A line end that was typed before the editor began was made of an Enter by the terminal.
        let is_typed_ahead = self.has_more();
        self.note(key);
        let cmd = self.pastes().take(key, context.line(), context.pos());
        if cmd.is_some() {
            return cmd;
        }
        match key {
            KeyEvent(KeyCode::Enter, Modifiers::NONE) => Some(self.enter(context)),
            KeyEvent(KeyCode::Char('J'), Modifiers::CTRL) if is_typed_ahead => {
                Some(self.enter(context))
            }
            KeyEvent(KeyCode::Enter, Modifiers::ALT)
            | KeyEvent(KeyCode::Char('J'), Modifiers::CTRL | Modifiers::CTRL_ALT) => {
                Some(Cmd::Newline)
            }
            KeyEvent(KeyCode::Esc, Modifiers::NONE) => {
                (self.stop_turn)();
                if !context.line().is_empty() {
                    return Some(Cmd::Noop);
                }
                // Nothing is typed: the prompt of an idle or a working chat is shown again.
                self.seen.lock().is_escaped = true;
                terminal::line_ends();
                Some(Cmd::AcceptLine)
            }
            KeyEvent(KeyCode::Char('C'), Modifiers::CTRL) => {
                self.seen.lock().is_dropped = true;
                terminal::line_ends();
                // And no `Cmd::Interrupt`, after which the editor does not draw the line again.
                Some(Cmd::AcceptLine)
            }
            KeyEvent(KeyCode::Char('D'), Modifiers::CTRL) if context.line().is_empty() => {
                terminal::line_ends();
                None
            }
            KeyEvent(KeyCode::Char('Z'), Modifiers::CTRL) => {
                terminal::stop_here();
                if context.line().is_empty() {
                    // Nothing is typed: whoever waits for the first key does so again.
                    terminal::line_ends();
                    return Some(Cmd::AcceptLine);
                }
                Some(Cmd::Repaint)
            }
            _ => None,
        }
    }
}

/// Tells whether a line goes on in the next one; two backslashes are one that does not.
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
        // A paste tells its end by itself.
        keys.seen.lock().typed_ahead = 1000;
        keys.note(KeyEvent(KeyCode::BracketedPasteStart, none));
        assert!(!keys.has_more());
    }
}
