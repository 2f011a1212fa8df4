//! Wraps the emulator and adds limits, exact line counts and a few corrections.
//!
//! It is between the parser and the terminal. Most operations pass unchanged, and comments explain
//! the exceptions. Windows, titles, links and clipboards are not supported.

use std::ops::Range;

use alacritty_terminal::Term;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::{Config, Osc52, TermMode};
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, Handler, LineClearMode, Mode, NamedPrivateMode, PrivateMode,
    ScpCharPath, ScpUpdateMode, StandardCharset, TabulationClearMode,
};

use unicode_width::UnicodeWidthChar as _;

use super::ScreenSize;
use super::baseline::{ComparedLines, ScreenBaseline, UnseenText};
use super::history::{EMULATOR_ROWS_MAX, HISTORY_ROWS_MAX, ROWS_KEPT_MAX, ScreenHistory};
use super::invisible::{FIRST_WITHOUT_WIDTH, is_common_letter, is_invisible};
use super::replies::PendingReplies;
use super::text;

/// The maximum number of combining marks on one letter. Languages and emoji need fewer than ten.
/// Without a limit, a stream of only marks would grow one cell forever.
const MARKS_MAX: usize = 16;

pub(super) struct TerminalEmulator {
    pub term: Term<PendingReplies>,
    pub replies: PendingReplies,
    baseline: ScreenBaseline,
    history: ScreenHistory,
    /// The scrolling region, which the terminal does not expose.
    region: Range<usize>,
    /// Counts characters, to check the history after every 256th. They scroll by fewer rows than
    /// the history has room for, so a check for each is unnecessary.
    inputs: u8,
    /// Whether the program may have set its own tab stops.
    has_own_tabs: bool,
}

impl TerminalEmulator {
    pub(super) fn new(size: ScreenSize) -> Self {
        let replies = PendingReplies::default();
        let config = Config {
            scrolling_history: EMULATOR_ROWS_MAX,
            osc52: Osc52::Disabled,
            kitty_keyboard: false,
            ..Config::default()
        };
        let term = Term::new(config, &size, replies.clone());
        Self {
            term,
            replies,
            baseline: ScreenBaseline::default(),
            history: ScreenHistory::default(),
            region: 0..size.rows,
            inputs: 0,
            has_own_tabs: false,
        }
    }

    pub(super) fn unseen_text(&self, which: ComparedLines) -> UnseenText {
        self.baseline.unseen_text(&self.term, &self.history, which)
    }

    pub(super) fn take_scrolled(&mut self) -> Option<UnseenText> {
        self.history.take_scrolled()
    }

    pub(super) fn mark_seen(&mut self) {
        self.term.grid_mut().clear_history();
        self.history.forget_marked_rows();
        self.baseline = ScreenBaseline::from_screen(&self.term);
    }

    pub(super) fn resize(&mut self, size: ScreenSize) {
        let before = self.lines_to_cursor();
        self.term.resize(size);
        self.region = 0..size.rows;
        // Reflow keeps lines whole and the cursor in its line, so missing lines were dropped from
        // the top.
        self.history.lines_gone += before.saturating_sub(self.lines_to_cursor());
        if self.history.wiped_at.is_some() {
            self.history.record_wipe(&self.term);
        }
        self.trim_history();
    }

    /// Returns the number of lines after which a flood fills the whole history, so that no reported
    /// text is left in it.
    pub(super) fn lines_to_flooded(&self) -> usize {
        let grid = self.term.grid();
        let below = grid.screen_lines() - 1 - self.cursor_row();
        match grid.history_size() {
            rows if rows >= HISTORY_ROWS_MAX && self.baseline.has_begun() => below,
            rows => below + ROWS_KEPT_MAX.saturating_sub(rows),
        }
    }

    /// Returns true if each plain line moves the screen and a full history by one row, shows its
    /// text unchanged, and has no other effect.
    pub(super) fn is_flooded(&self) -> bool {
        let cursor = &self.term.grid().cursor;
        let is_scrolling = self.is_primary_screen() && self.region == (0..self.term.screen_lines());
        let charsets = [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3];
        let is_plain = charsets.iter().all(|set| cursor.charsets[*set] == StandardCharset::Ascii)
            && !cursor.template.flags.contains(Flags::HIDDEN)
            && !self.has_own_tabs;
        is_scrolling
            && is_plain
            && cursor.point.column == 0
            && !cursor.input_needs_wrap
            && self.lines_to_flooded() == 0
    }

