//! Counts the lines that leave the screen, keeps the last of them as rows, and hands the older ones
//! over as text.
//!
//! Only lines that scroll off the primary screen at its top leave it: what a program redraws in
//! place, and what it shows on the alternate screen, never does.

use std::ops::Range;

use alacritty_terminal::Term;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;

use super::baseline::{Baseline, Unseen};
use super::replies::Replies;
use super::{ROWS_MAX, text};

/// Rows above the screen that are kept as rows, so that a program may still change them: more than
/// a result has room for. With [`SLACK_ROWS`] they are just below the thousand that the emulator
/// takes memory for at once; a thousand more would double what a flooding terminal holds (2 MB of
/// 80 columns) and slow it down, as it would leave the processor's cache.
pub const HISTORY_ROWS_MAX: usize = 768;

/// Rows beyond that before the oldest become text together: to take each by itself would cost as
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
    /// The row, counted from the mark, that was the screen's first when the screen was wiped.
    pub wiped_at: Option<u64>,
    /// What is new of the lines that are no longer there, and was not handed over yet.
    scrolled: Scrolled,
    /// Rows that became text before they were dropped.
    rows_taken: usize,
}

/// New text of lines that left the history.
#[derive(Debug, Default)]
struct Scrolled {
    text: String,
    /// Whether the text goes on in the line that was told last.
    continues: bool,
    /// Whether the last line goes on.
    is_open: bool,
}

impl History {
    /// Turns the oldest rows into text once there are too many.
    #[inline]
    pub(super) fn settle(&mut self, term: &mut Term<Replies>, baseline: &mut Baseline) {
        if term.grid().history_size() >= HISTORY_ROWS_MAX + SLACK_ROWS {
            self.drop_oldest(term, baseline);
        }
    }

    #[cold]
    fn drop_oldest(&mut self, term: &mut Term<Replies>, baseline: &mut Baseline) {
        let rows = term.grid().history_size() - HISTORY_ROWS_MAX;
        let taken = self.rows_taken.min(rows);
        self.take(term.grid(), taken..rows, baseline);
        self.rows_taken -= taken;
        self.forget(term, rows);
        let grid = term.grid_mut();
        grid.update_history(HISTORY_ROWS_MAX);
        grid.update_history(EMULATOR_ROWS_MAX);
    }

    /// Takes what is new of rows, counted from the topmost.
    fn take(&mut self, grid: &Grid<Cell>, rows: Range<usize>, baseline: &mut Baseline) {
        let top = grid.topmost_line().0;
        let mut index = self.lines_gone;
        let wiped_row = self.wiped_row(grid);
        let scrolled = &mut self.scrolled;
        text::each_line(grid, top + rows.start as i32..top + rows.end as i32, |line| {
            let is_wiped = wiped_row.is_some_and(|row| line.first_row >= row);
            let wiped = (is_wiped, wiped_row.is_some());
            if let Some(new) = baseline.left(index, line, wiped) {
                if scrolled.text.is_empty() {
                    scrolled.continues = new.continues;
                }
                scrolled.text.push_str(new.text);
                scrolled.is_open = !line.is_whole;
                if line.is_whole {
                    scrolled.text.push('\n');
                }
            }
            index += u64::from(line.is_whole);
        });
    }

    /// Takes plain lines that come and go at once, a multiple of [`SLACK_ROWS`], behind all rows
    /// above the cursor. All of those must be new, and as many lines must follow as rows are there.
    pub(super) fn pass_over(
        &mut self,
        grid: &Grid<Cell>,
        baseline: &mut Baseline,
        (lines, plain): (usize, &[u8]),
    ) {
        // The rows above are older. They are dropped later, and are text by then.
        let above = grid.history_size() + grid.screen_lines() - 1;
        self.take(grid, self.rows_taken..above, baseline);
        self.rows_taken = above;
        super::flood::push_text(plain, &mut self.scrolled.text);
        self.rows_gone += lines as u64;
        self.lines_gone += lines as u64;
    }

    /// Hands over what is new and no longer there.
    pub(super) fn take_scrolled(&mut self) -> Option<Unseen> {
        let text = std::mem::take(&mut self.scrolled.text);
        // What comes next goes on behind it.
        let continues = std::mem::replace(&mut self.scrolled.continues, true);
        (!text.is_empty()).then_some(Unseen { text, continues })
    }

    /// Forgets the rows at a mark, but not what was not handed over.
    pub(super) fn mark(&mut self) {
        let text = std::mem::take(&mut self.scrolled.text);
        let continues = self.scrolled.continues;
        let scrolled = Scrolled { continues, text, is_open: false };
        *self = Self { scrolled, ..Self::default() };
    }

    /// Takes note that the program erases the history (`ESC [ 3 J`), before it does.
    pub(super) fn erase(&mut self, term: &Term<Replies>) {
        self.end_line();
        self.forget(term, term.grid().history_size());
    }

    /// Takes note that the program sets everything back.
    pub(super) fn reset(&mut self) {
        self.end_line();
        self.mark();
    }

    /// Takes note that the program wiped the whole screen.
    pub(super) fn wipe(&mut self, term: &Term<Replies>) {
        self.wiped_at = Some(self.rows_gone + term.grid().history_size() as u64);
    }

    /// Returns the row that was the screen's first when the screen was wiped, as the grid counts
    /// rows.
    pub(super) fn wiped_row(&self, grid: &Grid<Cell>) -> Option<i32> {
        self.wiped_at.map(|row| {
            let top = self.rows_gone + grid.history_size() as u64;
            i32::try_from(row).unwrap_or(i32::MAX).saturating_sub(i32::try_from(top).unwrap_or(0))
        })
    }

    /// The rest of a line that is erased does not come.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.scrolled.is_open) {
            self.scrolled.text.push('\n');
        }
    }

    /// Counts the lines that end in the oldest `rows` rows, and the rows.
    fn forget(&mut self, term: &Term<Replies>, rows: usize) {
        let grid = term.grid();
        let top = grid.topmost_line().0;
        let ends = (top..top + rows as i32).filter(|row| !text::is_wrapped(&grid[Line(*row)]));
        self.lines_gone += ends.count() as u64;
        self.rows_gone += rows as u64;
    }
}
