//! Finds the text of an edit if the file writes it differently: with other whitespace, quotes,
//! dashes, or composed letters. Pure.
//!
//! Both texts are folded step by step, until one step finds a match. Invariant: folding keeps every
//! line end, so the lines of the searched text correspond to those of the match.

use std::ops::Range;
use std::time::Duration;

use similar::{DiffOp, TextDiffConfig, capture_diff_slices};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::canonical_combining_class;

use super::target::{self, EditAnchors, MatchFailure};

/// The maximum length of a text that is folded, because folding takes nine times its memory.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The time limit for comparing the letters of a line. After that, its rest is replaced.
const PATIENCE: Duration = Duration::from_millis(250);

/// A folding step. Each step includes all steps before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldingStep {
    /// Composes letters and replaces quotes, dashes and blanks with ASCII.
    Letters,
    /// Removes blanks at the ends of lines.
    LineEnds,
    /// Collapses blanks between words.
    Blanks,
    /// Removes blanks at the beginnings of lines.
    Indents,
}

impl FoldingStep {
    /// All steps, in order.
    pub const ALL: [Self; 4] = [Self::Letters, Self::LineEnds, Self::Blanks, Self::Indents];
}

/// A match of an edit's text that the file writes differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TolerantMatch {
    /// The position of the match.
    pub range: Range<usize>,
    /// A description of the differences.
    pub differences: String,
}

/// Finds the only match of a text that the file writes differently. All texts use LF.
///
/// # Errors
/// An error if there are several matches, or none.
pub fn find_tolerant_match(
    text: &str,
    old: &str,
    anchors: EditAnchors<'_>,
) -> Result<TolerantMatch, MatchFailure> {
    let wanted = [anchors.prologue, old, anchors.epilogue].concat();
    if text.len() > TEXT_BYTES_MAX || wanted.trim().is_empty() {
        return Err(MatchFailure::NotFound);
    }
    for step in FoldingStep::ALL {
        let folded = FoldedText::new(text, step);
        let of = |text: &str| FoldedText::new(text, step).text;
        let (old_folded, prologue, epilogue) =
            (of(old), of(anchors.prologue), of(anchors.epilogue));
        // A text of only blanks would match anywhere.
        if old_folded.trim().is_empty() && !old.is_empty() {
            continue;
        }
        let anchors = EditAnchors { prologue: &prologue, epilogue: &epilogue };
        let fits = |place: usize| folded.is_valid_position(place, &old_folded, old, step);
        match target::find_single_match_where(&folded.text, &old_folded, anchors, fits) {
            Ok(place) => {
                let range = folded.original_range(text, place, step);
                let differences = describe_differences(&text[range.clone()], old);
                return Ok(TolerantMatch { range, differences });
            }
            Err(MatchFailure::NotFound | MatchFailure::NotBetween(_)) => {}
            // Later steps can only find more matches.
            Err(missed) => return Err(missed),
        }
    }
    Err(MatchFailure::NotFound)
}

/// Folds a line with a step.
pub fn fold_line(line: &str, step: FoldingStep) -> String {
    FoldedText::new(line, step).text
}

/// Builds the replacement for a match. Text that the edit does not change stays as in the file, and
/// added lines follow the file's indentation.
pub fn graft_replacement(place: &str, old: &str, new: &str) -> String {
    let lines = |text| -> Vec<&str> { str::split_inclusive(text, '\n').collect() };
    let (there, old, new) = (lines(place), lines(old), lines(new));
    if there.len() != old.len() {
        return new.concat();
    }
    let indents = IndentMapping::from_lines(&there, &old);
    let mut text = String::new();
    for op in capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        match op {
            DiffOp::Equal { old_index, len, .. } => {
                text.push_str(&there[old_index..old_index + len].concat());
            }
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } => {
                for line in &new[new_index..new_index + new_len] {
                    text.push_str(&indents.reindent_line(line));
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                for number in 0..new_len {
                    let line = new[new_index + number];
                    let is_same_line = old_len == new_len;
                    let grafted = is_same_line
                        .then(|| {
                            let old = old[old_index + number];
                            graft_line(there[old_index + number], old, line, &indents)
                        })
                        .flatten();
                    text.push_str(&grafted.unwrap_or_else(|| indents.reindent_line(line)));
                }
            }
        }
    }
    text
}