    /// Returns the count of characters, modulo 256.
    pub(super) fn character_count(&self) -> u8 {
        self.inputs
    }

    /// Skips plain lines that would leave the history again, but keeps their text.
    pub(super) fn skip_plain_lines(&mut self, lines: usize, letters: usize, plain: &[u8]) {
        let Self { term, history, baseline, .. } = self;
        history.skip_plain_lines(term.grid(), baseline, (lines, plain));
        // Modulo 256, like the count itself.
        self.inputs = self.inputs.wrapping_add(letters as u8);
    }

    fn lines_to_cursor(&self) -> u64 {
        let grid = self.term.grid();
        let rows = grid.topmost_line().0..grid.cursor.point.line.0;
        rows.filter(|row| !text::is_wrapped(&grid[Line(*row)])).count() as u64
    }

    #[inline]
    fn trim_history(&mut self) {
        self.history.turn_rows_into_text(&mut self.term, &mut self.baseline);
    }

    /// Returns how far up the cursor may move. It must not leave the scrolling region upwards if it
    /// is in the region or below.
    fn rows_above(&self) -> usize {
        let row = self.cursor_row();
        if row >= self.region.start { row - self.region.start } else { row }
    }

    /// Returns how far down the cursor may move.
    fn rows_below(&self) -> usize {
        let row = self.cursor_row();
        let end = if row < self.region.end { self.region.end } else { self.term.screen_lines() };
        end - 1 - row
    }

    fn cursor_row(&self) -> usize {
        usize::try_from(self.term.grid().cursor.point.line.0).unwrap_or(0)
    }

    fn is_primary_screen(&self) -> bool {
        !self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    fn record_wipe(&mut self) {
        if self.is_primary_screen() {
            self.history.record_wipe(&self.term);
        }
    }

    /// Returns true if a character is shown. A character without width must be visible and fit on a
    /// letter.
    fn is_character_shown(&self, character: char) -> bool {
        is_common_letter(character)
            || character.width() != Some(0)
            || (!is_invisible(character) && self.has_room_for_mark())
    }

    /// Returns true if another mark fits on the letter before the cursor.
    fn has_room_for_mark(&self) -> bool {
        let grid = self.term.grid();
        let cursor = &grid.cursor;
        let back = usize::from(!cursor.input_needs_wrap);
        let column = cursor.point.column.0.saturating_sub(back);
        let row = &grid[cursor.point.line];
        // A wide letter stores its marks in the first of its two cells.
        let letters = &row[..][column.saturating_sub(1)..=column];
        letters.iter().all(|cell| cell.zerowidth().is_none_or(|marks| marks.len() < MARKS_MAX))
    }
}

/// Operations that pass unchanged.
macro_rules! pass {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[inline]
            fn $name(&mut self, $($argument: $kind),*) {
                Handler::$name(&mut self.term, $($argument),*);
            }
        )*
    };
}

/// Operations that may move rows into the history.
macro_rules! pass_and_settle {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[inline]
            fn $name(&mut self, $($argument: $kind),*) {
                Handler::$name(&mut self.term, $($argument),*);
                self.trim_history();
            }
        )*
    };
}

impl Handler for TerminalEmulator {
    pass! {
        goto(line: i32, column: usize);
        goto_line(line: i32);
        goto_col(column: usize);
        insert_blank(count: usize);
        identify_terminal(intermediate: Option<char>);
        device_status(what: usize);
        move_forward(columns: usize);
        move_backward(columns: usize);
        backspace();
        carriage_return();
        substitute();
        scroll_down(rows: usize);
        insert_blank_lines(rows: usize);
        erase_chars(count: usize);
        move_backward_tabs(count: u16);
        move_forward_tabs(count: u16);
        save_cursor_position();
        restore_cursor_position();
        clear_line(mode: LineClearMode);
        reverse_index();
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        report_mode(mode: Mode);
        report_private_mode(mode: PrivateMode);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        set_active_charset(index: CharsetIndex);
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        dynamic_color_sequence(prefix: String, index: usize, terminator: &str);
        decaln();
        text_area_size_chars();
        set_scp(path: ScpCharPath, mode: ScpUpdateMode);
    }

