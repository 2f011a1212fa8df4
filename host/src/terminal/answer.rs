//! Text that arrives in pieces: the model's answer on standard output, and tool output on standard
//! error.

use std::io;

use jaato_runtime::visible::{VisibilityMode, VisibleStream};

use super::markdown::Markdown;
use super::{Text, link, writer};

/// The model's answer. On a terminal it is made visible and drawn as Markdown. Elsewhere it is
/// written unchanged when it is complete, because a program cannot take back a broken one.
#[derive(Debug)]
pub struct Answer {
    manner: Drawing,
    line_is_open: bool,
}

/// How an answer is written.
#[derive(Debug)]
enum Drawing {
    /// Unchanged, piece by piece.
    Raw,
    /// Unchanged, when the answer has ended.
    Held(HeldAnswer),
    /// Made visible, for a terminal that can only show text.
    Visible(VisibleStream),
    /// Drawn as Markdown.
    Markdown(Box<Markdown>),
}

/// An answer that may still be requested again.
#[derive(Debug, Default)]
struct HeldAnswer {
    text: String,
    /// Set when the stream broke. The next piece belongs to another attempt and replaces the text.
    is_broken: bool,
}

impl HeldAnswer {
    fn push(&mut self, text: &str) {
        if std::mem::take(&mut self.is_broken) {
            self.text.clear();
        }
        self.text.push_str(text);
    }

    /// Takes the text. A broken text counts only if no later attempt was complete.
    fn take(&mut self, is_complete: bool) -> String {
        let Self { text, is_broken } = std::mem::take(self);
        if is_broken && is_complete { String::new() } else { text }
    }
}

impl Answer {
    /// Chooses the way to write. Checks once whether standard output is a terminal.
    pub fn new() -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let manner = match writer::output_is_terminal() {
            false => Drawing::Held(HeldAnswer::default()),
            true if is_dumb => Drawing::Visible(VisibleStream::new(VisibilityMode::Read)),
            true => Drawing::Markdown(Box::new(Markdown::new(console::colors_enabled()))),
        };
        Self { manner, line_is_open: false }
    }

    /// Writes each later piece at once, because no answer is requested twice.
    pub fn stop_holding(&mut self) {
        if matches!(self.manner, Drawing::Held(_)) {
            self.manner = Drawing::Raw;
        }
    }

    /// Records that the stream broke and that the host asks the provider again.
    pub fn break_off(&mut self) {
        if let Drawing::Held(held) = &mut self.manner {
            held.is_broken = true;
        }
    }

    /// Returns the held text, which is final now. `is_complete` says whether the last attempt
    /// succeeded.
    pub fn release(&mut self, is_complete: bool) -> String {
        let Drawing::Held(held) = &mut self.manner else { return String::new() };
        let text = held.take(is_complete);
        if !text.is_empty() {
            self.line_is_open = !text.ends_with('\n');
        }
        text
    }

    /// Takes the next piece. Returns the text to write now, which may be empty.
    pub fn piece(&mut self, text: &str) -> String {
        let shown = match &mut self.manner {
            Drawing::Raw => text.to_owned(),
            Drawing::Held(held) => {
                held.push(text);
                return String::new();
            }
            Drawing::Visible(visible) => visible.escape_piece(text).into_owned(),
            // These are complete rows.
            Drawing::Markdown(markdown) => return markdown.piece(text, columns()),
        };
        if !text.is_empty() {
            self.line_is_open = !text.ends_with('\n');
        }
        shown
    }

    /// Writes the text that [`Self::piece`] returned.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn write(&self, shown: &str) -> io::Result<()> {
        if shown.is_empty() { Ok(()) } else { writer::output(shown) }
    }

    /// Returns the text that has arrived and is not written yet.
    pub fn coming(&self) -> Option<&str> {
        match &self.manner {
            Drawing::Markdown(markdown) => markdown.coming(),
            Drawing::Raw | Drawing::Held(_) | Drawing::Visible(_) => None,
        }
    }

    /// Returns true if the last line is open.
    pub fn line_is_open(&self) -> bool {
        self.line_is_open
    }

    /// Ends the last line if it is open, and draws the rest of the text.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn end_line(&mut self) -> io::Result<()> {
        let rest = match &mut self.manner {
            Drawing::Raw | Drawing::Held(_) => String::new(),
            Drawing::Visible(visible) => visible.end(),
            Drawing::Markdown(markdown) => {
                let drawn = markdown.end(columns());
                return if drawn.is_empty() { Ok(()) } else { writer::output(&drawn) };
            }
        };
        if std::mem::take(&mut self.line_is_open) {
            return writer::output(&(rest + "\n"));
        }
        Ok(())
    }
}

fn columns() -> usize {
    writer::size_of(writer::Channel::Output).1
}

/// The minimum number of columns after a label for which lines are broken.
const ROOM_MIN: usize = 8;

