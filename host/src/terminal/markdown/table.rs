//! A table as wide as the terminal: cells side by side, or a line for each value.

use console::Style;
use pulldown_cmark::Alignment;

use super::rows::{Place, Word, broken, cut, push_words, styled, width};
use crate::columns;

/// A table; its first row is the head.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub begin: usize,
    pub alignments: Vec<Alignment>,
    pub rows: Vec<TableRow>,
}

/// A row of a table.
#[derive(Debug, Default)]
pub(super) struct TableRow {
    pub begin: usize,
    pub end: usize,
    pub cells: Vec<Vec<Word>>,
}

impl Table {
    /// Returns the lines of the table, of at most `columns` columns.
    pub(super) fn lines(self, columns: usize) -> Vec<String> {
        let text = |cell: &Vec<Word>| styled(cell.iter().map(plain).collect::<Vec<_>>().iter());
        let mut texts = self.rows.iter().map(|row| row.cells.iter().map(text).collect::<Vec<_>>());
        let (head, rows) = (texts.next().unwrap_or_default(), texts.collect::<Vec<_>>());
        // A bar and a space on each side of each cell.
        let room = columns.saturating_sub(3 * head.len() + 1);
        match columns::column_widths(&head, &rows, room) {
            Some(widths) => self.side_by_side(&widths),
            None => self.stacked_rows(columns),
        }
    }

    fn side_by_side(self, widths: &[usize]) -> Vec<String> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.into_iter().enumerate() {
            let mut cells: Vec<Vec<Vec<Word>>> = Vec::new();
            for (cell, width) in row.cells.into_iter().zip(widths) {
                cells.push(broken(cut(cell, *width), *width));
            }
            let height = cells.iter().map(Vec::len).max().unwrap_or(1);
            for at in 0..height {
                let mut line = "│".to_owned();
                for (column, room) in widths.iter().enumerate() {
                    let words = cells.get(column).and_then(|cell| cell.get(at));
                    let words = words.map(Vec::as_slice).unwrap_or_default();
                    let free = room.saturating_sub(width(words));
                    let left = match self.alignments.get(column) {
                        Some(Alignment::Right) => free,
                        Some(Alignment::Center) => free / 2,
                        Some(Alignment::Left | Alignment::None) | None => 0,
                    };
                    let (left, right) = (" ".repeat(left), " ".repeat(free - left));
                    line += &format!(" {left}{}{right} │", styled(words.iter()));
                }
                lines.push(line);
            }
            if index == 0 {
                let bars: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
                lines.push(format!("├{}┤", bars.join("┼")));
            }
        }
        lines
    }

    fn stacked_rows(self, columns: usize) -> Vec<String> {
        let mut rows = self.rows.into_iter();
        let head = rows.next().unwrap_or_default();
        let mut lines = Vec::new();
        if rows.len() == 0 {
            lines.extend(head.cells.iter().map(|cell| styled(cell.iter())));
        }
        for (index, row) in rows.enumerate() {
            if index > 0 {
                lines.push(String::new());
            }
            for (name, cell) in head.cells.iter().zip(row.cells) {
                if name.is_empty() && cell.is_empty() {
                    continue;
                }
                let mut line = name.clone();
                let colon = if line.is_empty() { " " } else { ": " };
                push_words(&mut line, colon, &Style::new(), Place::Within(row.begin, row.end));
                line.extend(cell);
                lines.extend(broken(line, columns).iter().map(|words| styled(words.iter())));
            }
        }
        lines
    }
}

fn plain(word: &Word) -> Word {
    Word { style: Style::new().force_styling(false), ..word.clone() }
}
