//! Progress on the terminal: a spinner or a bar.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use console::measure_text_width;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use super::{Text, can_edit, one_line, writer};

/// How often the picture of a spinner changes.
const TICK: Duration = Duration::from_millis(120);

/// The pictures of a spinner.
const PICTURES: [char; 8] = ['⠋', '⠙', '⠚', '⠒', '⠂', '⠒', '⠓', '⠉'];

/// Shown after a spinner's text if there is room.
const STOPS: &str = "Ctrl-C stops";

/// Columns that a spinner takes in addition to its text and [`STOPS`]: the picture and the seconds.
const SPINNER_COLUMNS: usize = 12;

/// The minimum number of columns of the text. A narrower row does not show [`STOPS`].
const TEXT_COLUMNS_MIN: usize = 40;

/// Columns of the label before a bar.
const LABEL_COLUMNS: usize = 24;

/// A total of this size counts bytes, because other totals are smaller.
const BYTES_MIN: u64 = 1_000_000;

/// The text before a spinner: the prompt if the user may type, or nothing.
static STANDS_BEFORE: Mutex<&str> = Mutex::new("");

/// The running work, which a spinner or the row above a draft shows.
static WORK: Mutex<Option<Work>> = Mutex::new(None);

/// The width of the row that shows the work, as it was last drawn.
static DRAWN_COLUMNS: AtomicUsize = AtomicUsize::new(0);

/// Running work.
#[derive(Debug)]
struct Work {
    since: Instant,
    text: String,
    fitted: fn(&str, usize) -> String,
}

/// Sets the text before spinners.
pub(super) fn stand_behind(prompt: &'static str) {
    *STANDS_BEFORE.lock() = prompt;
}

/// Returns the sequence that draws the row that shows the work, after a prompt and instead of the
/// row that was drawn last. The row is empty if no work runs.
pub(super) fn work_row(before: &str) -> String {
    let columns = writer::size().1.max(1);
    let row = WORK.lock().as_ref().map(|work| work.row(columns.saturating_sub(before.len())));
    let row = row.unwrap_or_default();
    let styled = Text::new().dim(&row).styled(|| console::Style::new().for_stderr());
    let erased = erase_last_row(before.len() + measure_text_width(&row), columns);
    format!("{erased}{before}{styled}")
}

/// Records that no row is drawn yet.
pub(super) fn begin_row() {
    DRAWN_COLUMNS.store(0, Relaxed);
}

/// Returns the text of the row that shows the work, without its picture.
pub(super) fn work_text() -> String {
    let columns = writer::size().1;
    let row = WORK.lock().as_ref().map(|work| work.row(columns)).unwrap_or_default();
    row.chars().skip(1).collect()
}

/// Returns the sequence that erases the last row, and stores the width of the next one. A terminal
/// that was made narrower has broken the row. xterm has cut it.
fn erase_last_row(next: usize, columns: usize) -> String {
    let drawn = DRAWN_COLUMNS.swap(next, Relaxed);
    match rows_broken_at(columns, &[], drawn) {
        0 => "\r\u{1b}[J".to_owned(),
        above => format!("\r\u{1b}[{above}A\u{1b}[J"),
    }
}

/// Returns the number of rows above the cursor after the terminal was resized to `columns`. `above`
/// has the widths of the earlier rows, and `line` is the width of the row with the cursor.
pub(super) fn rows_broken_at(columns: usize, above: &[usize], line: usize) -> usize {
    let is_cut = std::env::var_os("XTERM_VERSION").is_some();
    let more = |drawn: usize| if is_cut { 0 } else { drawn.saturating_sub(1) / columns };
    above.iter().map(|drawn| 1 + more(*drawn)).sum::<usize>() + more(line)
}

impl Work {
    fn row(&self, columns: usize) -> String {
        let taken = self.since.elapsed();
        let room = columns.saturating_sub(SPINNER_COLUMNS);
        let text = match room.checked_sub(STOPS.len() + 3) {
            Some(room) if room >= TEXT_COLUMNS_MIN => {
                format!("{} · {STOPS}", (self.fitted)(&self.text, room))
            }
            Some(_) | None => (self.fitted)(&self.text, room),
        };
        let turns = usize::try_from(taken.as_millis() / TICK.as_millis()).unwrap_or_default();
        let picture = PICTURES[turns % PICTURES.len()];
        let row = format!("{picture} {:#} {text}", HumanDuration(taken));
        one_line(&row, columns.saturating_sub(1))
    }
}

