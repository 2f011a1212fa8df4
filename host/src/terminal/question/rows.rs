//! The rows of a question: broken at the terminal's width, and as many as find room on it.

mod broken;
mod fit;

use jaato_runtime::visible;

use self::broken::{broken_at_words, columns_of};
use self::fit::{CUT_ROWS, Rows, fitted};
use crate::terminal::Look;

/// Columns of the mark before each row (its sign may take two), and one that stays free: some
/// terminals go on in the next line when the last is taken.
const MARGIN_COLUMNS: usize = 4;

/// Columns of the narrowest terminal that a question is asked on.
const COLUMNS_MIN: usize = 20;

/// Rows of a name that says what the lines below it are, at most: it has the path of a file.
const TITLE_ROWS_MAX: usize = 4;

/// Rows of what is asked in one line, and of a note, at most: names may be long.
const HEAD_ROWS_MAX: usize = 12;

/// Rows of one answer, at most: what it allows is not cut, unless that is endless.
const ANSWER_ROWS_MAX: usize = 6;

/// Rows that the values get on a terminal that is as small as can be.
const VALUES_ROWS_MIN: usize = CUT_ROWS + 1;

/// Rows of a terminal from which on there is room for more than what a question is about.
const ROOMY_ROWS_MIN: usize = 20;

/// Begins the line that is typed.
pub(super) const PROMPT: &str = "> ";

/// Sets in what is below the title.
const SET_IN: &str = "  ";

/// Sets in the further rows of a long title or note, so that none of them looks like an answer or
/// like the row in which one is typed.
const FURTHER: &str = "    ";

/// Is between the title and what it is about.
const SUBJECT_GAP: &str = "  ";

/// Begins each line of a value that has several.
const BAR: &str = "  │ ";
const BAR_COLUMNS: usize = 5;

/// How much of a question is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as fits the screen.
    Fitted,
    /// All of it, however far that scrolls.
    Whole,
}

/// A question as data.
#[derive(Debug, Clone)]
pub struct Dialog {
    /// What is asked.
    pub title: String,
    /// What it is about, in one value: next to the title if it fits there, else below it.
    pub subject: String,
    /// What else it is about.
    pub values: Vec<Value>,
    /// What is shown only with all of it.
    pub details: Vec<Value>,
    /// What the user should know, a line each.
    pub notes: Vec<(Look, String)>,
    /// The answers, numbered from 1. All of them find room.
    pub answers: Vec<String>,
    /// What can be typed; empty if the answers say it.
    pub prompt: String,
    /// What the line that is typed begins with.
    pub begun: String,
    /// How it is answered.
    pub manner: Manner,
}

impl Dialog {
    /// Creates a question about one of several things.
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
    /// By single keys: `s` shows all of it, and Ctrl-C is the signal that it always is.
    Keys,
    /// By any words: `/show` shows all of it, and Ctrl-C ends the line, as its last character.
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

/// Something that a question is about.
#[derive(Debug, Clone)]
pub struct Value {
    /// Its name; a line of a list has none.
    name: Option<String>,
    /// What it is.
    lines: Vec<(Look, String)>,
    /// What matters most of it, where there is not room for all; none for the same.
    core: Vec<(Look, String)>,
    /// Whether other values have more need of the room.
    is_brief: bool,
    /// Rows that its name may take.
    title_rows_max: usize,
}

impl Value {
    /// Makes one of a text.
    pub fn new(name: Option<String>, text: String) -> Self {
        let lines = vec![(Look::Plain, text)];
        Self { name, lines, core: Vec::new(), is_brief: false, title_rows_max: 1 }
    }

    /// Makes one of lines that look different, whose name says what they are. Where there is not
    /// room for all of them, those of the core are shown.
    pub fn of_lines(
        name: Option<String>,
        lines: Vec<(Look, String)>,
        core: Vec<(Look, String)>,
    ) -> Self {
        Self { name, lines, core, is_brief: false, title_rows_max: TITLE_ROWS_MAX }
    }

