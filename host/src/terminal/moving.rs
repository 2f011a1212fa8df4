//! What moves on the terminal: a spinner, or a bar.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{one_line, writer};

/// How often a spinner turns.
const TICK: Duration = Duration::from_millis(120);

/// Columns of what stands before a bar.
const LABEL_COLUMNS: usize = 24;

/// A spinner or a bar. It draws on a thread of its own, so none is there while a question is open.
#[derive(Debug, Default)]
pub struct Moving(Option<ProgressBar>);

impl Moving {
    /// Shows that something goes on.
    pub fn spin(&mut self, text: &str) {
        if writer::question_is_open() {
            return;
        }
        let text = one_line(text, writer::size().1.saturating_sub(4));
        if self.0.as_ref().is_some_and(|moving| moving.length().is_some()) {
            self.still();
        }
        let moving = self.0.get_or_insert_with(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {msg:.dim}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(TICK);
            spinner
        });
        moving.set_message(text);
    }

    /// Tells whether a bar of this length is shown.
    pub fn is_bar_of(&self, total: u64) -> bool {
        self.0.as_ref().is_some_and(|moving| moving.length() == Some(total))
    }

    /// Shows how far something is.
    pub fn progress(&mut self, label: &str, done: u64, total: u64) {
        if writer::question_is_open() {
            return;
        }
        if !self.is_bar_of(total) {
            self.still();
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
            let template = "{msg:.dim} {bar:32.dim} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            self.0 = Some(bar);
        }
        if let Some(bar) = &self.0 {
            bar.set_message(one_line(label, LABEL_COLUMNS));
            bar.set_position(done);
        }
    }

    /// Takes away what moves.
    pub fn still(&mut self) {
        if let Some(moving) = self.0.take() {
            moving.finish_and_clear();
        }
    }
}
