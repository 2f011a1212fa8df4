//! The rows of a question: broken at the terminal's width, and as many as find room on it.

use jaato_runtime::visible;

use crate::terminal::Look;

/// Columns of the mark before each row (its sign may take two), and one that stays free: some
/// terminals go on in the next line when the last is taken.
const MARGIN_COLUMNS: usize = 4;

/// Columns of the narrowest terminal that a question is asked on.
const COLUMNS_MIN: usize = 20;

/// Rows of the shortest value that is cut: its name, its beginning, what is left out, its end.
const CUT_ROWS: usize = 4;

/// Rows of a name that says what the lines below it are, at most: it has the path of a file.
const TITLE_ROWS_MAX: usize = 4;

/// Rows of what is asked in one line, and of why, at most: names may be long.
const HEAD_ROWS_MAX: usize = 12;

/// Rows of one choice, at most.
const CHOICE_ROWS_MAX: usize = 2;

/// Rows that the values get on a terminal that is as small as can be.
const VALUES_ROWS_MIN: usize = CUT_ROWS + 1;

/// Rows of a terminal from which on there is room for more than what a question is about.
const ROOMY_ROWS_MIN: usize = 20;

/// A mark, for what it takes.
const LONGEST_MARK: &str = "100 mamama";

/// Stands before each line of a value that has several.
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
pub struct Question {
    /// What is asked.
    pub head: String,
    /// What it is about.
    pub values: Vec<Value>,
    /// Why it is asked; empty where the head says it.
    pub why: String,
    /// What an answer can name by its number, from 1. All of them find room.
    pub choices: Vec<String>,
    /// What can be answered.
    pub prompt: String,
    /// How.
    pub manner: Manner,
}

/// How a question is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// By letters: `s` shows all of it, and Ctrl-C is the signal that it always is.
    Letters,
    /// By any words: `/show` shows all of it, and Ctrl-C ends the line, as its last sign.
    Words,
}

