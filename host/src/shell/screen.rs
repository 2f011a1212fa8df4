//! Parses a screen in ANSI text into cells. It is redrawn from these, so that no plugin and no
//! program can control the user's terminal.
//!
//! It supports the sequences that draw a screen: text, colours, moves, erasing. All others (titles,
//! clipboards, queries) are skipped.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use console::measure_text_width;
use jaato_runtime::visible;

/// Returns true if a character is invisible or changes the direction of others. Joiners do not
/// count, because they share the cell of the characters that they join.
fn is_invisible(sign: char) -> bool {
    let joins = matches!(sign, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}');
    visible::is_invisible(sign) && !joins
}

/// The maximum number of numbers in one sequence. Further ones are skipped.
const NUMBERS_MAX: usize = 32;

/// The maximum number of characters that join one cell (accents, joined emoji).
const JOINED_MAX: usize = 16;

/// A colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Colour {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The look of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScreenCellStyle {
    foreground: Colour,
    background: Colour,
    /// A bit for each number from 1 to 9: bold, dim, italic, underlined, …
    flags: u16,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenCell {
    /// Its text. Empty for the second half of a wide character.
    pub text: String,
    /// Its width in columns.
    pub width: usize,
    /// Its style.
    pub look: ScreenCellStyle,
}

/// The key sequences and the form of pastes that the program on the terminal wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalModes {
    /// Arrow keys send their own sequences instead of cursor moves.
    pub application_cursor: bool,
    /// The number pad sends its own sequences instead of digits.
    pub application_keypad: bool,
    /// Pasted text is marked.
    pub bracketed_paste: bool,
}

/// A screen as cells.
#[derive(Debug)]
pub struct CellGrid {
    rows: usize,
    columns: usize,
    cells: Vec<Vec<ScreenCell>>,
    row: usize,
    /// May be one past the last column. The next character then begins the next row.
    column: usize,
    saved: (usize, usize),
    look: ScreenCellStyle,
    /// The modes that the program has set.
    pub modes: TerminalModes,
}

impl ScreenCellStyle {
    /// Writes the sequence that sets this look, regardless of the previous look.
    pub fn write_escapes(self, to: &mut String) {
        to.push_str("\x1b[0");
        for flag in 1..=9 {
            if self.flags & (1 << flag) != 0 {
                // Writing to a string cannot fail.
                let _ = write!(to, ";{flag}");
            }
        }
        for (base, colour) in [(30, self.foreground), (40, self.background)] {
            let _ = match colour {
                Colour::Default => Ok(()),
                Colour::Indexed(index @ 0..8) => write!(to, ";{}", base + index),
                Colour::Indexed(index) => write!(to, ";{};5;{index}", base + 8),
                Colour::Rgb(red, green, blue) => {
                    write!(to, ";{};2;{red};{green};{blue}", base + 8)
                }
            };
        }
        to.push('m');
    }

    /// Applies the numbers of a sequence.
    fn apply_numbers(&mut self, numbers: &[u16]) {
        let mut numbers = numbers.iter().copied();
        while let Some(number) = numbers.next() {
            match number {
                0 => *self = Self::default(),
                1..=9 => self.flags |= 1 << number,
                21 => self.flags &= !(1 << 1),
                22 => self.flags &= !(1 << 1 | 1 << 2),
                23..=29 => self.flags &= !(1 << (number - 20)),
                30..=37 => self.foreground = indexed_colour(number - 30),
                38 => {
                    self.foreground = parse_extended_colour(&mut numbers).unwrap_or(self.foreground)
                }
                39 => self.foreground = Colour::Default,
                40..=47 => self.background = indexed_colour(number - 40),
                48 => {
                    self.background = parse_extended_colour(&mut numbers).unwrap_or(self.background)
                }
                49 => self.background = Colour::Default,
                90..=97 => self.foreground = indexed_colour(number - 90 + 8),
                100..=107 => self.background = indexed_colour(number - 100 + 8),
                _ => {}
            }
        }
    }
}

fn indexed_colour(number: u16) -> Colour {
    Colour::Indexed(u8::try_from(number).unwrap_or_default())
}