    pass_and_settle! {
        put_tab(count: u16);
        linefeed();
        newline();
        scroll_up(rows: usize);
        delete_lines(rows: usize);
    }

    fn set_horizontal_tabstop(&mut self) {
        self.has_own_tabs = true;
        self.term.set_horizontal_tabstop();
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        self.has_own_tabs = true;
        self.term.clear_tabs(mode);
    }

    fn set_tabs(&mut self, interval: u16) {
        self.has_own_tabs = true;
        self.term.set_tabs(interval);
    }

    #[inline]
    fn input(&mut self, character: char) {
        if character >= FIRST_WITHOUT_WIDTH && !self.is_character_shown(character) {
            return;
        }
        self.term.input(character);
        self.inputs = self.inputs.wrapping_add(1);
        if self.inputs == 0 {
            self.trim_history();
        }
    }

    /// Without the limit, the terminal would leave the scrolling region. The same applies to the
    /// next three operations.
    fn move_up(&mut self, rows: usize) {
        self.term.move_up(rows.min(self.rows_above()));
    }

    fn move_down(&mut self, rows: usize) {
        self.term.move_down(rows.min(self.rows_below()));
    }

    fn move_up_and_cr(&mut self, rows: usize) {
        self.term.move_up_and_cr(rows.min(self.rows_above()));
    }

    fn move_down_and_cr(&mut self, rows: usize) {
        self.term.move_down_and_cr(rows.min(self.rows_below()));
    }

    /// Without the limit, the terminal would blank cells before the cursor if more cells are
    /// deleted than follow it.
    fn delete_chars(&mut self, count: usize) {
        let behind = self.term.columns() - self.term.grid().cursor.point.column.0;
        self.term.delete_chars(count.min(behind));
    }

    /// The terminal keeps a wiped screen in its history, but users expect it to be gone.
    fn clear_screen(&mut self, mode: ClearMode) {
        let cursor = self.term.grid().cursor.point;
        match mode {
            ClearMode::All => {
                self.clear_screen(ClearMode::Above);
                self.term.clear_screen(ClearMode::Below);
                self.record_wipe();
            }
            ClearMode::Below => {
                self.term.clear_screen(mode);
                if cursor.line == 0 && cursor.column == 0 {
                    self.record_wipe();
                }
            }
            ClearMode::Above => {
                // The terminal does not clear the first row if the cursor is in the second.
                if cursor.line == 1 {
                    self.term.grid_mut().reset_region(..Line(1));
                }
                self.term.clear_screen(mode);
            }
            ClearMode::Saved => {
                if self.is_primary_screen() {
                    self.history.erase_history(&self.term);
                }
                self.term.clear_screen(mode);
            }
        }
    }

    fn reset_state(&mut self) {
        self.term.reset_state();
        self.has_own_tabs = false;
        self.region = 0..self.term.screen_lines();
        self.baseline = ScreenBaseline::default();
        self.history.reset_history();
        self.record_wipe();
    }

    /// Ignores the colour of an underline, which would need an allocation and is not shown.
    fn terminal_attribute(&mut self, attribute: Attr) {
        if !matches!(attribute, Attr::UnderlineColor(_)) {
            self.term.terminal_attribute(attribute);
        }
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        self.term.set_private_mode(alternate_screen(mode));
        if is_column_mode(mode) {
            self.region = 0..self.term.screen_lines();
            self.record_wipe();
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        self.term.unset_private_mode(alternate_screen(mode));
        if is_column_mode(mode) {
            self.region = 0..self.term.screen_lines();
            self.record_wipe();
        }
    }

    /// Ignores a region below the screen, as other terminals do. Otherwise scrolling would stop.
    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = self.term.screen_lines();
        let end = bottom.unwrap_or(rows).min(rows);
        if (1..end).contains(&top) {
            self.region = top - 1..end;
            self.term.set_scrolling_region(top, Some(end));
        }
    }
}

/// Maps the two older modes for the alternate screen (47, 1047), which the terminal does not know.
fn alternate_screen(mode: PrivateMode) -> PrivateMode {
    match mode {
        PrivateMode::Unknown(47 | 1047) => NamedPrivateMode::SwapScreenAndSetRestoreCursor.into(),
        other => other,
    }
}

fn is_column_mode(mode: PrivateMode) -> bool {
    mode == PrivateMode::Named(NamedPrivateMode::ColumnMode)
}
