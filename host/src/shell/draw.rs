//! Draws as much of a screen as fits into the user's terminal, above a status line.

use std::fmt::Write as _;

use super::screen::{CellGrid, ScreenCell, ScreenCellStyle, TerminalModes};
use crate::terminal::exact_line;

/// The size of the user's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TtySize {
    /// Lines.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
}

/// The content to show.
pub struct ScreenFrame<'a> {
    /// The model's terminal.
    pub screen: &'a CellGrid,
    /// Its cursor, if that is shown.
    pub cursor: Option<(u16, u16)>,
    /// The line at the bottom.
    pub status: &'a str,
    /// Whether the user types there. Keys then send the sequences that its program wants.
    pub types: bool,
}

/// The last drawn state, so that only changes are drawn.
#[derive(Default)]
pub struct DrawnScreen {
    room: Option<TtySize>,
    lines: Vec<String>,
    modes: TerminalModes,
}

impl DrawnScreen {
    /// Forgets the drawn state, so that everything is drawn again.
    pub fn forget(&mut self) {
        *self = Self { modes: self.modes, ..Self::default() };
    }

    /// Returns the sequences that make the user's terminal show the frame.
    pub fn draw(&mut self, room: TtySize, frame: &ScreenFrame<'_>) -> String {
        let mut out = String::from("\x1b[?25l");
        if self.room != Some(room) {
            self.lines.clear();
            self.room = Some(room);
            out.push_str("\x1b[0m\x1b[2J");
        }
        let height = room.rows.saturating_sub(1);
        let (top, left) = top_left_cell(room, frame.cursor);
        let mut lines: Vec<String> = (0..height)
            .map(|row| format_row(frame.screen, top + row, left, room.columns))
            .collect();
        lines.push(status_line(frame.status, room.columns));
        for (at, line) in lines.iter().enumerate() {
            if self.lines.get(at) != Some(line) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\x1b[{};1H{line}", at + 1);
            }
        }
        self.lines = lines;
        if frame.types {
            self.switch_modes(frame.screen.modes, &mut out);
        }
        if let Some((row, column)) = frame.cursor {
            let (row, column) = (usize::from(row) - top, usize::from(column).saturating_sub(left));
            let column = column.min(room.columns.saturating_sub(1));
            let _ = write!(out, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1);
        }
        out
    }

    fn switch_modes(&mut self, modes: TerminalModes, out: &mut String) {
        let before = std::mem::replace(&mut self.modes, modes);
        let mut set = |was: bool, is: bool, on: &str, off: &str| {
            if was != is {
                out.push_str(if is { on } else { off });
            }
        };
        set(before.application_cursor, modes.application_cursor, "\x1b[?1h", "\x1b[?1l");
        set(before.application_keypad, modes.application_keypad, "\x1b=", "\x1b>");
        set(before.bracketed_paste, modes.bracketed_paste, "\x1b[?2004h", "\x1b[?2004l");
    }
}

/// Returns the cell at the top left: the first one, unless the cursor would be invisible.
fn top_left_cell(room: TtySize, cursor: Option<(u16, u16)>) -> (usize, usize) {
    let Some((row, column)) = cursor else { return (0, 0) };
    let past = |at: u16, there: usize| (usize::from(at) + 1).saturating_sub(there.max(1));
    (past(row, room.rows.saturating_sub(1)), past(column, room.columns))
}

/// Formats this many columns of a row. The rest of the line is blank.
fn format_row(screen: &CellGrid, row: usize, left: usize, columns: usize) -> String {
    let cells = screen.row(row);
    let is_blank = |cell: &ScreenCell| cell.text == " " && cell.look == ScreenCellStyle::default();
    let end = cells.iter().rposition(|cell| !is_blank(cell)).map_or(0, |last| last + 1);
    let mut line = String::from("\x1b[0m");
    let mut look = ScreenCellStyle::default();
    let mut taken = 0;
    for (at, cell) in cells[..end].iter().enumerate().skip(left) {
        if taken + cell.width.max(1) > columns {
            break;
        }
        // The first half of the character is outside.
        let is_cut = at == left && cell.width == 0;
        if cell.width == 0 && !is_cut {
            continue;
        }
        if cell.look != look {
            look = cell.look;
            look.write_escapes(&mut line);
        }
        line.push_str(if is_cut { " " } else { &cell.text });
        taken += cell.width.max(1);
    }
    line.push_str("\x1b[0m");
    if taken < columns {
        line.push_str("\x1b[K");
    }
    line
}

