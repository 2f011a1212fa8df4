//! Converts rows of cells to lines of text.

use std::ops::Range;

use alacritty_terminal::grid::{Dimensions, Grid, Row};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags, LineLength as _};

/// A line as the program wrote it: one row, or several wrapped rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextLine {
    /// The text, without trailing blanks except those before the cursor.
    pub text: String,
    /// The byte position of the cursor in the text, if it is in this line.
    pub cursor: Option<usize>,
    /// The row in which it begins. Negative rows are in the history.
    pub first_row: i32,
}

/// A line, or a piece of one, that leaves the history.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePiece<'a> {
    /// The text. If the line ends here, it has no trailing blanks.
    pub text: &'a str,
    /// Whether the line ends in it.
    pub is_whole: bool,
    /// The row in which it begins.
    pub first_row: i32,
}

impl TextLine {
    /// Returns the text without any trailing blanks.
    pub(super) fn trimmed_text(&self) -> &str {
        self.text.trim_end_matches(' ')
    }
}

/// Returns true if the terminal wrapped the text of this row into the next.
pub(super) fn is_wrapped(row: &Row<Cell>) -> bool {
    row.len() > 0 && row[Column(row.len() - 1)].flags.contains(Flags::WRAPLINE)
}

/// Returns true if there is text in a row below the cursor. Most blank rows have length 0, which
/// makes the check fast.
pub(super) fn has_text_below_cursor(grid: &Grid<Cell>) -> bool {
    let below = grid.cursor.point.line.0 + 1..grid.screen_lines() as i32;
    below.map(Line).any(|row| grid[row].line_length().0 > 0 && !row_text(grid, row).is_empty())
}

/// Returns the visible rows separately, without blank rows at the bottom.
pub(super) fn visible_rows(grid: &Grid<Cell>) -> Vec<String> {
    let mut rows: Vec<String> =
        (0..grid.screen_lines()).map(|row| row_text(grid, Line(row as i32))).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

/// Returns the text of a row, without trailing blanks.
fn row_text(grid: &Grid<Cell>, row: Line) -> String {
    let mut text = String::new();
    push_cells(&mut text, &grid[row][..]);
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// Returns the lines in a range of rows, with wrapped rows joined. The last one may continue below
/// the range.
pub(super) fn text_lines(grid: &Grid<Cell>, range: Range<Line>) -> Vec<TextLine> {
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
            lines.extend(open.take().map(trim_line));
        }
    }
    lines.extend(open.map(trim_line));
    lines
}

/// Passes the lines in a range of rows to `take`. The cursor must not be in the range, and the last
/// line may continue below it.
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

/// Removes the blanks after the text and after the cursor.
fn trim_line(mut line: TextLine) -> TextLine {
    let length = line.trimmed_text().len().max(line.cursor.unwrap_or(0));
    line.text.truncate(length);
    line
}

/// Appends the content of cells. Spacers after a wide character, and the gap before one that did
/// not fit into its row, are skipped.
fn push_cells(text: &mut String, cells: &[Cell]) {
    let spacers = Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER;
    for cell in cells.iter().filter(|cell| !cell.flags.intersects(spacers)) {
        // A tab is in its first cell. Concealed text (SGR 8) appears as blanks, and so do the two
        // separator characters, which would begin a line that the screen does not have.
        let is_blank = cell.c.is_control() || matches!(cell.c, '\u{2028}' | '\u{2029}');
        if is_blank || cell.flags.contains(Flags::HIDDEN) {
            text.push(' ');
            continue;
        }
        text.push(cell.c);
        text.extend(cell.zerowidth().unwrap_or_default());
    }
}
