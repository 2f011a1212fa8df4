//! The rows of a question, broken at the terminal's width. At most as many are shown as fit the
//! screen.

mod fit;
mod line_breaks;

use jaato_runtime::visible;

use self::fit::{CUT_ROWS, Rows, fitted};
use self::line_breaks::{broken_at_words, columns_of};
use crate::terminal::Look;

/// Columns of the mark before each row, whose character may be two columns wide, and one column
/// that stays free, because some terminals continue in the next row when the last column is used.
const MARGIN_COLUMNS: usize = 4;

/// Columns of the narrowest terminal on which jaato asks a question.
const COLUMNS_MIN: usize = 20;

/// Limit on the rows of a name that describes the lines below it. The name contains a file path.
const TITLE_ROWS_MAX: usize = 4;

/// Limit on the rows of a title and of a note. Names may be long.
const HEAD_ROWS_MAX: usize = 12;

/// Limit on the rows of one answer. Its scope is shown in full, unless it is extremely long.
const ANSWER_ROWS_MAX: usize = 6;

/// Rows that the values get on the smallest supported terminal.
const VALUES_ROWS_MIN: usize = CUT_ROWS + 1;

/// A terminal with this many rows has room for more than the subject of a question.
const ROOMY_ROWS_MIN: usize = 20;

/// The beginning of the typed line.
pub(super) const PROMPT: &str = "> ";

/// The indentation below the title.
const SET_IN: &str = "  ";

/// The indentation of further rows of a long title or note, so that none of them looks like an
/// answer or like the row in which the user types.
const FURTHER: &str = "    ";

/// The gap between the title and its subject.
const SUBJECT_GAP: &str = "  ";

/// The beginning of each line of a value with several lines.
const BAR: &str = "  │ ";
const BAR_COLUMNS: usize = 5;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as fits the screen.
    Fitted,
    /// The whole question, which may scroll.
    Whole,
}

/// A question as data.
#[derive(Debug, Clone)]
pub struct Dialog {
    /// The question itself.
    pub title: String,
    /// The subject as one value: next to the title if it fits there, otherwise below it.
    pub subject: String,
    /// Further values that the question concerns.
    pub values: Vec<Value>,
    /// Values that are shown only with the whole question.
    pub details: Vec<Value>,
    /// Notes for the user, one line each.
    pub notes: Vec<(Look, String)>,
    /// The answers, numbered from 1. All of them are shown.
    pub answers: Vec<String>,
    /// Describes the possible input. Empty if the answers say it.
    pub prompt: String,
    /// The text with which the typed line begins.
    pub begun: String,
    /// How it is answered.
    pub manner: Manner,
}

impl Dialog {
    /// Creates a question with a choice of answers.
    pub fn choice(title: &str, answers: Vec<String>) -> Self {
        Self {
            title: title.to_owned(),
            subject: String::new(),
            values: Vec::new(),
            details: Vec::new(),
            notes: Vec::new(),
            answers,
            prompt: String::new(),
            begun: String::new(),
            manner: Manner::Keys,
        }
    }
}

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// With single keys: `s` shows the whole question, and Ctrl-C is the usual signal.
    Keys,
    /// With any text: `/show` shows the whole question, and Ctrl-C ends the line as its last
    /// character.
    Words,
}

impl Manner {
    /// Returns the words that show all of a question.
    pub(super) fn show_words(self) -> &'static [&'static str] {
        match self {
            Self::Keys => &["s", "show", "/show"],
            Self::Words => &["/show"],
        }
    }
}

/// Something that a question concerns.
#[derive(Debug, Clone)]
pub struct Value {
    /// The name of the value. A line of a list has no name.
    name: Option<String>,
    /// The lines of the value.
    lines: Vec<(Look, String)>,
    /// The most important lines, shown if there is not enough room for all. Empty if all lines are
    /// equally important.
    core: Vec<(Look, String)>,
    /// Whether other values take precedence if there is not enough room.
    is_brief: bool,
    /// Limit on the rows of the name.
    title_rows_max: usize,
}

impl Value {
    /// Creates a value from a text.
    pub fn new(name: Option<String>, text: String) -> Self {
        let lines = vec![(Look::Plain, text)];
        Self { name, lines, core: Vec::new(), is_brief: false, title_rows_max: 1 }
    }

