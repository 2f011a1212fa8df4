//! What is written while a line is typed: the line's editor shows it above, whole lines at a time.
//!
//! The editor draws; nothing here does. It is given one piece at a time, so that giving never
//! waits: the next one when the last is shown. What it has not shown when the line ends is written
//! behind the line, by whoever closes the [`OpenQuestion`](super::OpenQuestion).

use std::time::{Duration, Instant};

use super::moving;
use super::writer::held;

/// How often the row above the line is looked at.
const ROW_LOOKED_AT_EVERY: Duration = Duration::from_millis(250);

/// Has the editor draw its line again: the cursor goes up, and the line end down again.
const DRAW_AGAIN: &str = "\u{1b}[A\n";

/// Hands a text to the editor.
pub type Printer = Box<dyn FnMut(String) + Send>;

/// The editor that shows what is written.
pub(super) struct Above {
    printer: Printer,
    phase: Phase,
    /// What the editor has been given and has not shown.
    sent: Option<Vec<u8>>,
    /// The row above the line, as it was given last, and when.
    row: Option<(String, Instant)>,
}

/// How far the editor is with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It is about to draw it.
    Begins,
    /// It reads keys, and takes what it is given.
    Reads,
    /// It reads no more keys.
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

    /// Returns true if the row above the line has another text than at the last look.
    fn row_changes(&mut self) -> bool {
        let Some((shown, looked_at)) = &mut self.row else { return false };
        if looked_at.elapsed() < ROW_LOOKED_AT_EVERY {
            return false;
        }
        *looked_at = Instant::now();
        let text = moving::work_text();
        std::mem::replace(shown, text.clone()) != text
    }

    /// What the editor was given in vain.
    pub(super) fn not_shown(&self) -> Option<&[u8]> {
        self.sent.as_deref()
    }
}

/// Gives the editor the lines that have ended since. Called again and again while a line is typed.
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

/// Says that the editor begins a line, and whether there is a row above it that shows the work.
pub fn line_begins(has_row: bool) {
    with(|above| {
        above.phase = Phase::Begins;
        above.row = has_row.then(|| (String::new(), Instant::now()));
    });
    moving::begin_row();
}

/// Returns what draws the row above a line, which shows the work of the turn; the row is empty if
/// no turn runs.
pub fn work_row() -> String {
    moving::work_row("")
}

/// Says that the editor has drawn its line: where it has just begun it, it reads keys from here on.
pub fn line_is_drawn() {
    with(|above| {
        if above.phase == Phase::Begins {
            above.phase = Phase::Reads;
        }
    });
}

/// Says that the editor has shown what it was given.
pub fn is_shown_above() {
    with(|above| above.sent = None);
}

/// Says that the editor reads no more keys: it is given nothing from here on.
pub fn line_ends() {
    with(|above| above.phase = Phase::Over);
}

/// Tells whether the editor still has what it was given: it would show that with the next line.
pub fn is_given_in_vain() -> bool {
    held().as_ref().and_then(|held| held.above.as_ref()).is_some_and(|it| it.sent.is_some())
}

fn with(change: impl FnOnce(&mut Above)) {
    if let Some(above) = held().as_mut().and_then(|held| held.above.as_mut()) {
        change(above);
    }
}
