//! Finds the text of an edit where the file writes the same in another way: other blanks, quotes,
//! dashes, or letters that are composed otherwise. Pure.
//!
//! Both texts are folded to one form, step by step, and the steps end at the first in which the
//! text is found. Invariant: a fold keeps every line end, so that the lines of the wanted text are
//! those of the place.

use std::ops::Range;

use similar::{DiffOp, capture_diff_slices};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

use super::target::{self, Anchors, Missed};

/// Longest text of a file that is folded: a fold takes nine times its memory.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far two texts are made alike. Each step does what the steps before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Letters are composed; quotes, dashes and blanks are those of ASCII.
    Letters,
    /// Blanks at the ends of lines go.
    LineEnds,
    /// Blanks between words are one blank.
    Blanks,
    /// Blanks at the beginnings of lines go.
    Indents,
}

impl Step {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::Letters, Self::LineEnds, Self::Blanks, Self::Indents];
}

/// A place that the text of an edit means although it is written otherwise there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgiven {
    /// Where it is.
    pub range: Range<usize>,
    /// How both differ, in words.
    pub differences: String,
}

/// Looks for the one place of a text that is not in the file as it is written. All texts have LF
/// alone.
///
/// # Errors
/// There are several places, or none.
pub fn find(text: &str, old: &str, anchors: Anchors<'_>) -> Result<Forgiven, Missed> {
    let wanted = [anchors.prologue, old, anchors.epilogue].concat();
    if text.len() > TEXT_BYTES_MAX || wanted.trim().is_empty() {
        return Err(Missed::NotFound);
    }
    for step in Step::ALL {
        let folded = Folded::new(text, step);
        let of = |text: &str| Folded::new(text, step).text;
        let (old_folded, prologue, epilogue) =
            (of(old), of(anchors.prologue), of(anchors.epilogue));
        // A text of blanks alone is anywhere.
        if old_folded.trim().is_empty() && !old.is_empty() {
            continue;
        }
        let anchors = Anchors { prologue: &prologue, epilogue: &epilogue };
        let fits = |place: usize| folded.fits(place, &old_folded, old, step);
        match target::find_where(&folded.text, &old_folded, anchors, fits) {
            Ok(place) => {
                let range = folded.range(text, place, step);
                let differences = differences(&text[range.clone()], old);
                return Ok(Forgiven { range, differences });
            }
            Err(Missed::NotFound | Missed::NotBetween(_)) => {}
            // With more steps there are more places, not fewer.
            Err(missed) => return Err(missed),
        }
    }
    Err(Missed::NotFound)
}

/// Writes a line in the form of a step.
pub fn folded_line(line: &str, step: Step) -> String {
    Folded::new(line, step).text
}

/// Writes the new text for a place: what the edit does not change stays as the file has it, and
/// lines that are added are indented as the file is.
pub fn grafted(place: &str, old: &str, new: &str) -> String {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (there, old, new) = (lines(place), lines(old), lines(new));
    if there.len() != old.len() {
        return new.concat();
    }
    let indents = Indents::of(&there, &old);
    let mut text = String::new();
    for op in capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                text.push_str(&there[old_index..old_index + len].concat());
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } => {
                for line in &new[new_index..new_index + new_len] {
                    text.push_str(&indents.applied(line));
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                for number in 0..new_len {
                    let line = new[new_index + number];
                    let is_same_line = old_len == new_len;
                    let grafted = is_same_line
                        .then(|| {
                            line_grafted(there[old_index + number], old[old_index + number], line)
                        })
                        .flatten();
                    text.push_str(&grafted.unwrap_or_else(|| indents.applied(line)));
                }
            }
        }
    }
    text
}

/// Writes a line that changes in the middle: its beginning and its end stay as the file has them.
fn line_grafted(there: &str, old: &str, new: &str) -> Option<String> {
    let (folded, wanted) = (Folded::new(there, Step::Blanks), Folded::new(old, Step::Blanks));
    if folded.text != wanted.text {
        return None;
    }
    let same = |(a, b): &(char, char)| a == b;
    let ahead: usize =
        old.chars().zip(new.chars()).take_while(same).map(|it| it.0.len_utf8()).sum();
    let left = old.len().min(new.len()) - ahead;
    let mut behind = 0;
    for (a, b) in old.chars().rev().zip(new.chars().rev()) {
        if a != b || behind + a.len_utf8() > left {
            break;
        }
        behind += a.len_utf8();
    }
    let start = match wanted.count_before(ahead)? {
        0 => 0,
        count => folded.ends[count - 1] as usize,
    };
    let end = folded.starts.get(wanted.count_before(old.len() - behind)?);
    let end = end.map_or(there.len(), |end| *end as usize);
    let middle = &new[ahead..new.len() - behind];
    Some(format!("{}{middle}{}", &there[..start], there.get(end..)?))
}