/// Merges a changed line. Letters and blanks that the edit keeps stay as in the file. Returns
/// `None` if the file's line does not correspond to the old one.
fn graft_line(there: &str, old: &str, new: &str, indents: &IndentMapping<'_>) -> Option<String> {
    let reindented = indents.reindent_line(new);
    let (there, old, new) = (LinePieces::new(there), LinePieces::new(old), LinePieces::new(new));
    let fold = |piece: &&str| fold_line(piece, FoldingStep::Blanks);
    if !there.body.iter().map(fold).eq(old.body.iter().map(fold)) {
        return None;
    }
    let mut line = match new.indent == old.indent {
        true => there.indent.to_owned(),
        false => LinePieces::new(&reindented).indent.to_owned(),
    };
    let mut is_end_kept = new.body.is_empty() && old.body.is_empty();
    let diff = TextDiffConfig::default().timeout(PATIENCE).diff_slices(&old.body, &new.body);
    for op in diff.ops() {
        is_end_kept = matches!(op, DiffOp::Equal { .. });
        let pieces = match is_end_kept {
            true => &there.body[op.old_range()],
            false => &new.body[op.new_range()],
        };
        line.extend(pieces.iter().copied());
    }
    line.push_str(if is_end_kept && new.end == old.end { there.end } else { new.end });
    Some(line)
}

/// A line in pieces that are compared as a whole.
struct LinePieces<'a> {
    indent: &'a str,
    /// Letters with their accents, and runs of blanks.
    body: Vec<&'a str>,
    /// The blanks and the line end after the last letter.
    end: &'a str,
}

impl<'a> LinePieces<'a> {
    fn new(line: &'a str) -> Self {
        let (indent, rest) = line.split_at(leading_blanks_length(line));
        let (mut rest, end) =
            rest.split_at(rest.trim_end_matches(|c| is_blank(c) || c == '\n').len());
        let mut body = Vec::new();
        while !rest.is_empty() {
            let length = match leading_blanks_length(rest) {
                0 => first_letter_length(rest),
                length => length,
            };
            let (piece, behind) = rest.split_at(length);
            body.push(piece);
            rest = behind;
        }
        Self { indent, body, end }
    }
}

/// Pairs of indents: in the searched text and in the file.
struct IndentMapping<'a>(Vec<(&'a str, &'a str)>);

