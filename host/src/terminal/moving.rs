//! What moves on the terminal: a spinner, or a bar.

use std::time::{Duration, Instant};

use console::measure_text_width;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

use super::{one_line, writer};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// Stands behind a spinner where there is room.
const STOPS: &str = "Ctrl-C stops";

/// Columns that a spinner takes beside its text and what stands behind it: itself and the seconds.
const SPINNER_COLUMNS: usize = 12;

/// Fewest columns of a text that leave room for more.
const TEXT_COLUMNS_MIN: usize = 40;

/// Columns of what stands before a bar.
const LABEL_COLUMNS: usize = 24;

/// A total from which on it is one of bytes: nobody waits for a million of anything else.
const BYTES_MIN: u64 = 1_000_000;

/// What stands before a spinner: the prompt, where something may be typed.
static STANDS_BEFORE: Mutex<&str> = Mutex::new("");

/// Has a text stand before spinners, from the next text of one on.
pub(super) fn stand_behind(prompt: &'static str) {
    *STANDS_BEFORE.lock() = prompt;
}

/// A spinner or a bar. It draws on a thread of its own, so none is there while a question is open.
#[derive(Debug, Default)]
pub struct Moving {
    shown: Option<ProgressBar>,
    /// When what goes on began: a spinner that comes back counts on.
    since: Option<Instant>,
}

impl Moving {
    /// Notes that something begins: its seconds count from here.
    pub fn begin(&mut self) {
        self.still();
        self.since = Some(Instant::now());
    }

    /// Shows that something goes on, and for how long. A bar stays.
    pub fn spin(&mut self, text: &str) {
        self.turn(text, one_line);
    }

    /// The same with the end of a text, which grows.
    pub fn spin_end(&mut self, text: &str) {
        self.turn(text, end_of);
    }

    fn turn(&mut self, text: &str, fitted: fn(&str, usize) -> String) {
        if writer::question_is_open() || self.is_bar() {
            return;
        }
        let before = *STANDS_BEFORE.lock();
        let room = writer::size().1.saturating_sub(SPINNER_COLUMNS + before.len());
        let text = match room.checked_sub(STOPS.len() + 3) {
            Some(room) if room >= TEXT_COLUMNS_MIN => {
                format!("{} · {STOPS}", fitted(text, room))
            }
            Some(_) | None => fitted(text, room),
        };
        let since = *self.since.get_or_insert_with(Instant::now);
        let moving = self.shown.get_or_insert_with(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let template = "{prefix}{spinner:.dim} {elapsed:.dim} {msg:.dim}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(TICK);
            spinner.with_elapsed(since.elapsed())
        });
        moving.set_prefix(before);
        moving.set_message(text);
    }

    /// Tells whether a bar of this length is shown.
    pub fn is_bar_of(&self, total: u64) -> bool {
        self.shown.as_ref().is_some_and(|moving| moving.length() == Some(total))
    }

    /// Takes a bar away: something else goes on.
    pub fn end_bar(&mut self) {
        if self.is_bar() {
            self.still();
        }
    }

    fn is_bar(&self) -> bool {
        self.shown.as_ref().is_some_and(|moving| moving.length().is_some())
    }

    /// Shows how far something is.
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
            self.shown = Some(bar);
        }
        if let Some(bar) = &self.shown {
            bar.set_message(one_line(label, LABEL_COLUMNS));
            bar.set_position(done);
        }
    }

    /// Takes away what moves.
    pub fn still(&mut self) {
        if let Some(moving) = self.shown.take() {
            moving.finish_and_clear();
        }
    }
}

/// Returns the end of a text as one line of at most so many columns, with `…` where it was cut.
fn end_of(text: &str, columns: usize) -> String {
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
    fn of_a_text_that_grows_the_end_is_shown() {
        assert_eq!(end_of("short", 5), "short");
        assert_eq!(end_of("a longer text", 5), "…text");
        assert_eq!(end_of("日本語", 4), "…語");
        assert_eq!(end_of("two\nlines\u{1b}", 40), "two lines<U+001B>");
        assert_eq!(end_of("ab", 0), "…");
    }
}
