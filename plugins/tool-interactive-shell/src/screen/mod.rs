//! The screen of a terminal: takes a program's bytes, tells what a person would see of it.
//!
//! It is neither a terminal nor a log: it starts nothing, waits for nothing and forgets what was
//! told. The raw stream, and what scrolled away, are kept elsewhere.
//!
//! Invariants: any cut of the stream gives the same screen and the same text; each line that
//! scrolls off is told once; what is told has no escape sequence and no invisible character (but
//! what joins and marks letters); memory is bounded whatever comes, if what scrolled away is taken.

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

use self::baseline::Which;
use self::emulator::Emulator;
use self::flood::Plain;
use self::history::ROWS_KEPT_MAX;
use self::letters::LetterGuard;
use self::strings::StringGuard;

pub use self::baseline::Unseen;
pub use self::history::HISTORY_ROWS_MAX;
pub use self::replies::REPLY_BYTES_MAX;
pub use self::strings::STRING_BYTES_MAX;

/// Fewest columns: a wide character needs two.
pub const COLUMNS_MIN: u16 = 2;

/// Most columns. Each cell takes 24 bytes in each row of screen and history.
pub const COLUMNS_MAX: u16 = 1000;

/// Most rows; see [`COLUMNS_MAX`].
pub const ROWS_MAX: u16 = 500;

/// What a person would see of a program that writes to a terminal.
pub struct Screen {
    parser: Processor<NeverHeldBack>,
    strings: StringGuard,
    letters: LetterGuard,
    emulator: Emulator,
    bytes: u64,
    line_feeds: u64,
}

/// Where the cursor stands, counted from 0, in the visible screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Row, from the top.
    pub row: u16,
    /// Column, from the left; the last one also while the next character would begin a new row.
    pub column: u16,
    /// Whether the program lets it be seen.
    pub is_visible: bool,
}

impl Screen {
    /// An empty screen. Sizes beyond [`ROWS_MAX`], [`COLUMNS_MIN`] and [`COLUMNS_MAX`] are brought
    /// within.
    pub fn new(rows: u16, columns: u16) -> Self {
        Self {
            parser: Processor::new(),
            strings: StringGuard::default(),
            letters: LetterGuard::default(),
            emulator: Emulator::new(Size::within(rows, columns)),
            bytes: 0,
            line_feeds: 0,
        }
    }

