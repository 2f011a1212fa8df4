//! Reads the answer to a question: key by key in a line that jaato edits, or as whole lines on a
//! simple terminal.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use super::keys::{Decoder, Key};
use super::line::Line;
use super::rows::{Dialog, Manner};
use crate::terminal::keys::{CtrlC, QuestionKeys, stop_here};
use crate::terminal::raw_input::{self, CTRL_C, CtrlCAsKey};
use crate::terminal::writer;

/// How long `y` or a digit must be the only key before it answers, because the user may be typing
/// `yes`.
const KEY_PAUSE: Duration = Duration::from_millis(250);

/// The same for keys that may begin a sentence and are less urgent.
const LONG_KEY_PAUSE: Duration = Duration::from_millis(600);

/// Keys in addition to digits that answer without Enter.
const KEYS: [char; 5] = ['y', 'n', 's', 'e', '?'];

/// The answer that Ctrl-D gives to a question with single keys.
const NO: &str = "n";

/// Limit on reads of text that was typed too early, because a program may type without end.
const EARLY_READS_MAX: usize = 16;

/// Terminals that cannot move a cursor, by their `TERM` variable.
const NO_CURSOR_ON: [&str; 3] = ["dumb", "cons25", "emacs"];

/// Returns true if the terminal can show a line that jaato edits.
pub fn can_edit() -> bool {
    let name = std::env::var("TERM").unwrap_or_default();
    let is_dumb = NO_CURSOR_ON.iter().any(|other| name.eq_ignore_ascii_case(other));
    !name.is_empty() && !is_dumb && writer::errors_are_terminal()
}

/// The result of waiting for input.
pub(super) enum Typed {
    Line(String),
    /// The size of the terminal has changed.
    Resized,
    /// The user stopped jaato, and it runs again.
    Stopped,
    /// The input has ended.
    Ended,
}

/// How the user types an answer.
pub(super) enum Typing {
    Keys(Box<Keys>),
    /// Whole lines, which the terminal shows. Ctrl-C may be a key.
    Lines(#[expect(dead_code, reason = "only its drop matters")] Option<CtrlCAsKey>),
}

/// The keys of a line.
pub(super) struct Keys {
    decoder: Decoder,
    /// Keys that have arrived and are not processed yet.
    waiting: VecDeque<Key>,
    line: Line,
    /// Whether the line must be drawn again.
    has_changed: bool,
    /// Whether the input has ended.
    has_ended: bool,
    last_key: Instant,
    manner: Manner,
    _taken: QuestionKeys,
}

impl Typing {
    /// Takes over the keyboard.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn begin(question: &Dialog) -> io::Result<Self> {
        let manner = question.manner;
        Ok(match (can_edit(), manner) {
            (true, _) => Self::Keys(Box::new(Keys {
                decoder: Decoder::default(),
                waiting: VecDeque::new(),
                line: Line::of(&question.begun),
                has_changed: false,
                has_ended: false,
                last_key: Instant::now(),
                manner,
                _taken: QuestionKeys::begin(match manner {
                    Manner::Keys => CtrlC::Signal,
                    Manner::Words => CtrlC::Key,
                })?,
            })),
            (false, Manner::Keys) => Self::Lines(None),
            (false, Manner::Words) => Self::Lines(Some(CtrlCAsKey::begin()?)),
        })
    }

    /// Begins the line again.
    pub(super) fn begin_again(&mut self, begun: &str) {
        if let Self::Keys(keys) = self {
            keys.line = Line::of(begun);
        }
    }

    /// Returns true if keys arrive one by one and rows can be erased.
    pub(super) fn has_keys(&self) -> bool {
        matches!(self, Self::Keys(_))
    }