/// Appends a piece of a line in rows of at most `room` columns, each after its label. Returns the
/// columns that the last row takes.
fn push_rows(rows: &mut String, piece: &str, taken: usize, room: usize, label: &str) -> usize {
    let mut taken = taken;
    for letter in piece.chars() {
        let width = match letter {
            '\n' => 0,
            // Up to the next tab stop.
            '\t' => 8 - taken % 8,
            letter => console::measure_text_width(letter.encode_utf8(&mut [0; 4])),
        };
        if taken + width > room {
            rows.push('\n');
            rows.push_str(label);
            taken = 0;
        }
        rows.push(letter);
        taken += width;
    }
    taken
}

/// Tool output, each line after the label of its plugin.
#[derive(Debug, Default)]
pub struct Output {
    /// The source whose last line is open, and the columns that the line takes.
    open: Option<Open>,
}

/// A line that has not ended.
#[derive(Debug)]
struct Open {
    source: String,
    visible: VisibleStream,
    /// Columns that the line takes after the label.
    taken: usize,
}

impl Output {
    /// Returns true if the last line is open.
    pub fn line_is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns true if the last line of another source is open.
    pub fn is_of_another(&self, source: &str) -> bool {
        self.open.as_ref().is_some_and(|open| open.source != source)
    }

    /// Writes the next piece of a source.
    ///
    /// # Errors
    /// If the reader closed standard error.
    pub fn piece(&mut self, source: &str, label: &Text, text: &str) -> io::Result<()> {
        let label = label.styled(|| console::Style::new().for_stderr());
        // The last column stays free. Lines are not wrapped if the terminal is too narrow for a
        // label.
        let room = writer::errors_are_terminal().then(|| {
            let columns = writer::size_of(writer::Channel::Errors).1;
            columns.saturating_sub(console::measure_text_width(&label) + 1)
        });
        let room = room.filter(|room| *room >= ROOM_MIN);
        let (mut line_is_open, mut visible, mut taken) = match self.open.take() {
            Some(Open { visible, taken, .. }) => (true, visible, taken),
            None => (false, VisibleStream::new(VisibilityMode::Read), 0),
        };
        // Write all lines at once, because a tool may print a hundred thousand short lines and a
        // cancellation waits for them.
        let mut lines = String::new();
        for piece in visible.escape_piece(text).split_inclusive('\n') {
            if !line_is_open && let Some(link) = link::alone(piece) {
                // Without a label and line breaks, the user can copy the link.
                lines.push_str(&link::shown(link));
                continue;
            }
            if !line_is_open {
                lines.push_str(&label);
                taken = 0;
            }
            match room {
                Some(room) => taken = push_rows(&mut lines, piece, taken, room, &label),
                None => lines.push_str(piece),
            }
            line_is_open = !piece.ends_with('\n');
        }
        self.open = line_is_open.then(|| Open { source: source.to_owned(), visible, taken });
        writer::errors(&lines)
    }

    /// Ends the last line if it is open.
    ///
    /// # Errors
    /// If the reader closed standard error.
    pub fn end_line(&mut self) -> io::Result<()> {
        match self.open.take() {
            Some(Open { mut visible, .. }) => writer::errors(&(visible.end() + "\n")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_with_pieces(pieces: &[&str]) -> Answer {
        let manner = Drawing::Held(HeldAnswer::default());
        let mut answer = Answer { manner, line_is_open: false };
        for piece in pieces {
            assert_eq!(answer.piece(piece), "", "nothing is written yet");
        }
        answer
    }

    #[test]
    fn held_answer_is_written_when_it_has_ended() {
        let mut answer = answer_with_pieces(&["hello ", "there"]);
        assert!(!answer.line_is_open());
        assert_eq!(answer.release(true), "hello there");
        assert!(answer.line_is_open());
        assert_eq!(answer.release(true), "");
    }

    #[test]
    fn next_attempt_replaces_a_broken_answer() {
        let mut answer = answer_with_pieces(&["hel"]);
        answer.break_off();
        answer.piece("hello");
        assert_eq!(answer.release(true), "hello");
    }

    #[test]
    fn broken_answer_is_dropped_if_the_next_attempt_is_complete_without_text() {
        let mut answer = answer_with_pieces(&["hel"]);
        answer.break_off();
        assert_eq!(answer.release(true), "");
    }

    #[test]
    fn broken_answer_is_written_if_no_attempt_succeeds() {
        let mut answer = answer_with_pieces(&["hel"]);
        answer.break_off();
        assert_eq!(answer.release(false), "hel");
    }

    #[test]
    fn answer_that_is_never_requested_twice_is_written_at_once() {
        let mut answer = answer_with_pieces(&[]);
        answer.stop_holding();
        assert_eq!(answer.piece("hel"), "hel");
    }
}