/// How the indents of a wanted text are written in the file.
struct Indents<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Indents<'a> {
    fn of(there: &[&'a str], old: &[&'a str]) -> Self {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (there, old) in there.iter().zip(old) {
            let pair = (indent(old), indent(there));
            if !old.trim().is_empty() && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        // Of two lines that are indented alike and are not in the file, neither says anything.
        let is_sure = |pair: &(&str, &str)| pairs.iter().filter(|it| it.0 == pair.0).count() == 1;
        let mut sure: Vec<_> = pairs.iter().copied().filter(is_sure).collect();
        sure.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Self(sure)
    }

    /// Indents a line as the file does: by the longest indent that is known of both.
    fn applied(&self, line: &str) -> String {
        let own = indent(line);
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let known = self.0.iter().find(|(old, _)| own.starts_with(old));
        let Some((old, there)) = known else { return line.to_owned() };
        let deeper = self.deeper(&own[old.len()..]);
        format!("{there}{deeper}{}", &line[own.len()..])
    }

    /// Writes what a line is indented more: with tabs where the file has a tab for so many blanks.
    fn deeper(&self, more: &str) -> String {
        for (old, there) in &self.0 {
            let (tabs, blanks) = (there.len(), old.len());
            let is_tabs = tabs > 0 && there.bytes().all(|byte| byte == b'\t');
            let is_blanks = blanks > 0 && old.bytes().all(|byte| byte == b' ');
            if is_tabs && is_blanks && blanks % tabs == 0 {
                return more.replace(&" ".repeat(blanks / tabs), "\t");
            }
            let is_other_way = !old.is_empty()
                && old.bytes().all(|byte| byte == b'\t')
                && there.bytes().all(|byte| byte == b' ')
                && there.len() % old.len() == 0;
            if is_other_way {
                return more.replace('\t', &" ".repeat(there.len() / old.len()));
            }
        }
        more.to_owned()
    }
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A text in the form of a step, and where each of its bytes comes from.
struct Folded {
    text: String,
    /// Where the piece begins, and ends, from which each byte comes.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Folded {
    fn new(original: &str, step: Step) -> Self {
        let room = original.len();
        let (text, starts, ends) =
            (String::with_capacity(room), Vec::with_capacity(room), Vec::with_capacity(room));
        let mut folded = Self { text, starts, ends };
        let mut at = 0;
        while at < original.len() {
            let rest = &original[at..];
            let blanks = blanks(rest);
            // A blank under an accent is part of a letter.
            if blanks > 0 && step >= Step::LineEnds {
                folded.blanks(original, at..at + blanks, step);
                at += blanks;
                continue;
            }
            let length = letter(rest);
            let piece = &rest[..length];
            match piece.len() {
                1 => folded.push(piece.as_bytes()[0] as char, at..at + 1),
                _ => piece.nfc().for_each(|c| folded.push(in_ascii(c), at..at + length)),
            }
            at += length;
        }
        folded
    }

    fn blanks(&mut self, original: &str, range: Range<usize>, step: Step) {
        let is_at_end = original[range.end..].starts_with('\n') || range.end == original.len();
        let is_at_start = self.text.is_empty() || self.text.ends_with('\n');
        if is_at_end || is_at_start && step >= Step::Indents {
            return;
        }
        if step >= Step::Blanks {
            return self.push(' ', range);
        }
        for (place, c) in original[range.clone()].char_indices() {
            let start = range.start + place;
            self.push(in_ascii(c), start..start + c.len_utf8());
        }
    }

    fn push(&mut self, c: char, range: Range<usize>) {
        self.text.push(c);
        // Texts are short enough, see `TEXT_BYTES_MAX`.
        let (start, end) = (range.start as u32, range.end as u32);
        self.starts.resize(self.text.len(), start);
        self.ends.resize(self.text.len(), end);
    }

    /// How many bytes of this come from the bytes before a place; nothing where the place is in the
    /// middle of a piece.
    fn count_before(&self, place: usize) -> Option<usize> {
        let count = self.ends.partition_point(|end| *end as usize <= place);
        let is_between = self.starts.get(count).is_none_or(|start| *start as usize >= place);
        is_between.then_some(count)
    }

    /// Whether a place is one for a text from which blanks were taken at its beginning or end: then
    /// a line begins or ends there.
    fn fits(&self, place: usize, folded: &str, wanted: &str, step: Step) -> bool {
        let (before, after) = (&self.text[..place], &self.text[place + folded.len()..]);
        let had_indent = blanks(wanted) > 0 && step >= Step::Indents;
        let had_end = wanted.chars().next_back().is_some_and(is_blank) && step >= Step::LineEnds;
        (!had_indent || before.is_empty() || before.ends_with('\n'))
            && (!had_end || after.is_empty() || after.starts_with('\n'))
    }

    /// Where a place is in the original. One that begins a line begins before its indent, where
    /// indents do not count.
    fn range(&self, original: &str, place: Range<usize>, step: Step) -> Range<usize> {
        let start = self.starts.get(place.start).map_or(original.len(), |at| *at as usize);
        let end = match place.end.checked_sub(1).filter(|_| !place.is_empty()) {
            Some(last) => self.ends[last] as usize,
            None => start,
        };
        let line = original[..start].rfind('\n').map_or(0, |at| at + 1);
        let is_indent = original[line..start].chars().all(is_blank);
        let start = if step >= Step::Indents && is_indent { line } else { start };
        start..end
    }
}

/// Bytes of the blanks at the beginning of a text that no accent follows.
fn blanks(text: &str) -> usize {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if !is_blank(c) {
            if canonical_combining_class(c) != 0 {
                return text[..at].char_indices().next_back().map_or(0, |(last, _)| last);
            }
            break;
        }
        end = at + c.len_utf8();
    }
    end
}

