//! Shows output above the line that the user types. The line's editor prints whole lines at a time.
//!
//! This module never draws. It hands the editor one piece at a time and the next piece when the
//! editor has shown the last one, so that handing over never blocks. When the line ends, closing
//! the [`OpenQuestion`](super::OpenQuestion) writes the pieces that the editor has not shown.

use std::time::{Duration, Instant};

use super::progress;
use super::writer::held;

/// How often the row above the line is compared with its last text.
const ROW_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// Makes the editor redraw its line: the cursor goes up, and the line end moves it down again.
const DRAW_AGAIN: &str = "\u{1b}[A\n";

/// Hands a text to the editor.
pub type Printer = Box<dyn FnMut(String) + Send>;

/// The editor that prints the output.
pub(super) struct Above {
    printer: Printer,
    phase: Phase,
    /// The text that the editor has received and not yet shown.
    sent: Option<Vec<u8>>,
    /// The last text of the row above the line, and when it was compared.
    row: Option<(String, Instant)>,
}

/// The state of the editor's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The editor is about to draw the line.
    Begins,
    /// The editor reads keys and accepts texts.
    Reads,
    /// The editor reads no more keys.
    Over,
}

impl std::fmt::Debug for Above {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Above").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl Above {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer, phase: Phase::Over, sent: None, row: None }
    }

    /// Returns true if the row above the line has changed since the last comparison.
    fn row_changes(&mut self) -> bool {
        let Some((shown, looked_at)) = &mut self.row else { return false };
        if looked_at.elapsed() < ROW_LOOKED_AT_EVERY {
            return false;
        }
        *looked_at = Instant::now();
        let text = progress::work_text();
        std::mem::replace(shown, text.clone()) != text
    }

    /// Returns the text that the editor received and has not shown.
    pub(super) fn not_shown(&self) -> Option<&[u8]> {
        self.sent.as_deref()
    }
}

/// Gives the editor the lines that have ended since the last call. Called repeatedly while the user
/// types a line.
pub fn show_above() {
    let mut held = held();
    let Some(held) = held.as_mut() else { return };
    let takes = |above: &Above| above.phase == Phase::Reads && above.sent.is_none();
    if !held.above.as_ref().is_some_and(takes) {
        return;
    }
    let lines = held.take_lines();
    let Some(above) = held.above.as_mut() else { return };
    let row_changes = above.row_changes();
    if row_changes || !lines.is_empty() {
        let text =
            if lines.is_empty() { DRAW_AGAIN.into() } else { String::from_utf8_lossy(&lines) };
        (above.printer)(text.into_owned());
        above.sent = Some(lines);
    }
}

/// Records that the editor begins a line, and whether the row above it shows the work.
pub fn line_begins(has_row: bool) {
    update_above(|above| {
        above.phase = Phase::Begins;
        above.row = has_row.then(|| (String::new(), Instant::now()));
    });
    progress::begin_row();
}

/// Returns the sequence that draws the row above a line, which shows the work of the turn. The row
/// is empty if no turn runs.
pub fn work_row() -> String {
    progress::work_row("")
}

/// Records that the editor has drawn its line. A line that has just begun accepts texts from this
/// point.
pub fn line_is_drawn() {
    update_above(|above| {
        if above.phase == Phase::Begins {
            above.phase = Phase::Reads;
        }
    });
}

/// Records that the editor has shown the text it received.
pub fn is_shown_above() {
    update_above(|above| above.sent = None);
}

/// Records that the editor reads no more keys, so it receives no more texts.
pub fn line_ends() {
    update_above(|above| above.phase = Phase::Over);
}

/// Returns true if the editor has a text that it has not shown. It would show the text with the
/// next line.
pub fn is_given_in_vain() -> bool {
    held().as_ref().and_then(|held| held.above.as_ref()).is_some_and(|it| it.sent.is_some())
}

fn update_above(change: impl FnOnce(&mut Above)) {
    if let Some(above) = held().as_mut().and_then(|held| held.above.as_mut()) {
        change(above);
    }
}
