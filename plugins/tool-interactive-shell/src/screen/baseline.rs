//! Compares the screen with its state at the last mark.

use std::ops::Range;

use alacritty_terminal::Term;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use super::history::ScreenHistory;
use super::replies::PendingReplies;
use super::text::{self, LinePiece, TextLine};

/// The new text since the last mark.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnseenText {
    /// The text, with lines joined by LF. It begins in the first changed line: after the reported
    /// text if that is still there, otherwise at the line's beginning.
    pub text: String,
    /// Whether it continues the last reported line or the text that scrolled away. Otherwise it
    /// begins a line.
    pub continues: bool,
}

/// The screen at the last mark. Lines are counted from its first one.
#[derive(Debug, Default)]
pub(super) struct ScreenBaseline {
    lines: Vec<String>,
    /// The cursor's line.
    cursor_line: usize,
    /// The cursor's position in that line.
    cursor: usize,
    /// Whether new text has left the history, so that everything after it is new.
    has_begun: bool,
}

/// The new text of a line that left the history.
pub(super) struct NewLineText<'a> {
    pub text: &'a str,
    /// As in [`UnseenText`].
    pub continues: bool,
}

/// The lines to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComparedLines {
    All,
    /// Lines that begin above the screen.
    Above,
}

impl ScreenBaseline {
    /// Creates the baseline of the current screen. The history must be empty.
    pub(super) fn from_screen(term: &Term<PendingReplies>) -> Self {
        let mut baseline = Self::default();
        for (at, line) in visible_lines(term).into_iter().enumerate() {
            if let Some(cursor) = line.cursor {
                baseline.cursor_line = at;
                baseline.cursor = cursor;
            }
            baseline.lines.push(line.text);
        }
        baseline
    }

    /// Returns true if everything that leaves the history is new.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the new text of a line, or of a piece of a line, that leaves the history.
    pub(super) fn text_leaving_history<'a>(
        &mut self,
        index: u64,
        line: LinePiece<'a>,
        (is_wiped, is_any_wiped): (bool, bool),
    ) -> Option<NewLineText<'a>> {
        let LinePiece { text, is_whole, .. } = line;
        if self.has_begun {
            return Some(NewLineText { text, continues: true });
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let told = self.lines.get(index).filter(|_| !is_wiped).map_or("", String::as_str);
        let is_told =
            if is_whole { text == told.trim_end_matches(' ') } else { told.starts_with(text) };
        if is_told && (is_any_wiped || index < self.first_below()) {
            if !is_whole {
                self.forget_beginning(index, text.len());
            }
            return None;
        }
        self.has_begun = true;
        let prefix =
            if index == self.cursor_line && !is_wiped { self.reported_cursor_line() } else { "" };
        let rest = text.strip_prefix(prefix).filter(|_| !prefix.is_empty());
        Some(NewLineText { text: rest.unwrap_or(text), continues: rest.is_some() })
    }

    /// Removes the start of a reported line, because its rest will be compared alone.
    fn forget_beginning(&mut self, index: usize, bytes: usize) {
        if let Some(line) = self.lines.get_mut(index) {
            line.drain(..bytes);
        }
        if index == self.cursor_line {
            self.cursor = self.cursor.saturating_sub(bytes);
        }
    }

    pub(super) fn unseen_text(
        &self,
        term: &Term<PendingReplies>,
        history: &ScreenHistory,
        which: ComparedLines,
    ) -> UnseenText {
        let mut lines = visible_lines(term);
        if which == ComparedLines::Above {
            lines.truncate(lines.iter().take_while(|line| line.first_row < 0).count());
        }
        let gone = usize::try_from(history.lines_gone).unwrap_or(usize::MAX);
        let wiped_row = history.wiped_row(term.grid());
        let wiped = |line: &TextLine| wiped_row.is_some_and(|row| line.first_row >= row);
        let changed = |(at, line): (usize, &TextLine)| {
            let told = self.lines.get(gone + at).filter(|_| !wiped(line));
            line.trimmed_text() != told.map_or("", |told| told.trim_end_matches(' '))
        };
        let mut start = lines.iter().enumerate().position(changed);
        if self.has_begun {
            start = (!lines.is_empty()).then_some(0);
        } else if wiped_row.is_none() {
            start = self.with_line_feeds(start, &lines, gone);
        }
        let Some(start) = start else { return UnseenText::default() };
        let mut unseen = UnseenText { text: String::new(), continues: self.has_begun };
        for (at, line) in lines.iter().enumerate().skip(start) {
            if at > start {
                unseen.text.push('\n');
            }
            let is_told_in_part =
                at == start && !self.has_begun && gone + at == self.cursor_line && !wiped(line);
            let told = if is_told_in_part { self.reported_cursor_line() } else { "" };
            let rest = line.text.strip_prefix(told).filter(|_| !told.is_empty());
            unseen.continues |= rest.is_some();
            unseen.text.push_str(rest.unwrap_or(&line.text));
        }
        if which == ComparedLines::Above && !unseen.text.is_empty() {
            unseen.text.push('\n');
        }
        unseen
    }

    /// Adjusts the start of new text that begins with line feeds. They change no line, but they
    /// move the visible cursor. The line feed that ended a reported prompt is not included.
    fn with_line_feeds(
        &self,
        start: Option<usize>,
        lines: &[TextLine],
        gone: usize,
    ) -> Option<usize> {
        // If the lines are above the screen, the cursor is below them.
        let cursor = lines.iter().position(|line| line.cursor.is_some()).unwrap_or(lines.len());
        let first = self.first_below().saturating_sub(gone);
        let moved_down = gone + cursor > self.cursor_line;
        match start {
            Some(start) if moved_down => Some(start.min(first)),
            None if moved_down => Some(first.min(cursor)).filter(|start| *start < lines.len()),
            start => start,
        }
    }

    /// Returns the first line for which a line feed alone is new.
    fn first_below(&self) -> usize {
        let blank = self.reported_cursor_line().trim().is_empty();
        self.cursor_line + usize::from(!blank)
    }

    fn reported_cursor_line(&self) -> &str {
        self.lines.get(self.cursor_line).and_then(|line| line.get(..self.cursor)).unwrap_or("")
    }
}

/// Returns the lines of history and screen, up to the last one that is not blank or has the cursor.
fn visible_lines(term: &Term<PendingReplies>) -> Vec<TextLine> {
    let grid = term.grid();
    let all: Range<Line> = grid.topmost_line()..grid.bottommost_line() + 1i32;
    let mut lines = text::text_lines(grid, all);
    while lines.last().is_some_and(|line| line.cursor.is_none() && line.text.is_empty()) {
        lines.pop();
    }
    lines
}