impl Manner {
    /// Returns the words that show all of a question, where something of it is left out.
    pub(super) fn show_words(self) -> &'static [&'static str] {
        match self {
            Self::Letters => &["s", "show"],
            Self::Words => &["/show"],
        }
    }

    /// Puts the word that shows all among those that can be answered.
    fn with_show_word(self, prompt: &str) -> String {
        match self {
            Self::Letters => prompt.replacen("[y]es", "[s]how all, [y]es", 1),
            Self::Words => format!("/show shows all; {prompt}"),
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
    pub fn of_lines(name: String, lines: Vec<(Look, String)>, core: Vec<(Look, String)>) -> Self {
        Self { name: Some(name), lines, core, is_brief: false, title_rows_max: TITLE_ROWS_MAX }
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

/// One row behind the mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// What stands before the text.
    pub before: &'static str,
    /// The text.
    pub text: String,
    /// How the text looks.
    pub look: Look,
}

impl Row {
    fn plain(text: String) -> Self {
        Self { before: "", text, look: Look::Plain }
    }

    fn len(&self) -> usize {
        self.text.len()
    }
}

/// A value as rows.
struct Rows {
    rows: Vec<Row>,
    /// Rows of the core behind the name; none for the same.
    core: Vec<Row>,
    /// The first rows are the name alone, which is never left out.
    title_rows: usize,
    is_brief: bool,
}

impl Question {
    /// Returns the rows of what is asked.
    ///
    /// # Errors
    /// Says why the terminal has no room for it.
    pub(super) fn body(
        &self,
        mark: &str,
        size: (usize, usize),
        extent: Extent,
    ) -> Result<Vec<Row>, String> {
        let too_small = || {
            let (rows, columns) = size;
            format!(
                "the terminal is too small for the question: it has {rows} rows of {columns} columns"
            )
        };
        let (room, width) = (self.room(mark, size), width(size));
        let rows_of = |value| Rows::of(value, width, extent);
        let values: Vec<Rows> = self.values.iter().map(rows_of).collect();
        let wanted = values.iter().map(|value| value.rows.len()).sum::<usize>();
        if size.1 < COLUMNS_MIN || room < wanted.min(VALUES_ROWS_MIN) {
            return Err(too_small());
        }
        let head = head_rows(&format!("question {mark}: {}", self.head), width);
        let why = head_rows(&self.why, width);
        let values = match extent {
            Extent::Fitted => fitted(values, room, width),
            Extent::Whole => values.into_iter().flat_map(|value| value.rows).collect(),
        };
        let choices = self.choice_rows(width);
        Ok(head.into_iter().chain(values).chain(why).chain(choices).collect())
    }

    /// Tells whether it finds room on the terminal, with what matters most of its values.
    pub fn finds_room(&self) -> bool {
        self.body(LONGEST_MARK, super::writer::size(), Extent::Fitted).is_ok()
    }

    /// Tells whether it finds room on the terminal, with all of its values where that is small.
    pub fn fits(&self) -> bool {
        let size = super::writer::size();
        let has_room = size.0 >= ROOMY_ROWS_MIN || !self.can_show_more(LONGEST_MARK, size);
        has_room && self.finds_room()
    }

    /// Returns the rows of what can be answered; the answer stands behind the last.
    pub(super) fn prompt_rows(&self, mark: &str, size: (usize, usize)) -> Vec<Row> {
        self.prompt_rows_with(mark, size, self.can_show_more(mark, size))
    }

    fn prompt_rows_with(&self, mark: &str, size: (usize, usize), more: bool) -> Vec<Row> {
        let prompt = match more {
            true => self.manner.with_show_word(&self.prompt),
            false => self.prompt.clone(),
        };
        // The answer begins in the row of the last word.
        let mut rows = broken_at_words(&format!("{mark}: {prompt}"), width(size) - 1);
        if let Some(last) = rows.last_mut() {
            last.push(' ');
        }
        rows.into_iter().map(Row::plain).collect()
    }

    /// Tells whether something of it is left out on a screen.
    pub(super) fn can_show_more(&self, mark: &str, size: (usize, usize)) -> bool {
        let width = width(size);
        let rows = |extent| -> usize {
            self.values.iter().map(|value| Rows::of(value, width, extent).rows.len()).sum()
        };
        rows(Extent::Whole) > self.room(mark, size).min(rows(Extent::Fitted))
    }

    /// Returns the rows of the choices. A long one shows how it begins.
    fn choice_rows(&self, width: usize) -> Vec<Row> {
        let rows = self.choices.iter().zip(1..).flat_map(|(choice, number)| {
            let before = format!("{number:>3}  ");
            let text = visible::exact(choice).replace(['\n', '\t'], " ");
            let mut broken = broken(&text, width - columns_of(&before));
            let is_cut = broken.len() > CHOICE_ROWS_MAX;
            broken.truncate(CHOICE_ROWS_MAX);
            if let Some(last) = broken.last_mut().filter(|_| is_cut) {
                last.pop();
                last.push('…');
            }
            let begins = std::iter::once(before).chain(std::iter::repeat("     ".to_owned()));
            begins.zip(broken).map(|(begin, text)| Row::plain(begin + &text)).collect::<Vec<_>>()
        });
        rows.collect()
    }

    /// Counts the rows that are left for the values.
    fn room(&self, mark: &str, size: (usize, usize)) -> usize {
        let width = width(size);
        let head = head_rows(&format!("question {mark}: {}", self.head), width).len();
        let prompt = self.prompt_rows_with(mark, size, true).len();
        let said = head_rows(&self.why, width).len() + self.choice_rows(width).len();
        // One row more stays free: the person's Enter scrolls.
        size.0.saturating_sub(head + said + prompt + 1)
    }
}

/// Breaks words of jaato's own into rows.
pub(super) fn words_as_rows(words: &str, size: (usize, usize)) -> Vec<Row> {
    head_rows(words, width(size))
}

fn width((_, columns): (usize, usize)) -> usize {
    columns.max(COLUMNS_MIN) - MARGIN_COLUMNS
}

fn head_rows(line: &str, width: usize) -> Vec<Row> {
    let rows = broken_at_words(line, width).into_iter().take(HEAD_ROWS_MAX);
    rows.map(Row::plain).collect()
}

impl Rows {
    fn of(value: &Value, width: usize, extent: Extent) -> Self {
        let lines = visible_lines(&value.lines);
        let (core, is_brief) = (Vec::new(), value.is_brief);
        let Some(name) = &value.name else {
            return Self { rows: rows_of(&lines, width - 2, "  "), core, title_rows: 0, is_brief };
        };
        let title = format!("  {}: ", visible::name(name));
        if let [(Look::Plain, text)] = &lines[..]
            && !text.contains('\n')
            && columns_of(&title) + columns_of(text) <= width
        {
            return Self { rows: vec![Row::plain(title + text)], core, title_rows: 0, is_brief };
        }
        let mut title = broken(title.trim_end(), width);
        if extent == Extent::Fitted {
            cut_title(&mut title, value.title_rows_max, width);
        }
        let look = value.title_look();
        let title = title.into_iter();
        let mut rows: Vec<_> = title.map(|text| Row { before: "", text, look }).collect();
        let title_rows = rows.len();
        rows.extend(rows_of(&lines, width - BAR_COLUMNS, BAR));
        let core = rows_of(&visible_lines(&value.core), width - BAR_COLUMNS, BAR);
        Self { rows, core, title_rows, is_brief }
    }

    /// Leaves out what does not belong to the core.
    fn shortened(mut self) -> Self {
        if !self.core.is_empty() {
            self.rows.truncate(self.title_rows);
            self.rows.append(&mut self.core);
        }
        self
    }

    fn rows_min(&self) -> usize {
        self.rows.len().min(CUT_ROWS - 1 + self.title_rows.max(1))
    }

    /// Returns at most so many rows: the beginning, a row that counts what is left out, and the
    /// end.
    fn cut(self, rows_max: usize, width: usize) -> Vec<Row> {
        if self.rows.len() <= rows_max {
            return self.rows;
        }
        let shown = rows_max.saturating_sub(self.title_rows + 1);
        let (first, last) = (self.title_rows + shown.div_ceil(2), self.rows.len() - shown / 2);
        let left_out = &self.rows[first..last];
        let note = left_out_note(left_out, width);
        let mut rows = self.rows[..first].to_vec();
        rows.push(note);
        rows.extend_from_slice(&self.rows[last..]);
        rows
    }
}

/// Leaves out the middle of a title that is too long: a path ends with what it names.
fn cut_title(title: &mut Vec<String>, rows_max: usize, width: usize) {
    if title.len() <= rows_max {
        return;
    }
    let end = title.split_off(title.len() - 2).concat();
    title.truncate(rows_max.saturating_sub(1).max(1));
    if rows_max < 2 {
        // In a title of one row the beginning says what it is.
        title[0].pop();
        return title[0].push('…');
    }
    let mut end = end.as_str();
    while columns_of(end) >= width {
        end = &end[end.chars().next().map_or(1, char::len_utf8)..];
    }
    title.push(format!("…{end}"));
}

fn visible_lines(lines: &[(Look, String)]) -> Vec<(Look, String)> {
    let visible = |text: &str| visible::exact(text).replace('\t', "    ");
    lines.iter().map(|(look, text)| (*look, visible(text))).collect()
}

fn rows_of(lines: &[(Look, String)], width: usize, before: &'static str) -> Vec<Row> {
    let rows = lines.iter().flat_map(|(look, text)| {
        broken(text, width).into_iter().map(|text| Row { before, text, look: *look })
    });
    rows.collect()
}

/// Says how much is left out, in as many words as the row takes.
fn left_out_note(rows: &[Row], width: usize) -> Row {
    let bytes: usize = rows.iter().map(Row::len).sum();
    let count = rows.len();
    let short = format!("… {count} lines");
    let long =
        [format!("  … {count} more lines, {bytes} bytes …"), format!("… {count} more lines")];
    Row::plain(long.into_iter().find(|note| columns_of(note) <= width).unwrap_or(short))
}

/// Fits values into so many rows: each as much as there is room for, the first ones if not all find
/// any.
fn fitted(values: Vec<Rows>, room: usize, width: usize) -> Vec<Row> {
    let fit = |values: &[Rows]| values.iter().map(|value| value.rows.len()).sum::<usize>() <= room;
    let mut values = values;
    if !fit(&values) {
        values = values.into_iter().map(Rows::shortened).collect();
    }
    if fit(&values) {
        return values.into_iter().flat_map(|value| value.rows).collect();
    }
    let mut taken = 0;
    let fits = |value: &&Rows| {
        taken += value.rows_min();
        // One row counts those that do not.
        taken < room
    };
    let count = values.iter().take_while(fits).count();
    let rest: Vec<Row> = values.split_off(count).into_iter().flat_map(|it| it.rows).collect();
    let least = values.iter().map(Rows::rows_min).sum::<usize>();
    let given = shares(&values, room - least - usize::from(!rest.is_empty()));
    let mut rows = Vec::new();
    for (value, more) in values.into_iter().zip(given) {
        let rows_max = value.rows_min() + more;
        rows.extend(value.cut(rows_max, width));
    }
    if !rest.is_empty() {
        rows.push(left_out_note(&rest, width));
    }
    rows
}

/// Shares spare rows out, evenly among those that need more; brief values get what others leave.
fn shares(values: &[Rows], spare: usize) -> Vec<usize> {
    let need = |value: &Rows| value.rows.len() - value.rows_min();
    let mut order: Vec<usize> = (0..values.len()).collect();
    // Who needs least comes first: what it does not take is for the others.
    order.sort_by_key(|&number| (values[number].is_brief, need(&values[number])));
    let mut given = vec![0; values.len()];
    let mut spare = spare;
    for is_brief in [false, true] {
        let of_kind = order.iter().filter(|number| values[**number].is_brief == is_brief);
        let numbers: Vec<usize> = of_kind.copied().collect();
        for (at, &number) in numbers.iter().enumerate() {
            given[number] = need(&values[number]).min(spare / (numbers.len() - at));
            spare -= given[number];
        }
    }
    given
}

/// Columns that a text takes at most: what is not ASCII may take two, whatever the tables of a
/// terminal say.
fn columns_of(text: &str) -> usize {
    text.chars().map(columns_of_sign).sum()
}

fn columns_of_sign(sign: char) -> usize {
    if sign.is_ascii() { 1 } else { 2 }
}

/// Breaks a text at its line ends and wherever a row is full.
fn broken(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut taken) = (String::new(), 0);
        for sign in line.chars() {
            if taken + columns_of_sign(sign) > width {
                rows.push(std::mem::take(&mut row));
                taken = 0;
            }
            row.push(sign);
            taken += columns_of_sign(sign);
        }
        rows.push(row);
    }
    rows
}

/// Breaks one line at blanks, and a word that is too long where the row is full.
fn broken_at_words(line: &str, width: usize) -> Vec<String> {
    let line = visible::name(line);
    let (mut rows, mut row) = (Vec::new(), String::new());
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!row.is_empty());
        if columns_of(&row) + gap + columns_of(word) > width && !row.is_empty() {
            rows.push(std::mem::take(&mut row));
        }
        if !row.is_empty() {
            row.push(' ');
        }
        row.push_str(word);
        while columns_of(&row) > width {
            let mut parts = broken(&row, width);
            row = parts.pop().unwrap_or_default();
            rows.extend(parts);
        }
    }
    if !row.is_empty() {
        rows.push(row);
    }
    rows
}

#[cfg(test)]
mod tests;