    /// Creates a value from styled lines, which the name describes. If there is not enough room for
    /// all lines, those of `core` are shown.
    pub fn of_lines(
        name: Option<String>,
        lines: Vec<(Look, String)>,
        core: Vec<(Look, String)>,
    ) -> Self {
        Self { name, lines, core, is_brief: false, title_rows_max: TITLE_ROWS_MAX }
    }

    /// Gives other values precedence if there is not enough room for all.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self { is_brief: true, ..self }
    }

    /// Returns the name and the lines, for tests.
    #[cfg(test)]
    pub fn shown(&self) -> (String, String) {
        let lines: Vec<_> = self.lines.iter().map(|(_, text)| text.as_str()).collect();
        (self.name.clone().unwrap_or_default(), lines.join("\n"))
    }

    fn title_look(&self) -> Look {
        if self.title_rows_max > 1 { Look::Strong } else { Look::Plain }
    }
}

/// One row after the mark, as styled pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row(pub(super) Vec<(Look, String)>);

impl Row {
    /// Creates a row of a value. All text from others is after the bar.
    fn barred(look: Look, text: String) -> Self {
        Self(vec![(Look::Dim, BAR.to_owned()), (look, text)])
    }

    /// Creates a row of a value below its name.
    fn deep(look: Look, text: String) -> Self {
        Self(vec![(Look::Dim, format!("{BAR}{SET_IN}")), (look, text)])
    }
}

impl Dialog {
    /// Returns the rows of the question, without the possible input.
    ///
    /// # Errors
    /// If the terminal is too small for the question.
    pub(super) fn body(&self, size: (usize, usize), extent: Extent) -> Result<Vec<Row>, String> {
        let too_small = || {
            let (rows, columns) = size;
            format!(
                "the terminal is too small for the question: it has {rows} rows of {columns} columns"
            )
        };
        let (room, width) = (self.room(size).ok_or_else(too_small)?, width(size));
        let (title, values) = self.values_as_rows(width, extent);
        let wanted = values.iter().map(|value| value.rows.len()).sum::<usize>();
        if size.1 < COLUMNS_MIN || room < wanted.min(VALUES_ROWS_MIN) {
            return Err(too_small());
        }
        let values = match extent {
            Extent::Fitted => fitted(values, room, width),
            Extent::Whole => {
                let details = self.details.iter().map(|value| Rows::of(value, width, extent));
                values.into_iter().chain(details).flat_map(|value| value.rows).collect()
            }
        };
        let below = self.rows_below(size, extent == Extent::Fitted && self.can_show_more(size));
        Ok(title.into_iter().chain(values).chain(below).collect())
    }

    /// Returns the screen without colours, for tests.
    #[cfg(test)]
    pub fn screen(&self, size: (usize, usize)) -> String {
        let rows = self.body(size, Extent::Fitted).unwrap_or_else(|reason| panic!("{reason}"));
        let prompt = Row(vec![(Look::Plain, PROMPT.to_owned())]);
        let rows = rows.iter().chain(std::iter::once(&prompt)).map(|row| {
            let text: String = row.0.iter().map(|(_, text)| text.as_str()).collect();
            format!("{} {text}", visible::QUESTION_MARK).trim_end().to_owned()
        });
        rows.collect::<Vec<_>>().join("\n")
    }

    /// Returns true if the question fits on the terminal with the most important lines of its
    /// values.
    pub fn finds_room(&self) -> bool {
        self.body(super::writer::size(), Extent::Fitted).is_ok()
    }

    /// Returns true if the question fits on the terminal. On a small terminal, all of its values
    /// must fit.
    pub fn fits(&self) -> bool {
        let size = super::writer::size();
        let has_room = size.0 >= ROOMY_ROWS_MIN || !self.can_show_more(size);
        has_room && self.finds_room()
    }

    /// Returns true if a screen of this size omits something in addition to the details.
    pub(super) fn can_show_more(&self, size: (usize, usize)) -> bool {
        let width = width(size);
        let rows = |extent| -> usize {
            let (_, values) = self.values_as_rows(width, extent);
            values.iter().map(|value| value.rows.len()).sum()
        };
        let room = self.room(size).unwrap_or_default();
        rows(Extent::Whole) > room.min(rows(Extent::Fitted))
    }