/// A row that a separate thread redraws. Dropping it erases the row.
#[derive(Debug)]
struct Spinner {
    ends: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    fn begin() -> Self {
        let (ends, ended) = channel();
        let turn = move || {
            begin_row();
            loop {
                writer::draw_moving(&work_row(*STANDS_BEFORE.lock()));
                if ended.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            writer::draw_moving(&erase_last_row(0, writer::size().1.max(1)));
        };
        let thread = std::thread::Builder::new().name("jaato-spinner".into()).spawn(turn);
        Self { ends: Some(ends), thread: thread.ok() }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.ends.take();
        // A thread that panicked draws no more.
        self.thread.take().map(JoinHandle::join);
    }
}

/// A spinner or a bar. Both draw on their own threads, so neither runs while a question is open.
#[derive(Debug, Default)]
pub struct Moving {
    spinner: Option<Spinner>,
    bar: Option<ProgressBar>,
    /// When the work began, so that a spinner that returns continues to count.
    since: Option<Instant>,
}

impl Moving {
    /// Records that work begins. Its seconds count from this point.
    pub fn begin(&mut self) {
        self.still();
        self.since = Some(Instant::now());
    }

    /// Shows a spinner with a text and the elapsed time. Does nothing while a bar is shown.
    pub fn spin(&mut self, text: &str) {
        self.show_work(text, one_line);
    }

    /// Like [`Self::spin`], but shows the end of a growing text.
    pub fn spin_end(&mut self, text: &str) {
        self.show_work(text, end_of_text);
    }

    fn show_work(&mut self, text: &str, fitted: fn(&str, usize) -> String) {
        if self.bar.is_some() {
            return;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        *WORK.lock() = Some(Work { since, text: text.to_owned(), fitted });
        if !writer::question_is_open() && can_edit() {
            self.spinner.get_or_insert_with(Spinner::begin);
        }
    }

    /// Records that no work runs.
    pub fn rest(&mut self) {
        self.spinner = None;
        *WORK.lock() = None;
    }

    /// Returns true if a bar with this total is shown.
    pub fn is_bar_of(&self, total: u64) -> bool {
        self.bar.as_ref().is_some_and(|bar| bar.length() == Some(total))
    }

    /// Removes the bar, because other work begins.
    pub fn end_bar(&mut self) {
        if self.bar.is_some() {
            self.still();
        }
    }

    /// Shows the progress of the work as a bar.
    pub fn progress(&mut self, label: &str, done: u64, total: u64) {
        if writer::question_is_open() {
            return;
        }
        if !self.is_bar_of(total) {
            self.still();
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let template = if total >= BYTES_MIN {
                "{msg:.dim} {bar:32.dim} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
            } else {
                "{msg:.dim} {bar:32.dim} {pos} of {len} {elapsed:.dim}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_message(one_line(label, LABEL_COLUMNS));
            bar.set_position(done);
        }
    }

    /// Removes the spinner or the bar.
    pub fn still(&mut self) {
        self.spinner = None;
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Returns the end of a text as one line of at most `columns` columns, with `…` for the omitted
/// part.
fn end_of_text(text: &str, columns: usize) -> String {
    let whole = one_line(text, usize::MAX);
    if measure_text_width(&whole) <= columns {
        return whole;
    }
    let mut begin = whole.len();
    let mut room = columns.saturating_sub(1);
    for (at, letter) in whole.char_indices().rev() {
        let Some(left) = room.checked_sub(measure_text_width(letter.encode_utf8(&mut [0; 4])))
        else {
            break;
        };
        (room, begin) = (left, at);
    }
    format!("…{}", &whole[begin..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_erased_whole_after_the_terminal_was_made_narrower() {
        begin_row();
        assert_eq!(erase_last_row(92, 100), "\r\u{1b}[J");
        assert_eq!(erase_last_row(20, 30), "\r\u{1b}[3A\u{1b}[J");
        assert_eq!(erase_last_row(92, 100), "\r\u{1b}[J");
    }

    #[test]
    fn rows_above_the_cursor_are_counted_at_the_new_width() {
        assert_eq!(rows_broken_at(100, &[60, 0, 96], 4), 3);
        assert_eq!(rows_broken_at(60, &[60, 0, 96], 4), 4);
        assert_eq!(rows_broken_at(20, &[60, 21], 41), 3 + 2 + 2);
    }

    #[test]
    fn of_a_text_that_grows_the_end_is_shown() {
        assert_eq!(end_of_text("short", 5), "short");
        assert_eq!(end_of_text("a longer text", 5), "…text");
        assert_eq!(end_of_text("日本語", 4), "…語");
        assert_eq!(end_of_text("two\nlines\u{1b}", 40), "two lines<U+001B>");
        assert_eq!(end_of_text("ab", 0), "…");
    }
}
