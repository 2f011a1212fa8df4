//! The screen of a terminal: processes a program's bytes and returns the visible text.
//!
//! It is neither a terminal nor a log. It starts nothing, waits for nothing, and forgets text that
//! was reported. Other modules keep the raw stream and the text that scrolled away.
//!
//! Invariants: however the stream is split, screen and text are the same. Each line that scrolls
//! off is reported once. The text has no escape sequences and no invisible characters, except those
//! that join and mark letters. Memory is limited for any input, provided that the scrolled text is
//! taken.

mod ansi;
mod baseline;
mod emulator;
mod flood;
mod history;
mod invisible;
mod letters;
mod replies;
mod strings;
mod text;

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Processor, Timeout};

use self::baseline::ComparedLines;
use self::emulator::TerminalEmulator;
use self::flood::PlainLines;
use self::history::ROWS_KEPT_MAX;
use self::letters::LetterGuard;
use self::strings::StringGuard;

pub use self::baseline::UnseenText;
pub use self::history::HISTORY_ROWS_MAX;
pub use self::replies::REPLY_BYTES_MAX;
pub use self::strings::STRING_BYTES_MAX;

/// The minimum number of columns, because a wide character needs two.
pub const COLUMNS_MIN: u16 = 2;

/// The maximum number of columns. Each cell takes 24 bytes in each row of screen and history.
pub const COLUMNS_MAX: u16 = 1000;

/// The maximum number of rows. See [`COLUMNS_MAX`].
pub const ROWS_MAX: u16 = 500;

/// The visible output of a program that writes to a terminal.
pub struct EmulatedScreen {
    parser: Processor<NoSynchronizedUpdates>,
    strings: StringGuard,
    letters: LetterGuard,
    emulator: TerminalEmulator,
    bytes: u64,
    line_feeds: u64,
}

/// The position of the cursor in the visible screen, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenCursor {
    /// The row, from the top.
    pub row: u16,
    /// The column, from the left. It is the last one even if the next character would begin a new
    /// row.
    pub column: u16,
    /// Whether the cursor is visible.
    pub is_visible: bool,
}

impl EmulatedScreen {
    /// Creates an empty screen. Sizes beyond [`ROWS_MAX`], [`COLUMNS_MIN`] and [`COLUMNS_MAX`] are
    /// clamped.
    pub fn new(rows: u16, columns: u16) -> Self {
        Self {
            parser: Processor::new(),
            strings: StringGuard::default(),
            letters: LetterGuard::default(),
            emulator: TerminalEmulator::new(ScreenSize::clamped(rows, columns)),
            bytes: 0,
            line_feeds: 0,
        }
    }

    /// Processes the program's output. However the stream is split, the screen is the same.
    pub fn feed_output(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.line_feeds += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let mut rest = bytes;
        while rest.len() >= flood::PIECE_BYTES_MIN {
            let plain = PlainLines::find_at_start(rest, self.emulator.term.columns(), usize::MAX);
            if plain.lines > 0 {
                self.feed_plain(&rest[..plain.bytes], plain.lines);
                rest = &rest[plain.bytes..];
            } else {
                let end = memchr::memchr(b'\n', &rest[flood::PIECE_BYTES_MIN - 1..]);
                let piece = end.map_or(rest.len(), |end| end + flood::PIECE_BYTES_MIN);
                self.advance_parser(&rest[..piece]);
                rest = &rest[piece..];
            }
        }
        self.advance_parser(rest);
    }

    /// Processes plain lines. Lines of a flood that are gone at its end are never drawn.
    fn feed_plain(&mut self, mut bytes: &[u8], lines: usize) {
        let columns = self.emulator.term.columns();
        let rows_kept = ROWS_KEPT_MAX + self.emulator.term.screen_lines();
        let lines_before = self.emulator.lines_to_flooded() + 1;
        if flood::count_scrolled_lines(lines.saturating_sub(lines_before), rows_kept) > 0 {
            let before = PlainLines::find_at_start(bytes, columns, lines_before);
            let (others, last) = bytes[..before.bytes].split_at(before.last);
            self.advance_parser(others);
            let inputs = self.emulator.character_count();
            self.advance_parser(last);
            bytes = &bytes[before.bytes..];
            // The line before has text. Because its text was drawn, no open sequence can swallow
            // the next lines.
            if self.emulator.character_count() != inputs && self.emulator.is_flooded() {
                let unseen = flood::count_scrolled_lines(lines - before.lines, rows_kept);
                let unseen = PlainLines::take_exactly(bytes, columns, unseen);
                self.emulator.skip_plain_lines(
                    unseen.lines,
                    unseen.letters,
                    &bytes[..unseen.bytes],
                );
                bytes = &bytes[unseen.bytes..];
            }
        }
        self.advance_parser(bytes);
    }

    fn advance_parser(&mut self, bytes: &[u8]) {
        let Self { parser, strings, letters, emulator, .. } = self;
        strings.pass_strings(bytes, |passed| {
            letters.pass_whole_letters(passed, |letters| parser.advance(emulator, letters));
        });
    }

