//! Counts the lines that leave the screen, and keeps those that were not told, up to a limit.

use alacritty_terminal::Term;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;

use super::replies::Replies;
use super::{ROWS_MAX, text};

/// Rows above the screen that are kept until they are told: more than a result has room for. With
/// [`SLACK_ROWS`] they are just below the thousand that the emulator takes memory for at once; a
/// thousand more would double what a flooding terminal holds (2 MB of 80 columns) and slow it down,
/// as it would leave the processor's cache.
pub const HISTORY_ROWS_MAX: usize = 768;

/// Rows beyond that before the oldest are dropped together: dropping each by itself would cost as
/// much as all the rest of a line feed.
pub(super) const SLACK_ROWS: usize = 224;

/// A row that so many others follow is gone, wherever the screen begins.
pub(super) const ROWS_KEPT_MAX: usize = HISTORY_ROWS_MAX + SLACK_ROWS;

/// What the emulator is told. It is never reached, so that no row is dropped uncounted: between
/// two looks one operation scrolls by a screen at most, or 256 characters by a row each.
pub(super) const EMULATOR_ROWS_MAX: usize = HISTORY_ROWS_MAX + SLACK_ROWS + ROWS_MAX as usize + 256;

/// What became of the lines since the last mark.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Rows that are no longer there.
    pub rows_gone: u64,
    /// Lines that are no longer there: the index of the first that still is.
    pub lines_gone: u64,
    /// Those of them that nobody was told, and that the program did not erase itself.
    pub lines_lost: u64,
    /// The row, counted from the mark, that was the screen's first when the screen was wiped.
    pub wiped_at: Option<u64>,
}

impl History {
    /// Drops the oldest rows once there are too many. Lines before `told` were told.
    #[inline]
    pub(super) fn settle(&mut self, term: &mut Term<Replies>, told: u64) {
        if term.grid().history_size() >= HISTORY_ROWS_MAX + SLACK_ROWS {
            self.drop_oldest(term, told);
        }
    }

    #[cold]
    fn drop_oldest(&mut self, term: &mut Term<Replies>, told: u64) {
        let rows = term.grid().history_size() - HISTORY_ROWS_MAX;
        let lines = self.forget(term, rows);
        self.lines_lost += lines - told.saturating_sub(self.lines_gone - lines).min(lines);
        let grid = term.grid_mut();
        grid.update_history(HISTORY_ROWS_MAX);
        grid.update_history(EMULATOR_ROWS_MAX);
    }

    /// Takes note of lines of one row each that came and went, a multiple of [`SLACK_ROWS`]. All that was told must have
    /// gone before.
    pub(super) fn pass_over(&mut self, lines: u64) {
        self.rows_gone += lines;
        self.lines_gone += lines;
        self.lines_lost += lines;
    }

    /// Takes note that the program erases the history (`ESC [ 3 J`), before it does.
    pub(super) fn erase(&mut self, term: &Term<Replies>) {
        self.forget(term, term.grid().history_size());
    }

    /// Takes note that the program wiped the whole screen.
    pub(super) fn wipe(&mut self, term: &Term<Replies>) {
        self.wiped_at = Some(self.rows_gone + term.grid().history_size() as u64);
    }

    /// Counts the lines that end in the oldest `rows` rows, and the rows.
    fn forget(&mut self, term: &Term<Replies>, rows: usize) -> u64 {
        let grid = term.grid();
        let top = grid.topmost_line().0;
        let ends = (top..top + rows as i32).filter(|row| !text::is_wrapped(&grid[Line(*row)]));
        let lines = ends.count() as u64;
        self.rows_gone += rows as u64;
        self.lines_gone += lines;
        lines
    }
}