    /// Returns the rows of the title, and the values without the details.
    fn values_as_rows(&self, width: usize, extent: Extent) -> (Vec<Row>, Vec<Rows>) {
        let mut title = head_rows(Look::Strong, "", &self.title, width);
        let values = self.values.iter().map(|value| Rows::of(value, width, extent));
        if self.subject.is_empty() {
            return (title, values.collect());
        }
        let subject = visible::escape_lines(&self.subject).replace('\t', "    ");
        let fits = |row: &Row| {
            let taken: usize = row.0.iter().map(|(_, text)| columns_of(text)).sum();
            !subject.contains('\n') && taken + SUBJECT_GAP.len() + columns_of(&subject) <= width
        };
        if let [row] = title.as_mut_slice()
            && fits(row)
        {
            row.0.push((Look::Plain, format!("{SUBJECT_GAP}{subject}")));
            return (title, values.collect());
        }
        let subject = Rows::of(&Value::new(None, self.subject.clone()), width, extent);
        (title, std::iter::once(subject).chain(values).collect())
    }

    /// Returns the rows between the values and the typed line.
    pub(super) fn rows_below(&self, size: (usize, usize), has_more: bool) -> Vec<Row> {
        let width = width(size);
        let notes = self.notes.iter();
        let notes = notes.flat_map(|(look, note)| head_rows(*look, SET_IN, note, width));
        let texts = self.answers.iter().map(String::as_str);
        let mut answers: Vec<(String, &str)> =
            (1..).map(|number: usize| number.to_string()).zip(texts).collect();
        let mut prompt = self.prompt.clone();
        match self.manner {
            _ if !has_more => {}
            Manner::Keys if !answers.is_empty() => answers.push(("s".to_owned(), "Show all of it")),
            Manner::Keys => prompt = format!("s show all, {prompt}"),
            Manner::Words => prompt = format!("/show shows all; {prompt}"),
        }
        let answers = answers.iter().flat_map(|(key, text)| answer_rows(key, text, width));
        notes.chain(answers).chain(head_rows(Look::Plain, "", &prompt, width)).collect()
    }

    /// Returns the number of rows for the values, or `None` if even the other rows do not fit.
    fn room(&self, size: (usize, usize)) -> Option<usize> {
        let width = width(size);
        let title = head_rows(Look::Strong, "", &self.title, width).len();
        // One more row for the typed line, and one that stays free because Enter scrolls.
        let taken = title + self.rows_below(size, true).len() + 2;
        size.0.checked_sub(taken)
    }
}

/// Returns the rows of an answer. The first begins with the answer's key.
fn answer_rows(key: &str, text: &str, width: usize) -> Vec<Row> {
    let key = format!("{SET_IN}{key} ");
    let mut rows = broken_at_words(text, width - columns_of(&key));
    if rows.len() > ANSWER_ROWS_MAX {
        rows.truncate(ANSWER_ROWS_MAX);
        rows[ANSWER_ROWS_MAX - 1].pop();
        rows[ANSWER_ROWS_MAX - 1].push('…');
    }
    let further = " ".repeat(key.len());
    let begins = std::iter::once(key).chain(std::iter::repeat(further));
    let row = |(begin, text)| Row(vec![(Look::Strong, begin), (Look::Plain, text)]);
    begins.zip(rows).map(row).collect()
}

/// Breaks a message from jaato into rows, line by line.
pub(super) fn words_as_rows(words: &str, size: (usize, usize)) -> Vec<Row> {
    words.lines().flat_map(|line| head_rows(Look::Dim, "", line, width(size))).collect()
}

/// Returns the columns for the typed line.
pub(super) fn line_columns(size: (usize, usize)) -> usize {
    width(size) - PROMPT.len()
}

fn width((_, columns): (usize, usize)) -> usize {
    columns.max(COLUMNS_MIN) - MARGIN_COLUMNS
}

/// Breaks a line into rows. The first row begins with `begin`, and the others are indented.
fn head_rows(look: Look, begin: &str, line: &str, width: usize) -> Vec<Row> {
    let mut texts = broken_at_words(line, width - begin.len());
    if texts.len() > 1 {
        texts = broken_at_words(line, width - FURTHER.len());
    }
    let begins = std::iter::once(begin).chain(std::iter::repeat(FURTHER));
    let row = |(begin, text): (&str, _)| Row(vec![(Look::Plain, begin.to_owned()), (look, text)]);
    begins.zip(texts).take(HEAD_ROWS_MAX).map(row).collect()
}

#[cfg(test)]
mod tests;
