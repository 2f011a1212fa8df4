//! Rows of styled words: how a line is broken, and how it is written to the terminal.

use console::{Style, measure_text_width};
use jaato_runtime::visible;
use unicode_segmentation::UnicodeSegmentation as _;

/// A piece of a line that is not wrapped.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub text: String,
    pub style: Style,
    /// The offset in the source at which the word begins.
    pub at: usize,
    /// The offset in the source at which the word ends.
    pub end: usize,
    /// Spaces before the word.
    pub blanks: usize,
    /// Whether a row may begin with the word.
    pub may_begin: bool,
}

impl Word {
    fn width(&self) -> usize {
        measure_text_width(&self.text)
    }
}

/// A row for the terminal.
#[derive(Debug)]
pub(super) struct Row {
    /// The text before the words: a bullet, an indentation or a bar.
    pub before: String,
    pub words: Vec<Word>,
    /// The offset in the source at which the row ends.
    pub end: usize,
}

impl Row {
    /// Returns the words that begin at this offset of the source or later.
    pub(super) fn written(&self, from: usize) -> String {
        let words = self.words.iter().filter(|word| word.at >= from);
        let row = self.before.clone() + &styled(words);
        row.trim_end().to_owned() + "\n"
    }
}

/// Returns the words in sequence. Neighbours with the same style share it.
pub(super) fn styled<'a>(words: impl Iterator<Item = &'a Word>) -> String {
    let (mut text, mut run) = (String::new(), None::<(&Style, String)>);
    for word in words {
        let blanks = " ".repeat(word.blanks);
        run = match run {
            Some((style, run)) if *style == word.style => Some((style, run + &blanks + &word.text)),
            Some((style, run)) => {
                text += &format!("{}{blanks}", style.apply_to(run));
                Some((&word.style, word.text.clone()))
            }
            None => Some((&word.style, word.text.clone())),
        };
    }
    let last = run.map(|(style, run)| style.apply_to(run).to_string());
    text + &last.unwrap_or_default()
}

/// Returns the columns that words take in one row.
pub(super) fn width(words: &[Word]) -> usize {
    let blanks: usize = words.iter().skip(1).map(|word| word.blanks).sum();
    blanks + words.iter().map(Word::width).sum::<usize>()
}

/// Appends a text to a line as visible words.
pub(super) fn push_words(line: &mut Vec<Word>, text: &str, style: &Style, place: Place) {
    let (first, mut blanks, mut before) = (line.len(), 0, None);
    for (index, cluster) in text.grapheme_indices(true) {
        // Combining marks may follow a space in its cluster.
        let letters = cluster.trim_start_matches([' ', '\t', '\n', '\r']);
        if letters.len() < cluster.len() {
            (blanks, before) = (blanks + 1, None);
        }
        if letters.is_empty() {
            continue;
        }
        let (at, end) = place.of(index + cluster.len() - letters.len(), letters.len());
        let columns = measure_text_width(letters);
        // A script without spaces may be broken between any two clusters.
        let breaks = columns > 0 && before.is_some_and(|before| before > 1 || columns > 1);
        match line.last_mut() {
            Some(word) if before.is_some() && !breaks => {
                word.text.push_str(letters);
                word.end = end;
            }
            last => {
                let may_begin = blanks > 0 || breaks || last.is_none();
                let (text, style) = (letters.to_owned(), style.clone());
                line.push(Word { text, style, at, end, blanks, may_begin });
            }
        }
        (blanks, before) = (0, Some(columns));
    }
    for word in &mut line[first..] {
        word.text = visible::visible_text(&word.text).into_owned();
    }
    if blanks > 0 {
        // Spaces at the end of a text precede the next text.
        let (at, end) = place.of(text.len(), 0);
        let text = String::new();
        line.push(Word { text, style: Style::new(), at, end, blanks, may_begin: true });
    }
}

/// The place of a text in the source.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// The text is in the source and begins at this offset.
    From(usize),
    /// The text was made from this piece of the source.
    Within(usize, usize),
}

impl Place {
    fn of(self, index: usize, length: usize) -> (usize, usize) {
        match self {
            Self::From(begin) => (begin + index, begin + index + length),
            Self::Within(begin, end) => (begin, end),
        }
    }
}

/// Breaks a line into rows of at most `columns` columns. A longer piece without a break stays
/// whole, so that the user can copy it, and the terminal breaks it.
pub(super) fn broken(line: Vec<Word>, columns: usize) -> Vec<Vec<Word>> {
    let (mut rows, mut row, mut taken) = (Vec::new(), Vec::new(), 0);
    let mut words = line.into_iter().peekable();
    while let Some(word) = words.next() {
        let blanks = word.blanks;
        let mut chunk = vec![word];
        while let Some(next) = words.next_if(|next| !next.may_begin) {
            chunk.push(next);
        }
        let wide = width(&chunk);
        if taken > 0 && wide > 0 && taken + blanks + wide > columns {
            rows.push(std::mem::take(&mut row));
            taken = 0;
        }
        if taken > 0 {
            taken += blanks;
        }
        taken += wide;
        row.extend(chunk);
    }
    rows.push(row);
    rows
}

/// Cuts words that are longer than `columns` columns.
pub(super) fn cut(line: Vec<Word>, columns: usize) -> Vec<Word> {
    let mut words = Vec::new();
    for word in line {
        if word.width() <= columns {
            words.push(word);
            continue;
        }
        let (mut piece, mut blanks, mut may_begin) = (String::new(), word.blanks, word.may_begin);
        for cluster in word.text.graphemes(true) {
            if !piece.is_empty() && measure_text_width(&format!("{piece}{cluster}")) > columns {
                let text = std::mem::take(&mut piece);
                words.push(Word { text, blanks, may_begin, ..word.clone() });
                (blanks, may_begin) = (0, true);
            }
            piece.push_str(cluster);
        }
        words.push(Word { text: piece, blanks, may_begin, ..word });
    }
    words
}
