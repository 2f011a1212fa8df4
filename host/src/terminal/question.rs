//! Asks the user at the terminal, so that no other text can pass for a question.
//!
//! Every row begins with a mark that no other text can have and is broken at the terminal's width.
//! All rows fit the screen: a long value shows its beginning and its end, and counts the lines
//! between them. While a question is open, nothing else is written, so it is the last text on the
//! screen. Input that was typed before the question was shown is not an answer. After the answer,
//! the question folds to one row.

mod keys;
mod line;
mod rows;
mod typed_answer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::writer::{self, OpenQuestion};
use super::{Look, Text, progress, raw_input};

use console::measure_text_width;
use parking_lot::Mutex;
pub use rows::{Dialog, Manner, Value};
use rows::{Extent, Row};
pub use typed_answer::can_edit;
use typed_answer::{Typed, Typing};

/// How long the user must type nothing before a question accepts an answer, because a user who is
/// typing at that moment means something else.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// Columns of the mark before a row, with the space after it.
const MARK_COLUMNS: usize = 2;

/// Approximate limit on the bytes that were typed too early. Further bytes are dropped.
const EARLY_BYTES_MAX: usize = 64 * 1024;

/// What happens to text that was typed before the question was seen.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// The text is dropped.
    Dropped,
    /// The text belongs to the next message.
    Kept(&'a Mutex<String>),
}

impl Before<'_> {
    fn keep(self, text: &str) {
        if let Self::Kept(kept) = self {
            let mut kept = kept.lock();
            if kept.len() < EARLY_BYTES_MAX {
                kept.push_str(text);
            }
        }
    }
}

/// The result of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<T> {
    /// An answer.
    Answer(T),
    /// No one can answer, and why.
    Nobody(String),
}

/// Asks until there is an answer. `read` parses an answer from a line. If it returns an error, the
/// error is shown unless it is empty, and the question is asked again. `fold` returns the row that
/// replaces the answered question, or `None`. Dropping the future withdraws the question.
///
/// # Errors
/// If the terminal is gone.
pub async fn ask<T>(
    open: Arc<OpenQuestion>,
    question: Dialog,
    before: Before<'_>,
    read: impl Fn(&str) -> Result<T, String>,
    fold: impl Fn(&T) -> Option<Text>,
) -> io::Result<Reply<T>> {
    let mut asking = OpenDialog::new(open, question, before)?;
    if let Some(reason) = asking.begin().await? {
        return Ok(Reply::Nobody(reason));
    }
    loop {
        asking.show_line().await?;
        let line = match asking.typed().await? {
            Typed::Line(line) => line,
            Typed::Ended => return Ok(Reply::Nobody("standard input has ended".to_owned())),
            // Draw the question again, because rows that the terminal broke could look like
            // anything.
            Typed::Resized => {
                asking.erase_resized().await?;
                if let Some(reason) = asking.show_body().await? {
                    return Ok(Reply::Nobody(reason));
                }
                continue;
            }
            // After a stop, the user sees the question for the first time again.
            Typed::Stopped => {
                asking.end_line().await?;
                asking.typing.begin_again(&asking.question.begun);
                if let Some(reason) = asking.begin().await? {
                    return Ok(Reply::Nobody(reason));
                }
                continue;
            }
        };
        if asking.is_show_word(line.trim()) {
            asking.show_whole().await?;
            continue;
        }
        match read(line.trim()) {
            Ok(answer) => {
                line::remember(line.trim());
                asking.fold(fold(&answer)).await?;
                return Ok(Reply::Answer(answer));
            }
            Err(wrong) => asking.show_words(&wrong).await?,
        }
    }
}

/// Shows a question whose answer is not shown while the user types it. Returns the prompt.
///
/// # Errors
/// If the terminal is gone.
pub async fn show(
    open: Arc<OpenQuestion>,
    question: Dialog,
    before: Before<'_>,
) -> io::Result<Reply<Text>> {
    let mut asking = OpenDialog::new(open, question, before)?;
    Ok(match asking.begin().await? {
        Some(reason) => Reply::Nobody(reason),
        None => Reply::Answer(prompt("")),
    })
}

/// A question on the terminal.
struct OpenDialog<'a> {
    open: Arc<OpenQuestion>,
    question: Dialog,
    size: (usize, usize),
    before: Before<'a>,
    typing: Typing,
    /// The columns of the question's rows above the typed line. These rows are erased after the
    /// answer.
    rows_above: Vec<usize>,
}

impl<'a> OpenDialog<'a> {
    fn new(open: Arc<OpenQuestion>, question: Dialog, before: Before<'a>) -> io::Result<Self> {
        let typing = Typing::begin(&question)?;
        Ok(Self { open, question, size: (0, 0), before, typing, rows_above: Vec::new() })
    }

    /// Shows the question and gives the user time to see it. Returns the reason if that is
    /// impossible.
    async fn begin(&mut self) -> io::Result<Option<String>> {
        self.take_early()?;
        if let Some(reason) = self.show_body().await? {
            return Ok(Some(reason));
        }
        loop {
            tokio::time::sleep(FIRST_LOOK).await;
            if !self.take_early()? {
                return Ok(None);
            }
        }
    }

    /// Takes the input that was typed before the question was shown. Returns true if there was any.
    fn take_early(&mut self) -> io::Result<bool> {
        let text = self.typing.take_early()?;
        self.before.keep(&text);
        Ok(!text.is_empty())
    }