    /// Takes what the program wrote. Any cut of the stream gives the same screen.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.line_feeds += memchr::memchr_iter(b'\n', bytes).count() as u64;
        let mut rest = bytes;
        while rest.len() >= flood::PIECE_BYTES_MIN {
            let plain = Plain::at(rest, self.emulator.term.columns(), usize::MAX);
            if plain.lines > 0 {
                self.feed_plain(&rest[..plain.bytes], plain.lines);
                rest = &rest[plain.bytes..];
            } else {
                let end = memchr::memchr(b'\n', &rest[flood::PIECE_BYTES_MIN - 1..]);
                let piece = end.map_or(rest.len(), |end| end + flood::PIECE_BYTES_MIN);
                self.advance(&rest[..piece]);
                rest = &rest[piece..];
            }
        }
        self.advance(rest);
    }

    /// Takes plain lines. Lines of a flood that are gone at its end are never drawn.
    fn feed_plain(&mut self, mut bytes: &[u8], lines: usize) {
        let columns = self.emulator.term.columns();
        let rows_kept = ROWS_KEPT_MAX + self.emulator.term.screen_lines();
        let lines_before = self.emulator.lines_to_flooded() + 1;
        if flood::lines_unseen(lines.saturating_sub(lines_before), rows_kept) > 0 {
            let before = Plain::at(bytes, columns, lines_before);
            let (others, last) = bytes[..before.bytes].split_at(before.last);
            self.advance(others);
            let inputs = self.emulator.inputs();
            self.advance(last);
            bytes = &bytes[before.bytes..];
            // That has text. As it was put on the screen, no sequence is open that would swallow
            // what follows.
            if self.emulator.inputs() != inputs && self.emulator.is_flooded() {
                let unseen = flood::lines_unseen(lines - before.lines, rows_kept);
                let unseen = Plain::exactly(bytes, columns, unseen);
                self.emulator.pass_over(unseen.lines, unseen.letters, &bytes[..unseen.bytes]);
                bytes = &bytes[unseen.bytes..];
            }
        }
        self.advance(bytes);
    }

    fn advance(&mut self, bytes: &[u8]) {
        let Self { parser, strings, letters, emulator, .. } = self;
        strings.pass(bytes, |passed| {
            letters.pass(passed, |letters| parser.advance(emulator, letters));
        });
    }

    /// Takes what a terminal answers by itself (cursor position, device attributes, modes, default
    /// colours), to be typed to the program. At most [`REPLY_BYTES_MAX`]; what the program asked
    /// beyond stays unanswered. Clipboard, title and keyboard reports are never answered.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.emulator.replies.take()
    }

    /// Gives the terminal another size; wrapped lines flow anew. Sizes as in [`Screen::new`].
    pub fn resize(&mut self, rows: u16, columns: u16) {
        self.emulator.resize(Size::within(rows, columns));
    }

    /// What is new since [`Screen::mark_seen`], as text. Does not mark. Empty while a full-screen
    /// program has the terminal: then [`Screen::lines`] tells more.
    pub fn unseen(&self) -> Unseen {
        if self.is_full_screen() {
            return Unseen::default();
        }
        self.emulator.unseen(Which::All)
    }

    /// The part of what is new that stands above the screen: of a program that draws, all that is
    /// no drawing.
    pub fn unseen_above(&self) -> Unseen {
        if self.is_full_screen() {
            return Unseen::default();
        }
        self.emulator.unseen(Which::Above)
    }

    /// Takes what is new and stands before [`Screen::unseen`], because it is too old to be kept as
    /// rows. To be taken after each [`Screen::feed`]: the screen only gathers it.
    pub fn take_scrolled(&mut self) -> Option<Unseen> {
        self.emulator.take_scrolled()
    }

    /// Takes all that is there for told. While a full-screen program has the terminal the text
    /// below it stays untold, as nobody could see it.
    pub fn mark_seen(&mut self) {
        if !self.is_full_screen() {
            self.emulator.mark_seen();
        }
    }

    /// Gives back memory for rows that are empty (2 MB of 80 columns once anything has scrolled).
    /// For terminals that nobody uses for a while: the next line feed takes it again.
    pub fn release_memory(&mut self) {
        self.emulator.term.grid_mut().truncate();
    }

    /// Whether a full-screen program has the terminal (alternate screen).
    pub fn is_full_screen(&self) -> bool {
        self.mode().contains(TermMode::ALT_SCREEN)
    }

    /// Where the cursor stands.
    pub fn cursor(&self) -> Cursor {
        let point = self.emulator.term.grid().cursor.point;
        Cursor {
            row: u16::try_from(point.line.0).unwrap_or(0),
            column: u16::try_from(point.column.0).unwrap_or(u16::MAX),
            is_visible: self.mode().contains(TermMode::SHOW_CURSOR),
        }
    }

    /// The visible rows, without blanks at their ends and blank rows below.
    pub fn lines(&self) -> Vec<String> {
        text::rows(self.emulator.term.grid())
    }

    /// The visible rows with colours and attributes (SGR) and no other sequence, joined by CR LF.
    pub fn ansi(&self) -> String {
        ansi::rows(self.emulator.term.grid())
    }

    /// Whether the cursor stands behind text in its line, as behind a prompt.
    pub fn is_mid_line(&self) -> bool {
        !self.cursor_line().trim().is_empty()
    }

    /// Whether a program draws the screen: it has the terminal for itself, or there is text below
    /// the cursor's line. Not every one that draws asks for a screen of its own (`dialog`, `top`).
    pub fn is_drawn(&self) -> bool {
        self.is_full_screen() || text::has_text_below_cursor(self.emulator.term.grid())
    }

    /// The line in which the cursor stands up to it, blanks before it included. A line that the
    /// terminal wrapped is whole, as far as it is on the screen.
    pub fn cursor_line(&self) -> String {
        let grid = self.emulator.term.grid();
        let row = grid.cursor.point.line;
        let mut first = row;
        while first > Line(0) && text::is_wrapped(&grid[first - 1i32]) {
            first -= 1i32;
        }
        let lines = text::lines(grid, first..row + 1i32);
        let found = lines.into_iter().find_map(|line| line.cursor.map(|end| (line.text, end)));
        found.map_or_else(String::new, |(mut text, end)| {
            text.truncate(end);
            text
        })
    }

    /// Whether the program wants pasted text between marks (`ESC [ ? 2004 h`).
    pub fn wants_bracketed_paste(&self) -> bool {
        self.mode().contains(TermMode::BRACKETED_PASTE)
    }

    /// Whether the program wants the cursor keys as `ESC O A` in place of `ESC [ A`.
    pub fn wants_application_cursor(&self) -> bool {
        self.mode().contains(TermMode::APP_CURSOR)
    }

    /// Rows of the screen.
    pub fn rows(&self) -> u16 {
        u16::try_from(self.emulator.term.grid().screen_lines()).unwrap_or(ROWS_MAX)
    }

    /// Columns of the screen.
    pub fn columns(&self) -> u16 {
        u16::try_from(self.emulator.term.grid().columns()).unwrap_or(COLUMNS_MAX)
    }

    /// Bytes fed since the beginning.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Line feeds among them, wherever they stood.
    pub fn line_feeds(&self) -> u64 {
        self.line_feeds
    }

    fn mode(&self) -> TermMode {
        *self.emulator.term.mode()
    }
}

/// A size within the limits.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: usize,
    columns: usize,
}

impl Size {
    fn within(rows: u16, columns: u16) -> Self {
        Self {
            rows: usize::from(rows.clamp(1, ROWS_MAX)),
            columns: usize::from(columns.clamp(COLUMNS_MIN, COLUMNS_MAX)),
        }
    }
}

impl Dimensions for Size {
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

/// Lets no synchronized update (mode 2026) hold bytes back: that would need a clock, and a program
/// that dies in the middle of one would leave what it said unread.
#[derive(Debug, Default)]
struct NeverHeldBack;

impl Timeout for NeverHeldBack {
    fn set_timeout(&mut self, _duration: std::time::Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}
