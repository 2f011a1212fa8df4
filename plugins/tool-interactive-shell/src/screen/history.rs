//! Counts the lines that leave the screen, keeps the last of them as rows, and returns the older
//! ones as text.
//!
//! Only lines that scroll off the top of the primary screen leave it. Text that a program redraws
//! in place or shows on the alternate screen never does.

use std::ops::Range;

use alacritty_terminal::Term;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::Cell;

use super::baseline::{ScreenBaseline, UnseenText};
use super::replies::PendingReplies;
use super::{ROWS_MAX, text};

/// The number of rows above the screen that are kept as rows, so that a program may still change
/// them. This is more than a result can show. With [`SLACK_ROWS`], it stays just below the thousand
/// rows that the emulator allocates at once. A thousand more would double the memory of a flooding
/// terminal (2 MB with 80 columns) and exceed the processor's cache.
pub const HISTORY_ROWS_MAX: usize = 768;

/// The number of additional rows before the oldest become text together. Converting each row
/// separately would take as long as the rest of a line feed.
pub(super) const SLACK_ROWS: usize = 224;

/// A row that is followed by this many others has left the history, wherever the screen begins.
pub(super) const ROWS_KEPT_MAX: usize = HISTORY_ROWS_MAX + SLACK_ROWS;

/// The history limit of the emulator. It is never reached, so that every dropped row is counted:
/// between two checks, one operation scrolls by at most a screen, or 256 characters by a row each.
pub(super) const EMULATOR_ROWS_MAX: usize = HISTORY_ROWS_MAX + SLACK_ROWS + ROWS_MAX as usize + 256;

/// The lines that left the screen since the last mark.
#[derive(Debug, Default)]
pub(super) struct ScreenHistory {
    /// The number of dropped rows.
    pub rows_gone: u64,
    /// The number of dropped lines, which is the index of the first remaining line.
    pub lines_gone: u64,
    /// The screen's first row, counted from the mark, when the screen was wiped.
    pub wiped_at: Option<u64>,
    /// New text of dropped lines that was not taken yet.
    scrolled: ScrolledText,
    /// The number of rows that became text before they were dropped.
    rows_taken: usize,
}

/// New text of lines that left the history.
#[derive(Debug, Default)]
struct ScrolledText {
    text: String,
    /// Whether the text continues the last reported line.
    continues: bool,
    /// Whether the last line is incomplete.
    is_open: bool,
}

impl ScreenHistory {
    /// Turns the oldest rows into text if there are too many.
    #[inline]
    pub(super) fn turn_rows_into_text(
        &mut self,
        term: &mut Term<PendingReplies>,
        baseline: &mut ScreenBaseline,
    ) {
        if term.grid().history_size() >= HISTORY_ROWS_MAX + SLACK_ROWS {
            self.drop_oldest_text(term, baseline);
        }
    }

    #[cold]
    fn drop_oldest_text(&mut self, term: &mut Term<PendingReplies>, baseline: &mut ScreenBaseline) {
        let rows = term.grid().history_size() - HISTORY_ROWS_MAX;
        let taken = self.rows_taken.min(rows);
        self.take_rows(term.grid(), taken..rows, baseline);
        self.rows_taken -= taken;
        self.drop_oldest_rows(term, rows);
        let grid = term.grid_mut();
        grid.update_history(HISTORY_ROWS_MAX);
        grid.update_history(EMULATOR_ROWS_MAX);
    }

    /// Takes the new text of rows, counted from the topmost.
    fn take_rows(&mut self, grid: &Grid<Cell>, rows: Range<usize>, baseline: &mut ScreenBaseline) {
        let top = grid.topmost_line().0;
        let mut index = self.lines_gone;
        let wiped_row = self.wiped_row(grid);
        let scrolled = &mut self.scrolled;
        text::each_line(grid, top + rows.start as i32..top + rows.end as i32, |line| {
            let is_wiped = wiped_row.is_some_and(|row| line.first_row >= row);
            let wiped = (is_wiped, wiped_row.is_some());
            if let Some(new) = baseline.text_leaving_history(index, line, wiped) {
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

    /// Takes plain lines that scroll through at once, a multiple of [`SLACK_ROWS`], after all rows
    /// above the cursor. All of those rows must be new, and at least as many lines must follow.
    pub(super) fn skip_plain_lines(
        &mut self,
        grid: &Grid<Cell>,
        baseline: &mut ScreenBaseline,
        (lines, plain): (usize, &[u8]),
    ) {
        // The rows above are older. They are dropped later, and are already text then.
        let above = grid.history_size() + grid.screen_lines() - 1;
        self.take_rows(grid, self.rows_taken..above, baseline);
        self.rows_taken = above;
        super::flood::push_plain_text(plain, &mut self.scrolled.text);
        self.rows_gone += lines as u64;
        self.lines_gone += lines as u64;
    }

    /// Returns new text of dropped lines.
    pub(super) fn take_scrolled(&mut self) -> Option<UnseenText> {
        let text = std::mem::take(&mut self.scrolled.text);
        // The next text continues this one.
        let continues = std::mem::replace(&mut self.scrolled.continues, true);
        (!text.is_empty()).then_some(UnseenText { text, continues })
    }

    /// Forgets the rows at a mark, but keeps text that was not taken.
    pub(super) fn forget_marked_rows(&mut self) {
        let text = std::mem::take(&mut self.scrolled.text);
        let continues = self.scrolled.continues;
        let scrolled = ScrolledText { continues, text, is_open: false };
        *self = Self { scrolled, ..Self::default() };
    }

    /// Handles the erasure of the history (`ESC [ 3 J`). Must be called before it.
    pub(super) fn erase_history(&mut self, term: &Term<PendingReplies>) {
        self.end_incomplete_line();
        self.drop_oldest_rows(term, term.grid().history_size());
    }

    /// Handles a full reset by the program.
    pub(super) fn reset_history(&mut self) {
        self.end_incomplete_line();
        self.forget_marked_rows();
    }

    /// Records that the program wiped the whole screen.
    pub(super) fn record_wipe(&mut self, term: &Term<PendingReplies>) {
        self.wiped_at = Some(self.rows_gone + term.grid().history_size() as u64);
    }

    /// Returns the grid row that was the screen's first when the screen was wiped.
    pub(super) fn wiped_row(&self, grid: &Grid<Cell>) -> Option<i32> {
        self.wiped_at.map(|row| {
            let top = self.rows_gone + grid.history_size() as u64;
            i32::try_from(row).unwrap_or(i32::MAX).saturating_sub(i32::try_from(top).unwrap_or(0))
        })
    }

    /// Ends an incomplete line, because its erased rest never arrives.
    fn end_incomplete_line(&mut self) {
        if std::mem::take(&mut self.scrolled.is_open) {
            self.scrolled.text.push('\n');
        }
    }

    /// Counts the oldest `rows` rows, and the lines that end in them, as dropped.
    fn drop_oldest_rows(&mut self, term: &Term<PendingReplies>, rows: usize) {
        let grid = term.grid();
        let top = grid.topmost_line().0;
        let ends = (top..top + rows as i32).filter(|row| !text::is_wrapped(&grid[Line(*row)]));
        self.lines_gone += ends.count() as u64;
        self.rows_gone += rows as u64;
    }
}