/// Bytes of the letter at the beginning of a text, with its accents.
fn letter(text: &str) -> usize {
    let mut chars = text.char_indices();
    chars.next();
    let is_part = |c: char| {
        // Parts of Korean syllables compose although they have no class.
        !c.is_ascii() && (canonical_combining_class(c) != 0 || matches!(c, '\u{1160}'..='\u{11FF}'))
    };
    chars.find(|(_, c)| !is_part(*c)).map_or(text.len(), |(at, _)| at)
}

fn is_blank(c: char) -> bool {
    c == '\t' || in_ascii(c) == ' '
}

/// The character of ASCII for which people and models write another that looks like it.
pub fn in_ascii(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' => '"',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// Says in words how two texts differ that are alike but for blanks, quotes, dashes and how letters
/// are composed; empty where they differ otherwise or not at all.
pub fn differences(there: &str, wanted: &str) -> String {
    let fold = |text: &str| Folded::new(text, Step::Indents).text;
    if there == wanted || fold(there).trim_end() != fold(wanted).trim_end() {
        return String::new();
    }
    let count = |text: &str, is_it: fn(char) -> bool| -> Vec<char> {
        text.nfc().filter(|c| is_it(*c)).collect()
    };
    let differ = |is_it: fn(char) -> bool| count(there, is_it) != count(wanted, is_it);
    let lines = |part: fn(&str) -> &str| {
        let of = |text: &str| text.lines().map(|line| part(line).to_owned()).collect::<Vec<_>>();
        of(there) != of(wanted)
    };
    let is_composed = |text: &str| text.nfc().eq(text.chars());
    let mut told = Vec::new();
    if is_composed(there) != is_composed(wanted) {
        told.push(match is_composed(wanted) {
            true => "decomposed letters in the file (NFD), composed ones in yours (NFC)",
            false => "composed letters in the file (NFC), decomposed ones in yours (NFD)",
        });
    }
    if differ(|c| in_ascii(c) == '\'' || in_ascii(c) == '"') {
        told.push("straight or curly quotes");
    }
    if differ(|c| in_ascii(c) == '-') {
        told.push("hyphens or dashes");
    }
    if differ(|c| in_ascii(c) == ' ' && c != ' ') {
        told.push("no-break spaces");
    }
    let trimmed: fn(&str) -> &str = |line| line.trim_end_matches(is_blank);
    if lines(|line| &line[line.trim_end_matches(is_blank).len()..]) {
        told.push("whitespace at line ends");
    }
    if lines(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]) {
        told.push("tabs or spaces in the indent");
    }
    let inner = |text: &str| -> Vec<String> {
        let inner = |line: &str| {
            let line = trimmed(line).trim_start_matches(is_blank);
            line.chars()
                .map(|c| if c == '\t' { c } else { in_ascii(c) })
                .filter(|c| is_blank(*c))
                .collect()
        };
        text.lines().map(inner).collect()
    };
    if inner(there) != inner(wanted) {
        told.push("spaces between words");
    }
    told.join("; ")
}