/// Formats the line at the bottom, in full width.
fn status_line(text: &str, columns: usize) -> String {
    let text = exact_line(text, columns);
    let pad = columns.saturating_sub(console::measure_text_width(&text));
    format!("\x1b[0;7m{text}{}\x1b[0m", " ".repeat(pad))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a terminal of that size would show.
    fn visible_rows(
        room: TtySize,
        drawn: &mut DrawnScreen,
        frame: &ScreenFrame<'_>,
    ) -> Vec<String> {
        let out = drawn.draw(room, frame);
        let (rows, columns) = (room.rows.try_into().unwrap(), room.columns.try_into().unwrap());
        let screen = CellGrid::read(rows, columns, &out);
        let text = |row| screen.row(row).iter().map(|cell| cell.text.as_str()).collect::<String>();
        (0..room.rows).map(|row| text(row).trim_end().to_owned()).collect()
    }

    #[track_caller]
    fn check_frame(
        room: (usize, usize),
        ansi: &str,
        cursor: Option<(u16, u16)>,
        expected: &[&str],
    ) {
        let room = TtySize { rows: room.0, columns: room.1 };
        let screen = CellGrid::read(4, 8, ansi);
        let frame = ScreenFrame { screen: &screen, cursor, status: "status", types: false };
        assert_eq!(visible_rows(room, &mut DrawnScreen::default(), &frame), expected);
    }

    #[test]
    fn screen_is_shown_whole_if_it_fits_and_cropped_otherwise() {
        let ansi = "one\r\ntwo\r\nthree\r\nfour 678";
        check_frame((6, 10), ansi, None, &["one", "two", "three", "four 678", "", "status"]);
        check_frame((5, 8), ansi, None, &["one", "two", "three", "four 678", "status"]);
        check_frame((3, 4), ansi, None, &["one", "two", "sta…"]);
        // The cursor is always visible.
        check_frame((3, 4), ansi, Some((3, 7)), &["e", " 678", "sta…"]);
        check_frame((1, 8), ansi, Some((0, 0)), &["status"]);
    }

    #[test]
    fn half_of_a_wide_character_is_drawn_as_a_blank() {
        check_frame((2, 3), "日本", None, &["日", "st…"]);
        check_frame((2, 3), "日本", Some((0, 3)), &[" 本", "st…"]);
    }

    #[test]
    fn only_what_changed_is_drawn_again() {
        let room = TtySize { rows: 3, columns: 8 };
        let mut drawn = DrawnScreen::default();
        let mut draw = |ansi: &str| {
            let screen = CellGrid::read(2, 8, ansi);
            let frame =
                ScreenFrame { screen: &screen, cursor: None, status: "status", types: false };
            drawn.draw(room, &frame)
        };
        assert!(draw("one\r\ntwo").contains("one"));
        let second = draw("one\r\nthree");
        assert!(second.contains("three") && !second.contains("one"), "{second:?}");
        assert_eq!(draw("one\r\nthree"), "\x1b[?25l");
    }

    #[test]
    fn terminal_key_modes_are_set_only_for_a_typing_user() {
        let room = TtySize { rows: 2, columns: 8 };
        let screen = CellGrid::read(1, 8, "\x1b[?1h");
        for types in [false, true] {
            let frame = ScreenFrame { screen: &screen, cursor: None, status: "", types };
            let out = DrawnScreen::default().draw(room, &frame);
            assert_eq!(out.contains("\x1b[?1h"), types);
        }
    }
}