    /// Leaves the room to other values, where there is not enough for all.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self { is_brief: true, ..self }
    }

    /// Returns its name and its lines, for tests.
    #[cfg(test)]
    pub fn shown(&self) -> (String, String) {
        let lines: Vec<_> = self.lines.iter().map(|(_, text)| text.as_str()).collect();
        (self.name.clone().unwrap_or_default(), lines.join("\n"))
    }

    fn title_look(&self) -> Look {
        if self.title_rows_max > 1 { Look::Strong } else { Look::Plain }
    }
}

/// One row after the mark, in pieces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row(pub(super) Vec<(Look, String)>);

impl Row {
    /// Makes a row of a value. All that others wrote is after the bar.
    fn barred(look: Look, text: String) -> Self {
        Self(vec![(Look::Dim, BAR.to_owned()), (look, text)])
    }

    /// Makes a row of a value below its name.
    fn deep(look: Look, text: String) -> Self {
        Self(vec![(Look::Dim, format!("{BAR}{SET_IN}")), (look, text)])
    }
}

impl Dialog {
    /// Returns the rows of the question, without what can be typed.
    ///
    /// # Errors
    /// Says why the terminal has no room for it.
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

    /// Returns true if it finds room on the terminal, with what matters most of its values.
    pub fn finds_room(&self) -> bool {
        self.body(super::writer::size(), Extent::Fitted).is_ok()
    }

    /// Returns true if it finds room on the terminal, with all of its values if that is small.
    pub fn fits(&self) -> bool {
        let size = super::writer::size();
        let has_room = size.0 >= ROOMY_ROWS_MIN || !self.can_show_more(size);
        has_room && self.finds_room()
    }

    /// Returns true if something of it is left out on a screen, besides the details.
    pub(super) fn can_show_more(&self, size: (usize, usize)) -> bool {
        let width = width(size);
        let rows = |extent| -> usize {
            let (_, values) = self.values_as_rows(width, extent);
            values.iter().map(|value| value.rows.len()).sum()
        };
        let room = self.room(size).unwrap_or_default();
        rows(Extent::Whole) > room.min(rows(Extent::Fitted))
    }

    /// Returns the rows of the title, and what it is about without the details.
    fn values_as_rows(&self, width: usize, extent: Extent) -> (Vec<Row>, Vec<Rows>) {
        let mut title = head_rows(Look::Strong, "", &self.title, width);
        let values = self.values.iter().map(|value| Rows::of(value, width, extent));
        if self.subject.is_empty() {
            return (title, values.collect());
        }
        let subject = visible::exact(&self.subject).replace('\t', "    ");
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

    /// Returns the rows between the values and the line that is typed.
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

    /// Counts the rows that are left for the values; none if not even the rest has room.
    fn room(&self, size: (usize, usize)) -> Option<usize> {
        let width = width(size);
        let title = head_rows(Look::Strong, "", &self.title, width).len();
        // One row more for the line that is typed, and one stays free: Enter scrolls.
        let taken = title + self.rows_below(size, true).len() + 2;
        size.0.checked_sub(taken)
    }
}

/// Returns the rows of an answer, which begins with its key.
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

/// Breaks words of jaato's own into rows, line by line.
pub(super) fn words_as_rows(words: &str, size: (usize, usize)) -> Vec<Row> {
    words.lines().flat_map(|line| head_rows(Look::Dim, "", line, width(size))).collect()
}

/// Returns the columns for the line that is typed.
pub(super) fn line_columns(size: (usize, usize)) -> usize {
    width(size) - PROMPT.len()
}

fn width((_, columns): (usize, usize)) -> usize {
    columns.max(COLUMNS_MIN) - MARGIN_COLUMNS
}

/// Breaks a line into rows, of which the first begins with a text and the others are set in.
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
