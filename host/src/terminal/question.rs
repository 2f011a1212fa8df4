//! Asks a person at the terminal, so that no other question can stand in for this one.
//!
//! Every row begins with a mark that no other text can have, is broken here at the terminal's
//! width, and all rows find room on the screen: what is too long shows its beginning and its end,
//! and says how much is between. A word made for this question stands at its head and before the
//! answer. What was typed before the prompt was there is no answer.

mod rows;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::writer::{self, OpenQuestion};
use super::{Text, typed};

use parking_lot::Mutex;
use rows::{Extent, Row};
pub use rows::{Manner, Question, Value};

/// How long a question stands there before it takes an answer: who types at that moment means
/// something else.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// What becomes of lines that were typed before the question was seen.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// Nobody else waits for them.
    Dropped,
    /// They belong to the next message.
    Kept(&'a Mutex<Vec<String>>),
}

/// What came of a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<T> {
    /// An answer.
    Answer(T),
    /// There is nobody to answer, and why.
    Nobody(String),
}

/// Asks until there is an answer. `read` makes one of a line; its error is shown, unless it is
/// empty, and the question asked again. Dropping the future takes the question back.
///
/// # Errors
/// When the terminal is gone.
pub async fn ask<T>(
    open: Arc<OpenQuestion>,
    question: Question,
    before: Before<'_>,
    read: impl Fn(&str) -> Result<T, String>,
) -> io::Result<Reply<T>> {
    let manner = question.manner;
    let mut asking = Asking::new(open, question);
    if let Some(reason) = asking.begin(before).await? {
        return Ok(Reply::Nobody(reason));
    }
    let _key = match manner {
        Manner::Letters => None,
        Manner::Words => Some(typed::CtrlCAsKey::begin()?),
    };
    asking.show_prompt().await?;
    loop {
        while !typed::is_typed()? {
            typed::until_next_look().await;
            // Rows that the terminal broke anew could look like anything.
            if writer::size() != asking.size {
                if let Some(reason) = asking.show_body().await? {
                    return Ok(Reply::Nobody(reason));
                }
                take_early(before)?;
                asking.show_prompt().await?;
            }
        }
        let line = typed::read_line()?;
        if line.is_empty() {
            return Ok(Reply::Nobody("standard input has ended".to_owned()));
        }
        if line.ends_with(b"\n") {
            asking.row_has_ended();
        }
        let line = String::from_utf8_lossy(&line);
        if asking.is_show_word(line.trim()) {
            asking.extent = Extent::Whole;
            asking.show_body().await?;
            asking.extent = Extent::Fitted;
        } else {
            match read(line.trim()) {
                Ok(answer) => return Ok(Reply::Answer(answer)),
                Err(wrong) if wrong.is_empty() => {}
                Err(wrong) => asking.show_row(&wrong).await?,
            }
        }
        asking.show_prompt().await?;
    }
}

/// Shows what is asked, for an answer that is not shown while it is typed; returns the rows of the
/// prompt.
///
/// # Errors
/// When the terminal is gone.
pub async fn show(
    open: Arc<OpenQuestion>,
    question: Question,
    before: Before<'_>,
) -> io::Result<Reply<Text>> {
    let mut asking = Asking::new(open, question);
    if let Some(reason) = asking.begin(before).await? {
        return Ok(Reply::Nobody(reason));
    }
    let rows = asking.question.prompt_rows(&asking.mark, asking.size);
    Ok(Reply::Answer(marked(&rows)))
}

/// A question that stands on the terminal.
struct Asking {
    open: Arc<OpenQuestion>,
    question: Question,
    mark: String,
    extent: Extent,
    size: (usize, usize),
}

impl Asking {
    fn new(open: Arc<OpenQuestion>, question: Question) -> Self {
        Self { open, question, mark: fresh_mark(), extent: Extent::Fitted, size: (0, 0) }
    }

    /// Shows what is asked and leaves time to look at it; says why that cannot be done here.
    async fn begin(&mut self, before: Before<'_>) -> io::Result<Option<String>> {
        take_early(before)?;
        if let Some(reason) = self.show_body().await? {
            return Ok(Some(reason));
        }
        tokio::time::sleep(FIRST_LOOK).await;
        take_early(before)?;
        Ok(None)
    }

    /// Shows what is asked; says why that cannot be done here.
    async fn show_body(&mut self) -> io::Result<Option<String>> {
        self.size = writer::size();
        let rows = match self.question.body(&self.mark, self.size, self.extent) {
            Ok(rows) => rows,
            Err(reason) => return Ok(Some(reason)),
        };
        self.write(move |open| open.say(&marked(&rows))).await?;
        Ok(None)
    }

    async fn show_prompt(&mut self) -> io::Result<()> {
        let rows = self.question.prompt_rows(&self.mark, self.size);
        self.write(move |open| open.say_open(&marked(&rows))).await
    }

    async fn show_row(&mut self, words: &str) -> io::Result<()> {
        let rows = rows::words_as_rows(words, self.size);
        self.write(move |open| open.say(&marked(&rows))).await
    }

    fn is_show_word(&self, line: &str) -> bool {
        self.question.manner.show_words().contains(&line)
            && self.question.can_show_more(&self.mark, self.size)
    }

    /// Writes on a thread of its own: a terminal that stands still must not keep a cancel from
    /// being heard.
    async fn write(
        &mut self,
        rows: impl FnOnce(&OpenQuestion) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let open = Arc::clone(&self.open);
        let written = tokio::task::spawn_blocking(move || rows(&open));
        written.await.map_err(io::Error::other)?
    }

    fn row_has_ended(&self) {
        self.open.row_has_ended();
    }
}

/// Takes the lines that nobody could have typed as an answer.
fn take_early(before: Before<'_>) -> io::Result<()> {
    let lines = typed::take_early()?;
    match before {
        Before::Dropped => {}
        Before::Kept(kept) => kept.lock().extend(lines),
    }
    Ok(())
}

fn marked(rows: &[Row]) -> Text {
    rows.iter().enumerate().fold(Text::new(), |text, (at, row)| {
        let text = if at == 0 { text } else { text.plain("\n") };
        text.mark().plain(row.before).with(row.look, &row.text)
    })
}

/// Makes the mark of one question: its number, and a word that nobody can know before.
fn fresh_mark() -> String {
    const CONSONANTS: [char; 16] =
        ['b', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'];
    const VOWELS: [char; 4] = ['a', 'e', 'i', 'o'];
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let number = ASKED.fetch_add(1, Relaxed) + 1;
    // Seeded by the system, and a one-way function of it.
    let mut random = RandomState::new().hash_one(number);
    let mut take = |among: u64| {
        let taken = random % among;
        random /= among;
        taken as usize
    };
    let word: String = (0..3).flat_map(|_| [CONSONANTS[take(16)], VOWELS[take(4)]]).collect();
    format!("{number} {word}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_has_a_mark_of_its_own() {
        let marks: std::collections::BTreeSet<String> = (0..8).map(|_| fresh_mark()).collect();
        let words: std::collections::BTreeSet<&str> =
            marks.iter().filter_map(|mark| mark.split(' ').nth(1)).collect();
        assert_eq!(marks.len(), 8);
        assert!(words.len() > 1 && words.iter().all(|word| word.len() == 6), "{words:?}");
    }
}