    /// Takes the terminal's own replies (cursor position, device attributes, modes, default
    /// colours), which should be typed to the program. They are limited to [`REPLY_BYTES_MAX`], and
    /// further requests stay unanswered. Clipboard, title and keyboard reports are never answered.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.emulator.replies.take_replies()
    }

    /// Changes the size and reflows wrapped lines. Clamps sizes like [`EmulatedScreen::new`].
    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.emulator.resize(ScreenSize::clamped(rows, columns));
    }

    /// Returns the new text since [`EmulatedScreen::mark_seen`], without marking it. Empty while a
    /// full-screen program runs, for which [`EmulatedScreen::visible_lines`] is more useful.
    pub fn unseen_text(&self) -> UnseenText {
        if self.is_full_screen() {
            return UnseenText::default();
        }
        self.emulator.unseen_text(ComparedLines::All)
    }

    /// Returns the part of the new text above the screen. For a program that draws, this is
    /// everything except the drawing.
    pub fn unseen_text_above_screen(&self) -> UnseenText {
        if self.is_full_screen() {
            return UnseenText::default();
        }
        self.emulator.unseen_text(ComparedLines::Above)
    }

    /// Takes the new text before [`EmulatedScreen::unseen_text`] that is too old to be kept as
    /// rows. Call it after each [`EmulatedScreen::feed_output`], because the text accumulates.
    pub fn take_scrolled(&mut self) -> Option<UnseenText> {
        self.emulator.take_scrolled()
    }

    /// Marks all visible text as reported. While a full-screen program runs, the text below it
    /// stays unreported, because it was not visible.
    pub fn mark_seen(&mut self) {
        if !self.is_full_screen() {
            self.emulator.mark_seen();
        }
    }

    /// Releases the memory of empty rows (2 MB with 80 columns once anything has scrolled). For
    /// terminals that are unused for a while, because the next line feed allocates it again.
    pub fn release_memory(&mut self) {
        self.emulator.term.grid_mut().truncate();
    }

    /// Returns true while a full-screen program runs (alternate screen).
    pub fn is_full_screen(&self) -> bool {
        self.terminal_mode().contains(TermMode::ALT_SCREEN)
    }

    /// Returns the cursor.
    pub fn cursor(&self) -> ScreenCursor {
        let point = self.emulator.term.grid().cursor.point;
        ScreenCursor {
            row: u16::try_from(point.line.0).unwrap_or(0),
            column: u16::try_from(point.column.0).unwrap_or(u16::MAX),
            is_visible: self.terminal_mode().contains(TermMode::SHOW_CURSOR),
        }
    }

    /// Returns the visible rows, without trailing blanks and blank rows at the bottom.
    pub fn visible_lines(&self) -> Vec<String> {
        text::visible_rows(self.emulator.term.grid())
    }

    /// Returns the visible rows with colours and attributes (SGR) and no other sequences, joined by
    /// CR LF.
    pub fn ansi_text(&self) -> String {
        ansi::ansi_rows(self.emulator.term.grid())
    }

    /// Returns true if the cursor is after text in its line, as after a prompt.
    pub fn is_mid_line(&self) -> bool {
        !self.cursor_line().trim().is_empty()
    }

    /// Returns true if a program draws the screen: it uses the alternate screen, or there is text
    /// below the cursor's line. Some programs that draw do not use the alternate screen (`dialog`,
    /// `top`).
    pub fn is_drawn(&self) -> bool {
        self.is_full_screen() || text::has_text_below_cursor(self.emulator.term.grid())
    }

    /// Returns the cursor's line up to the cursor, including blanks. Wrapped rows are joined, as
    /// far as they are on the screen.
    pub fn cursor_line(&self) -> String {
        let grid = self.emulator.term.grid();
        let row = grid.cursor.point.line;
        let mut first = row;
        while first > Line(0) && text::is_wrapped(&grid[first - 1i32]) {
            first -= 1i32;
        }
        let lines = text::text_lines(grid, first..row + 1i32);
        let found = lines.into_iter().find_map(|line| line.cursor.map(|end| (line.text, end)));
        found.map_or_else(String::new, |(mut text, end)| {
            text.truncate(end);
            text
        })
    }

    /// Returns true if the program requested marks around pasted text (`ESC [ ? 2004 h`).
    pub fn wants_bracketed_paste(&self) -> bool {
        self.terminal_mode().contains(TermMode::BRACKETED_PASTE)
    }

    /// Returns true if the program requested `ESC O A` instead of `ESC [ A` for cursor keys.
    pub fn wants_application_cursor(&self) -> bool {
        self.terminal_mode().contains(TermMode::APP_CURSOR)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u16 {
        u16::try_from(self.emulator.term.grid().screen_lines()).unwrap_or(ROWS_MAX)
    }

    /// Returns the number of columns.
    pub fn columns(&self) -> u16 {
        u16::try_from(self.emulator.term.grid().columns()).unwrap_or(COLUMNS_MAX)
    }

    /// Returns the number of bytes processed.
    pub fn processed_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the number of line feeds in these bytes.
    pub fn line_feeds(&self) -> u64 {
        self.line_feeds
    }

    fn terminal_mode(&self) -> TermMode {
        *self.emulator.term.mode()
    }
}

/// A size within the limits.
#[derive(Debug, Clone, Copy)]
struct ScreenSize {
    rows: usize,
    columns: usize,
}

impl ScreenSize {
    fn clamped(rows: u16, columns: u16) -> Self {
        Self {
            rows: usize::from(rows.clamp(1, ROWS_MAX)),
            columns: usize::from(columns.clamp(COLUMNS_MIN, COLUMNS_MAX)),
        }
    }
}

impl Dimensions for ScreenSize {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }
}

/// Disables synchronized updates (mode 2026). They would need a clock, and a program that dies
/// during an update would leave its output unread.
#[derive(Debug, Default)]
struct NoSynchronizedUpdates;

impl Timeout for NoSynchronizedUpdates {
    fn set_timeout(&mut self, _duration: std::time::Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}