impl<'a> IndentMapping<'a> {
    fn from_lines(there: &[&'a str], old: &[&'a str]) -> Self {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (there, old) in there.iter().zip(old) {
            let pair = (leading_indent(old), leading_indent(there));
            if !old.trim().is_empty() && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        // If two lines have the same indent in the searched text but not in the file, neither is
        // used.
        let is_sure = |pair: &(&str, &str)| pairs.iter().filter(|it| it.0 == pair.0).count() == 1;
        let mut sure: Vec<_> = pairs.iter().copied().filter(is_sure).collect();
        sure.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Self(sure)
    }

    /// Indents a line as the file does, based on the longest known indent.
    fn reindent_line(&self, line: &str) -> String {
        let own = leading_indent(line);
        if line.trim().is_empty() {
            return line.to_owned();
        }
        let known = self.0.iter().find(|(old, _)| own.starts_with(old));
        let Some((old, there)) = known else { return line.to_owned() };
        let deeper = self.map_indent(&own[old.len()..]);
        format!("{there}{deeper}{}", &line[own.len()..])
    }

    /// Converts additional indentation: to tabs if the file uses a tab for this many blanks.
    fn map_indent(&self, more: &str) -> String {
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

fn leading_indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// A folded text with the origin of each of its bytes.
struct FoldedText {
    text: String,
    /// The start and end of the original piece from which each byte comes.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl FoldedText {
    fn new(original: &str, step: FoldingStep) -> Self {
        let room = original.len();
        let (text, starts, ends) =
            (String::with_capacity(room), Vec::with_capacity(room), Vec::with_capacity(room));
        let mut folded = Self { text, starts, ends };
        let mut at = 0;
        while at < original.len() {
            let rest = &original[at..];
            let blanks = leading_blanks_length(rest);
            // A blank with a combining accent is part of a letter.
            if blanks > 0 && step >= FoldingStep::LineEnds {
                folded.push_folded_blanks(original, at..at + blanks, step);
                at += blanks;
                continue;
            }
            let length = first_letter_length(rest);
            let piece = &rest[..length];
            match piece.len() {
                1 => folded.push_char(piece.as_bytes()[0] as char, at..at + 1),
                _ => piece.nfc().for_each(|c| folded.push_char(to_ascii_char(c), at..at + length)),
            }
            at += length;
        }
        folded
    }

    fn push_folded_blanks(&mut self, original: &str, range: Range<usize>, step: FoldingStep) {
        let is_at_end = original[range.end..].starts_with('\n') || range.end == original.len();
        let is_at_start = self.text.is_empty() || self.text.ends_with('\n');
        if is_at_end || is_at_start && step >= FoldingStep::Indents {
            return;
        }
        if step >= FoldingStep::Blanks {
            return self.push_char(' ', range);
        }
        for (place, c) in original[range.clone()].char_indices() {
            let start = range.start + place;
            self.push_char(to_ascii_char(c), start..start + c.len_utf8());
        }
    }

    fn push_char(&mut self, c: char, range: Range<usize>) {
        self.text.push(c);
        // The casts fit because of `TEXT_BYTES_MAX`.
        let (start, end) = (range.start as u32, range.end as u32);
        self.starts.resize(self.text.len(), start);
        self.ends.resize(self.text.len(), end);
    }

    /// Returns true if a position is valid for a text that lost blanks at its start or end: a line
    /// must begin or end there.
    fn is_valid_position(
        &self,
        place: usize,
        folded: &str,
        wanted: &str,
        step: FoldingStep,
    ) -> bool {
        let (before, after) = (&self.text[..place], &self.text[place + folded.len()..]);
        let had_indent = leading_blanks_length(wanted) > 0 && step >= FoldingStep::Indents;
        let had_end =
            wanted.chars().next_back().is_some_and(is_blank) && step >= FoldingStep::LineEnds;
        (!had_indent || before.is_empty() || before.ends_with('\n'))
            && (!had_end || after.is_empty() || after.starts_with('\n'))
    }

    /// Returns the position in the original. If indents are ignored, a position at a line's first
    /// text moves before its indent.
    fn original_range(
        &self,
        original: &str,
        place: Range<usize>,
        step: FoldingStep,
    ) -> Range<usize> {
        let start = self.starts.get(place.start).map_or(original.len(), |at| *at as usize);
        let end = match place.end.checked_sub(1).filter(|_| !place.is_empty()) {
            Some(last) => self.ends[last] as usize,
            None => start,
        };
        let line = original[..start].rfind('\n').map_or(0, |at| at + 1);
        let is_indent = original[line..start].chars().all(is_blank);
        let start = if step >= FoldingStep::Indents && is_indent { line } else { start };
        start..end
    }
}

/// Returns the length of the leading blanks, without one that carries an accent.
fn leading_blanks_length(text: &str) -> usize {
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

/// Returns the length of the first letter with its accents.
fn first_letter_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    chars.next();
    let is_part = |c: char| {
        // The parts of Korean syllables combine although their combining class is 0.
        !c.is_ascii() && (canonical_combining_class(c) != 0 || matches!(c, '\u{1160}'..='\u{11FF}'))
    };
    chars.find(|(_, c)| !is_part(*c)).map_or(text.len(), |(at, _)| at)
}

fn is_blank(c: char) -> bool {
    c == '\t' || to_ascii_char(c) == ' '
}

/// Returns the ASCII character that looks like `c`.
pub fn to_ascii_char(c: char) -> char {
    match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' => '"',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        c => c,
    }
}

/// Describes how two texts differ, if they differ only in blanks, quotes, dashes or the composition
/// of letters. Otherwise returns an empty text.
pub fn describe_differences(there: &str, wanted: &str) -> String {
    let fold = |text: &str| FoldedText::new(text, FoldingStep::Indents).text;
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
    if differ(|c| to_ascii_char(c) == '\'' || to_ascii_char(c) == '"') {
        told.push("straight or curly quotes");
    }
    if differ(|c| to_ascii_char(c) == '-') {
        told.push("hyphens or dashes");
    }
    if differ(|c| to_ascii_char(c) == ' ' && c != ' ') {
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
                .map(|c| if c == '\t' { c } else { to_ascii_char(c) })
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
