//! What was told, and what is new beside it.

use std::ops::Range;

use alacritty_terminal::Term;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use super::history::History;
use super::replies::Replies;
use super::text::{self, TextLine};

/// What is new since the last mark.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unseen {
    /// The text, lines joined by LF. It begins in the first line that changed: behind what was told
    /// of it if that still stands there, else at its beginning.
    pub text: String,
    /// Lines before the text that scrolled away and are no longer there. Lines as the program ended
    /// them, whatever the width; not counted are those that it erased itself.
    pub lines_lost: u64,
}

/// The screen when it was told. Lines are counted from its first one.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    lines: Vec<String>,
    /// The cursor's line.
    cursor_line: usize,
    /// Where in it the cursor stood.
    cursor: usize,
}

impl Baseline {
    /// Takes what the screen shows. The history must be empty.
    pub(super) fn of(term: &Term<Replies>) -> Self {
        let mut baseline = Self::default();
        for (at, line) in shown(term).into_iter().enumerate() {
            if let Some(cursor) = line.cursor {
                baseline.cursor_line = at;
                baseline.cursor = cursor;
            }
            baseline.lines.push(line.text);
        }
        baseline
    }

    /// Lines that are known to be told, whole.
    pub(super) fn lines_told(&self) -> u64 {
        self.cursor_line as u64
    }

    pub(super) fn unseen(&self, term: &Term<Replies>, history: &History) -> Unseen {
        let lines = shown(term);
        let gone = usize::try_from(history.lines_gone).unwrap_or(usize::MAX);
        let wiped_row = history.wiped_at.map(|row| {
            let top = history.rows_gone + term.grid().history_size() as u64;
            i32::try_from(row).unwrap_or(i32::MAX).saturating_sub(i32::try_from(top).unwrap_or(0))
        });
        let wiped = |line: &TextLine| wiped_row.is_some_and(|row| line.first_row >= row);
        let changed = |(at, line): (usize, &TextLine)| {
            let told = self.lines.get(gone + at).filter(|_| !wiped(line));
            line.trimmed() != told.map_or("", |told| told.trim_end_matches(' '))
        };
        let mut start = lines.iter().enumerate().position(changed);
        if wiped_row.is_none() {
            start = self.with_line_feeds(start, &lines, gone);
        }
        let Some(start) = start else {
            return Unseen { text: String::new(), lines_lost: history.lines_lost };
        };
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate().skip(start) {
            if at > start {
                text.push('\n');
            }
            let is_told_in_part = at == start && gone + at == self.cursor_line && !wiped(line);
            let told = if is_told_in_part { self.told_of_cursor_line() } else { "" };
            text.push_str(line.text.strip_prefix(told).unwrap_or(&line.text));
        }
        Unseen { text, lines_lost: history.lines_lost }
    }

    /// Where the text begins if what is new begins with line feeds: they change no line, but a
    /// person sees the cursor move down. The one that ended a told prompt is not told.
    fn with_line_feeds(
        &self,
        start: Option<usize>,
        lines: &[TextLine],
        gone: usize,
    ) -> Option<usize> {
        let cursor = lines.iter().position(|line| line.cursor.is_some())?;
        let blank = self.told_of_cursor_line().trim().is_empty();
        let first = self.cursor_line + usize::from(!blank);
        let first = first.saturating_sub(gone);
        let moved_down = gone + cursor > self.cursor_line;
        match start {
            Some(start) if moved_down => Some(start.min(first)),
            None if moved_down => Some(first.min(cursor)),
            start => start,
        }
    }

    fn told_of_cursor_line(&self) -> &str {
        self.lines.get(self.cursor_line).and_then(|line| line.get(..self.cursor)).unwrap_or("")
    }
}

/// The lines of history and screen, down to the last that is not blank or has the cursor.
fn shown(term: &Term<Replies>) -> Vec<TextLine> {
    let grid = term.grid();
    let all: Range<Line> = grid.topmost_line()..grid.bottommost_line() + 1i32;
    let mut lines = text::lines(grid, all);
    while lines.last().is_some_and(|line| line.cursor.is_none() && line.text.is_empty()) {
        lines.pop();
    }
    lines
}