    /// Takes the input that was typed so far, as text.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn take_early(&mut self) -> io::Result<String> {
        let keys = match self {
            Self::Keys(keys) => keys,
            Self::Lines(_) => {
                return Ok(raw_input::take_early()?.into_iter().map(|line| line + "\n").collect());
            }
        };
        for _ in 0..EARLY_READS_MAX {
            if !keys.read()? {
                break;
            }
        }
        Ok(keys.rest())
    }

    /// Takes the input after the answer, as text.
    pub(super) fn rest(&mut self) -> String {
        match self {
            Self::Keys(keys) => keys.rest(),
            Self::Lines(_) => String::new(),
        }
    }

    /// Returns the next line if it is complete.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn next(&mut self) -> io::Result<Option<Typed>> {
        match self {
            Self::Keys(keys) => keys.next(),
            Self::Lines(_) if !raw_input::is_typed()? => Ok(None),
            Self::Lines(_) => {
                let line = raw_input::read_line()?;
                // An answer has no control characters, such as Ctrl-L.
                let is_text = |sign: &char| !sign.is_control() || *sign == CTRL_C;
                let text = String::from_utf8_lossy(&line);
                let text = || Typed::Line(text.chars().filter(is_text).collect());
                Ok(Some(if line.is_empty() { Typed::Ended } else { text() }))
            }
        }
    }

    /// Returns true if the line has changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        match self {
            Self::Keys(keys) => std::mem::take(&mut keys.has_changed),
            Self::Lines(_) => false,
        }
    }

    /// Returns the visible part of the line and the columns after the cursor. Returns `None` if the
    /// terminal shows the line itself.
    pub(super) fn shown(&self, columns: usize) -> Option<(String, usize)> {
        match self {
            Self::Keys(keys) => Some(keys.line.shown(columns)),
            Self::Lines(_) => None,
        }
    }
}

impl Keys {
    /// Reads typed keys. Returns false if there were none.
    fn read(&mut self) -> io::Result<bool> {
        if !raw_input::is_typed()? {
            return Ok(false);
        }
        let bytes = raw_input::read_some()?;
        self.has_ended = bytes.is_empty();
        self.waiting.extend(self.decoder.keys(&bytes));
        self.last_key = Instant::now();
        Ok(!self.has_ended)
    }

    fn next(&mut self) -> io::Result<Option<Typed>> {
        if !self.read()? && self.waiting.is_empty() {
            if self.has_ended {
                return Ok(Some(Typed::Ended));
            }
            let is_answer = |pause| self.last_key.elapsed() >= pause;
            return Ok(self.pause().filter(|pause| is_answer(*pause)).map(|_| self.take_line()));
        }
        while let Some(key) = self.waiting.pop_front() {
            self.has_changed = true;
            match key {
                Key::CtrlC => {
                    let line = std::mem::take(&mut self.line).text();
                    return Ok(Some(Typed::Line(format!("{line}{CTRL_C}"))));
                }
                // Unlike the end of the input, the key is an answer of the user.
                Key::CtrlD if self.line.is_empty() => {
                    return Ok(Some(Typed::Line(match self.manner {
                        Manner::Keys => NO.to_owned(),
                        Manner::Words => CTRL_C.to_string(),
                    })));
                }
                Key::CtrlZ => {
                    stop_here();
                    return Ok(Some(Typed::Stopped));
                }
                key => {
                    if self.line.take(key) {
                        return Ok(Some(self.take_line()));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Returns how long the typed key must be the only one before it answers.
    fn pause(&self) -> Option<Duration> {
        let key = self.line.only_key().filter(|_| self.manner == Manner::Keys)?;
        match key.to_ascii_lowercase() {
            'y' | '0'..='9' => Some(KEY_PAUSE),
            key => KEYS.contains(&key).then_some(LONG_KEY_PAUSE),
        }
    }

    fn take_line(&mut self) -> Typed {
        Typed::Line(std::mem::take(&mut self.line).text())
    }

    /// Takes the unprocessed keys, as text.
    fn rest(&mut self) -> String {
        let mut text = String::new();
        for key in self.waiting.drain(..) {
            match key {
                Key::Char(sign) | Key::Pasted(sign) => text.push(sign),
                Key::Enter => text.push('\n'),
                Key::Backspace => _ = text.pop(),
                _ => {}
            }
        }
        text
    }
}