    /// Shows the question. Returns the reason if that is impossible.
    async fn show_body(&mut self) -> io::Result<Option<String>> {
        self.size = writer::size();
        let rows = match self.question.body(self.size, Extent::Fitted) {
            Ok(rows) => rows,
            Err(reason) => return Ok(Some(reason)),
        };
        self.rows_above = column_widths(&rows);
        let has_keys = self.typing.has_keys();
        self.write_rows(move |open| {
            if has_keys {
                // The terminal may have shown the input that was typed before.
                open.erase_rows(0)?;
            }
            open.say(&format_rows(&rows))
        })
        .await?;
        Ok(None)
    }

    /// Shows the whole question. It stays, and the answer erases only its end.
    async fn show_whole(&mut self) -> io::Result<()> {
        self.erase().await?;
        // This works at any size, because the whole question may scroll.
        if let Ok(rows) = self.question.body(self.size, Extent::Whole) {
            self.rows_above = column_widths(&self.question.rows_below(self.size, false));
            self.write_rows(move |open| open.say(&format_rows(&rows))).await?;
        }
        Ok(())
    }

    /// Shows a message from jaato below the question.
    async fn show_words(&mut self, words: &str) -> io::Result<()> {
        let rows = rows::words_as_rows(words, self.size);
        if self.typing.has_keys() {
            self.write_rows(|open| open.erase_rows(0)).await?;
        }
        self.rows_above.extend(column_widths(&rows));
        match rows.is_empty() {
            true => Ok(()),
            false => self.write_rows(move |open| open.say(&format_rows(&rows))).await,
        }
    }

    /// Shows the typed line.
    async fn show_line(&mut self) -> io::Result<()> {
        match self.typing.shown(rows::line_columns(self.size)) {
            Some((text, after)) => {
                self.write_rows(move |open| open.draw_row(&prompt(&text), after)).await
            }
            None => self.write_rows(|open| open.say_open(&prompt(""))).await,
        }
    }

    /// Waits until the user has typed a line.
    async fn typed(&mut self) -> io::Result<Typed> {
        loop {
            if let Some(typed) = self.typing.next()? {
                if matches!(&self.typing, Typing::Lines(_)) {
                    self.open.row_has_ended();
                }
                return Ok(typed);
            }
            if self.typing.take_changed() {
                self.show_line().await?;
            }
            raw_input::until_next_look().await;
            if writer::size() != self.size {
                return Ok(Typed::Resized);
            }
        }
    }

    /// Replaces the question by one row.
    async fn fold(&mut self, row: Option<Text>) -> io::Result<()> {
        self.before.keep(&self.typing.rest());
        self.erase().await?;
        match row {
            Some(row) => self.write_rows(move |open| open.say(&row)).await,
            None => Ok(()),
        }
    }

    /// Erases the question, if the terminal can.
    async fn erase(&mut self) -> io::Result<()> {
        let rows_above = self.rows_above.len().min(self.size.0.saturating_sub(1));
        match self.typing.has_keys() {
            true => self.write_rows(move |open| open.erase_rows(rows_above)).await,
            false => Ok(()),
        }
    }

    /// Erases the question after the size has changed, if the terminal can.
    async fn erase_resized(&mut self) -> io::Result<()> {
        let Some((text, after)) = self.typing.shown(rows::line_columns(self.size)) else {
            return self.end_line().await;
        };
        let (rows, columns) = writer::size();
        let line = columns_of_row(&typed_row(&text)).saturating_sub(after);
        let rows_above = progress::rows_broken_at(columns, &self.rows_above, line);
        let rows_above = rows_above.min(rows.saturating_sub(1));
        self.write_rows(move |open| open.erase_rows(rows_above)).await
    }

    async fn end_line(&mut self) -> io::Result<()> {
        self.write_rows(OpenQuestion::end_row).await
    }

    fn is_show_word(&self, line: &str) -> bool {
        let manner = self.question.manner;
        let can_show = manner == Manner::Keys || self.question.can_show_more(self.size);
        can_show && manner.show_words().contains(&line.to_lowercase().as_str())
    }

    /// Writes on a separate thread, because a terminal that blocks must not delay a cancellation.
    async fn write_rows(
        &mut self,
        rows: impl FnOnce(&OpenQuestion) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let open = Arc::clone(&self.open);
        let written = tokio::task::spawn_blocking(move || rows(&open));
        written.await.map_err(io::Error::other)?
    }
}

/// Returns the row in which the user types the answer.
fn prompt(text: &str) -> Text {
    format_rows(&[typed_row(text)])
}

fn typed_row(text: &str) -> Row {
    Row(vec![(Look::Plain, rows::PROMPT.to_owned()), (Look::Plain, text.to_owned())])
}

fn column_widths(rows: &[Row]) -> Vec<usize> {
    rows.iter().map(columns_of_row).collect()
}

/// Returns the columns of a row including its mark.
fn columns_of_row(row: &Row) -> usize {
    row.0.iter().fold(MARK_COLUMNS, |columns, (_, piece)| columns + measure_text_width(piece))
}

fn format_rows(rows: &[Row]) -> Text {
    rows.iter().enumerate().fold(Text::new(), |text, (at, row)| {
        let text = if at == 0 { text } else { text.plain("\n") };
        let marked = text.mark();
        row.0.iter().fold(marked, |text, (look, piece)| text.with(*look, piece))
    })
}