/// Parses the rest of a colour of 256, or of three components.
fn parse_extended_colour(numbers: &mut impl Iterator<Item = u16>) -> Option<Colour> {
    let kind = numbers.next()?;
    let mut byte = || numbers.next().and_then(|number| u8::try_from(number).ok());
    match kind {
        5 => Some(Colour::Indexed(byte()?)),
        2 => Some(Colour::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

impl CellGrid {
    /// Parses a screen of this size.
    pub fn read(rows: u16, columns: u16, ansi: &str) -> Self {
        let (rows, columns) = (usize::from(rows).max(1), usize::from(columns).max(1));
        let mut screen = Self {
            rows,
            columns,
            cells: vec![vec![blank_cell(ScreenCellStyle::default()); columns]; rows],
            row: 0,
            column: 0,
            saved: (0, 0),
            look: ScreenCellStyle::default(),
            modes: TerminalModes::default(),
        };
        let mut signs = ansi.chars().peekable();
        while let Some(sign) = signs.next() {
            match sign {
                '\x1b' => screen.read_escape(&mut signs),
                '\r' => screen.column = 0,
                // Lines may end with only this character.
                '\n' => (screen.row, screen.column) = ((screen.row + 1).min(rows - 1), 0),
                '\x08' => screen.column = screen.column.saturating_sub(1),
                '\t' => screen.column = ((screen.column / 8 + 1) * 8).min(columns - 1),
                sign if sign.is_control() || is_invisible(sign) => {}
                sign => screen.put_sign(sign),
            }
        }
        screen
    }

    /// Returns the cells of a row. Empty after the last row.
    pub fn row(&self, row: usize) -> &[ScreenCell] {
        self.cells.get(row).map_or(&[], Vec::as_slice)
    }

    fn put_sign(&mut self, sign: char) {
        let width = match sign {
            ' '..='~' => 1,
            _ => measure_text_width(sign.encode_utf8(&mut [0; 4])),
        };
        if width == 0 {
            return self.join_sign(sign);
        }
        if self.column + width > self.columns {
            if self.row + 1 >= self.rows || width > self.columns {
                return;
            }
            (self.row, self.column) = (self.row + 1, 0);
        }
        let (row, column, look) = (self.row, self.column, self.look);
        // Half of a wide character is blank.
        self.clear_cells(row, column, column + width);
        self.cells[row][column] = ScreenCell { text: sign.to_string(), width, look };
        for tail in 1..width {
            self.cells[row][column + tail] = ScreenCell { text: String::new(), width: 0, look };
        }
        self.column += width;
    }

    /// Adds a zero-width character to the previous one.
    fn join_sign(&mut self, sign: char) {
        let before = self.cells[self.row][..self.column.min(self.columns)].iter_mut();
        if let Some(cell) = before.rev().find(|cell| cell.width > 0)
            && cell.text.chars().count() < JOINED_MAX
        {
            cell.text.push(sign);
        }
    }

    /// Makes cells blank, with the other half of a wide character.
    fn clear_cells(&mut self, row: usize, from: usize, to: usize) {
        let look =
            ScreenCellStyle { background: self.look.background, ..ScreenCellStyle::default() };
        let (mut from, mut to) = (from.min(self.columns), to.min(self.columns));
        let cells = &mut self.cells[row];
        while from > 0 && cells.get(from).is_some_and(|cell| cell.width == 0) {
            from -= 1;
        }
        while cells.get(to).is_some_and(|cell| cell.width == 0) {
            to += 1;
        }
        cells[from..to.max(from)].fill(blank_cell(look));
    }

    fn read_escape(&mut self, signs: &mut Peekable<Chars<'_>>) {
        match signs.next() {
            Some('[') => self.read_control_sequence(signs),
            Some(']' | 'P' | 'X' | '^' | '_') => skip_string(signs),
            Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
                signs.next();
            }
            Some('=') => self.modes.application_keypad = true,
            Some('>') => self.modes.application_keypad = false,
            Some('7') => self.saved = (self.row, self.column),
            Some('8') => (self.row, self.column) = self.saved,
            Some(_) | None => {}
        }
    }

    /// Parses a control sequence, and applies it if it draws.
    fn read_control_sequence(&mut self, signs: &mut Peekable<Chars<'_>>) {
        let mark = signs.next_if(|sign| matches!(sign, '<'..='?'));
        let mut numbers: Vec<u16> = vec![0];
        let mut is_plain = true;
        let last = loop {
            match signs.next() {
                Some(digit @ '0'..='9') => {
                    if let Some(number) = numbers.last_mut() {
                        let value = digit as u16 - '0' as u16;
                        *number = number.saturating_mul(10).saturating_add(value);
                    }
                }
                // Colours may have their components after colons.
                Some(';' | ':') if numbers.len() < NUMBERS_MAX => numbers.push(0),
                Some(';' | ':') => {}
                Some(' '..='/') => is_plain = false,
                Some(last @ '@'..='~') => break last,
                // The sequence has no valid end.
                Some(_) | None => return,
            }
        };
        match (mark, is_plain) {
            (None, true) => self.run_control(last, &numbers),
            (Some('?'), true) if matches!(last, 'h' | 'l') => {
                numbers.iter().for_each(|number| self.set_mode(*number, last == 'h'));
            }
            (Some(_) | None, _) => {}
        }
    }

    fn set_mode(&mut self, number: u16, is_on: bool) {
        match number {
            1 => self.modes.application_cursor = is_on,
            2004 => self.modes.bracketed_paste = is_on,
            _ => {}
        }
    }

    fn run_control(&mut self, last: char, numbers: &[u16]) {
        let number = |at: usize| usize::from(numbers.get(at).copied().unwrap_or_default());
        // Most numbers count from 1, and 0 or a missing one means 1.
        let count = |at: usize| number(at).max(1);
        let (rows, columns) = (self.rows, self.columns);
        let column = self.column.min(columns - 1);
        match last {
            'm' => self.look.apply_numbers(numbers),
            'H' | 'f' => {
                self.row = (count(0) - 1).min(rows - 1);
                self.column = (count(1) - 1).min(columns - 1);
            }
            'A' => self.row = self.row.saturating_sub(count(0)),
            'B' | 'e' => self.row = (self.row + count(0)).min(rows - 1),
            'C' | 'a' => self.column = (self.column + count(0)).min(columns - 1),
            'D' => self.column = column.saturating_sub(count(0)),
            'E' => (self.row, self.column) = ((self.row + count(0)).min(rows - 1), 0),
            'F' => (self.row, self.column) = (self.row.saturating_sub(count(0)), 0),
            'G' | '`' => self.column = (count(0) - 1).min(columns - 1),
            'd' => self.row = (count(0) - 1).min(rows - 1),
            'K' => match number(0) {
                0 => self.clear_cells(self.row, self.column, columns),
                1 => self.clear_cells(self.row, 0, column + 1),
                _ => self.clear_cells(self.row, 0, columns),
            },
            'X' => self.clear_cells(self.row, self.column, self.column + count(0)),
            'J' => self.erase(number(0), column),
            's' => self.saved = (self.row, self.column),
            'u' => (self.row, self.column) = self.saved,
            _ => {}
        }
    }

    fn erase(&mut self, what: usize, column: usize) {
        let (row, columns) = (self.row, self.columns);
        let rows = match what {
            0 => {
                self.clear_cells(row, self.column, columns);
                row + 1..self.rows
            }
            1 => {
                self.clear_cells(row, 0, column + 1);
                0..row
            }
            _ => 0..self.rows,
        };
        rows.for_each(|row| self.clear_cells(row, 0, columns));
    }
}

fn blank_cell(look: ScreenCellStyle) -> ScreenCell {
    ScreenCell { text: " ".to_owned(), width: 1, look }
}

/// Skips a string for the terminal itself: a title, or a clipboard's content.
fn skip_string(signs: &mut Peekable<Chars<'_>>) {
    while let Some(sign) = signs.next() {
        match sign {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                signs.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_texts(screen: &CellGrid) -> Vec<String> {
        let row = |row| screen.row(row).iter().map(|cell| cell.text.as_str()).collect::<String>();
        (0..screen.rows).map(|at| row(at).trim_end().to_owned()).collect()
    }

    #[track_caller]
    fn check_rows((rows, columns): (u16, u16), ansi: &str, expected: &[&str]) {
        assert_eq!(row_texts(&CellGrid::read(rows, columns, ansi)), expected, "{ansi:?}");
    }

    #[test]
    fn text_wraps_at_the_width_for_all_kinds_of_line_ends() {
        check_rows((3, 4), "abcdef\r\ng", &["abcd", "ef", "g"]);
        check_rows((3, 4), "ab\ncd", &["ab", "cd", ""]);
        check_rows((3, 4), "abcd\r\nef", &["abcd", "ef", ""]);
        check_rows((2, 2), "abcdefgh", &["ab", "cd"]);
        check_rows((1, 12), "a\tb\x08c\x07", &["a       c"]);
    }

    #[test]
    fn cursor_moves_and_erase_sequences_are_drawn() {
        check_rows((2, 5), "\x1b[2;3Hx\x1b[Hy\x1b[3Cz", &["y   z", "  x"]);
        check_rows((2, 5), "abcde\x1b[1;3H\x1b[K", &["ab", ""]);
        check_rows((2, 5), "abcde\x1b[1;3H\x1b[1K", &["   de", ""]);
        check_rows((2, 5), "abcde\r\nfg\x1b[1;2H\x1b[J", &["a", ""]);
        check_rows((2, 5), "abcde\x1b[2J", &["", ""]);
        check_rows((1, 5), "abcde\x1b[1;2H\x1b[2X", &["a  de"]);
        check_rows((2, 5), "\x1b[99;99Hx\x1b[99A\x1b[99Dy", &["y", "    x"]);
        check_rows((2, 5), "\x1b[65535;65535H\x1b[65535X\x1b[99999999999Cx", &["", "    x"]);
    }

    #[test]
    fn wide_and_combining_characters_keep_their_columns() {
        let screen = CellGrid::read(1, 6, "日本e\u{301}x");
        assert_eq!(row_texts(&screen), ["日本e\u{301}x"]);
        assert_eq!(screen.row(0)[4].text, "e\u{301}");
        check_rows((2, 3), "日本", &["日", "本"]);
        check_rows((1, 4), "日本\x1b[1;2Hx", &[" x本"]);
        check_rows((1, 1), "日a", &["a"]);
        check_rows((1, 2), "\u{301}a", &["a"]);
    }

    #[test]
    fn unsafe_terminal_sequences_and_invisible_characters_are_removed() {
        let evil = "a\x1b]0;title\x07b\x1b]52;c;eA==\x1b\\c\x1bPq#0\x1b\\d\x1b[6n\x1b[?1049h\x1b[>c\x1b[5 q\x1bce\u{9b}2Jf";
        check_rows((1, 20), evil, &["abcde2Jf"]);
        check_rows((1, 20), "a\u{202e}b\u{200b}c\u{2028}d\u{feff}e\u{e0041}f", &["abcdef"]);
        check_rows((1, 20), "👩\u{200d}👧 ❤\u{fe0f}", &["👩\u{200d}👧 ❤\u{fe0f}"]);
        check_rows((1, 8), "a\x1b[12", &["a"]);
        check_rows((1, 8), "a\x1b", &["a"]);
        check_rows((1, 8), "a\x1b]never ends", &["a"]);
    }

    #[test]
    fn cell_style_is_written_as_it_was_read() {
        for look in ["0", "0;1;4;31;42", "0;7;38;5;208;48;2;1;2;3", "0;38;5;9"] {
            let screen = CellGrid::read(1, 1, &format!("\x1b[{look}mx"));
            let mut written = String::new();
            screen.row(0)[0].look.write_escapes(&mut written);
            assert_eq!(written, format!("\x1b[{look}m"));
        }
        let back = CellGrid::read(1, 1, "\x1b[1;2;3;31;44m\x1b[22;23;39;49mx");
        assert_eq!(back.row(0)[0].look, ScreenCellStyle::default());
        let broken = CellGrid::read(1, 1, "\x1b[38;5m\x1b[38;2;1m\x1b[38;9;1mx");
        assert_eq!(broken.row(0)[0].look.foreground, Colour::Default);
    }

    #[test]
    fn terminal_key_modes_are_read_from_the_output() {
        let modes = CellGrid::read(1, 1, "\x1b[?1h\x1b=\x1b[?25;2004h").modes;
        let all = TerminalModes {
            application_cursor: true,
            application_keypad: true,
            bracketed_paste: true,
        };
        assert_eq!(modes, all);
        assert_eq!(
            CellGrid::read(1, 1, "\x1b[?1h\x1b=\x1b[?1l\x1b>").modes,
            TerminalModes::default()
        );
    }
}
