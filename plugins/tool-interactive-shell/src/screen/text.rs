//! Rows of cells as text: lines that a person reads.

use std::ops::Range;

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags, LineLength as _};

/// A line as the program wrote it: one row, or several that the terminal wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextLine {
    /// Its text, without blanks at the end but those before the cursor.
    pub text: String,
    /// Where in the text the cursor stands, in bytes, if it is in this line.
    pub cursor: Option<usize>,
    /// The row that it begins in; negative ones are in the history.
    pub first_row: i32,
}

/// A line, or a piece of one, that leaves the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePiece<'a> {
    /// Its text; without blanks at the end where the line ends.
    pub text: &'a str,
    /// Whether the line ends in it.
    pub is_whole: bool,
    /// The row that it begins in.
    pub first_row: i32,
}

impl TextLine {
    /// Its text without any blank at its end.
    pub(super) fn trimmed(&self) -> &str {
        self.text.trim_end_matches(' ')
    }
}

/// Whether the terminal wrapped the text in this row into the next.
pub(super) fn is_wrapped(row: &Row<Cell>) -> bool {
    row.len() > 0 && row[Column(row.len() - 1)].flags.contains(Flags::WRAPLINE)
}

/// Whether there is text in a row below the cursor's. A blank row has no cell that is not blank, so
/// that most rows are told by their length alone.
pub(super) fn has_text_below_cursor(grid: &Grid<Cell>) -> bool {
    let below = grid.cursor.point.line.0 + 1..grid.screen_lines() as i32;
    below.map(Line).any(|row| grid[row].line_length().0 > 0 && !row_text(grid, row).is_empty())
}

/// The visible rows, each alone, without the blank ones below.
pub(super) fn rows(grid: &Grid<Cell>) -> Vec<String> {
    let mut rows: Vec<String> =
        (0..grid.screen_lines()).map(|row| row_text(grid, Line(row as i32))).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// What a row shows, without blanks at its end.
fn row_text(grid: &Grid<Cell>, row: Line) -> String {
    let mut text = String::new();
    push_cells(&mut text, &grid[row][..]);
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// The lines in a range of rows, wrapped ones joined. The last may go on below the range.
pub(super) fn lines(grid: &Grid<Cell>, range: Range<Line>) -> Vec<TextLine> {
    let cursor = &grid.cursor;
    let mut lines = Vec::new();
    let mut open: Option<TextLine> = None;
    for row in (range.start.0..range.end.0).map(Line) {
        let line = open.get_or_insert_with(|| TextLine {
            text: String::new(),
            cursor: None,
            first_row: row.0,
        });
        let cells = &grid[row][..];
        if row == cursor.point.line {
            let column = cursor.point.column.0 + usize::from(cursor.input_needs_wrap);
            let (before, after) = cells.split_at(column.min(cells.len()));
            push_cells(&mut line.text, before);
            line.cursor = Some(line.text.len());
            push_cells(&mut line.text, after);
        } else {
            push_cells(&mut line.text, cells);
        }
        if !is_wrapped(&grid[row]) {
            lines.extend(open.take().map(cut));
        }
    }
    lines.extend(open.map(cut));
    lines
}

/// Gives the lines in a range of rows in which the cursor is not. The last may go on below the
/// range.
pub(super) fn each_line(grid: &Grid<Cell>, range: Range<i32>, mut take: impl FnMut(LinePiece<'_>)) {
    let mut text = String::new();
    let mut first_row = range.start;
    let last = range.end - 1;
    for row in range {
        let cells = &grid[Line(row)];
        let is_whole = !is_wrapped(cells);
        push_cells(&mut text, &cells[..cells.line_length()]);
        if is_whole {
            text.truncate(text.trim_end_matches(' ').len());
        }
        if is_whole || row == last {
            take(LinePiece { text: &text, is_whole, first_row });
            text.clear();
            first_row = row + 1;
        }
    }
}

/// Cuts the blanks behind the text and behind the cursor.
fn cut(mut line: TextLine) -> TextLine {
    let length = line.trimmed().len().max(line.cursor.unwrap_or(0));
    line.text.truncate(length);
    line
}

/// Appends what cells show. What follows a wide character, and the gap before one that did not fit
/// into its row, belong to that character.
fn push_cells(text: &mut String, cells: &[Cell]) {
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    for cell in cells.iter().filter(|cell| !cell.flags.intersects(spacers)) {
        // A tab stands in its first cell. Concealed text (SGR 8) shows as blanks, and so do the two
        // separators that would begin a line where the screen has none.
        let is_blank = cell.c.is_control() || matches!(cell.c, '\u{2028}' | '\u{2029}');
        if is_blank || cell.flags.contains(Flags::HIDDEN) {
            text.push(' ');
            continue;
        }
        text.push(cell.c);
        text.extend(cell.zerowidth().unwrap_or_default());
    }
}
