//! Finds the places of a patch's chunks, as `codex` does: each chunk after the previous one, first
//! by its `@@` headers and then by its own lines. Pure.
//!
//! Lines match exactly or in a folded form ([`super::forgive`]). Line numbers (`@@ -7,1 +7,1 @@`)
//! choose the nearest of several exact matches, because models miscount.

use std::ops::Range;

use super::loose_match::{FoldingStep, describe_differences, fold_line, graft_replacement};
use super::nearest::find_nearest_lines;
use super::patch::PatchChunk;
use super::quote_start;

/// The maximum number of lines that a note or an error names.
const LINES_NAMED_MAX: usize = 10;

/// The replacement of a chunk.
pub struct ChunkEdit {
    /// The indices of the replaced lines. Empty if lines are only added.
    pub lines: Range<usize>,
    /// The new lines.
    pub new: String,
    /// The differences between the file's text and the chunk's, or an empty text.
    pub differences: String,
    /// The indices of other first lines that match.
    pub others: Vec<usize>,
}

/// The reason why a chunk has no match.
pub struct ChunkMismatch {
    /// The reason.
    pub what: String,
    /// A hint for the model.
    pub hint: Option<String>,
}

/// Which of several exact matches is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchPreference {
    First,
    NearestTo(usize),
    AtEnd,
}

impl MatchPreference {
    fn for_chunk(chunk: &PatchChunk) -> Self {
        match chunk.line {
            _ if chunk.is_at_end => Self::AtEnd,
            Some(line) => Self::NearestTo(line),
            None => Self::First,
        }
    }

    /// Chooses one of the matches. The others are returned too, unless the number says exactly
    /// this one.
    fn choose_match(self, mut matches: Vec<usize>) -> Option<LineMatch> {
        let near = match self {
            Self::NearestTo(line) => line,
            Self::First | Self::AtEnd => 0,
        };
        let place = (0..matches.len()).min_by_key(|place| matches[*place].abs_diff(near))?;
        let line = matches.remove(place);
        let is_sure = self == Self::NearestTo(line) || self == Self::AtEnd;
        Some(LineMatch { line, others: if is_sure { Vec::new() } else { matches } })
    }
}

/// The index of the first matching line, and of the other lines that match.
struct LineMatch {
    line: usize,
    others: Vec<usize>,
}

/// The reason why lines have no match.
enum LineMismatch {
    /// These places are similar.
    Similar(Vec<usize>),
    /// The lines are before the place where the search starts.
    Before(usize),
    Missing,
}

/// Finds chunks in a text, each after the previous one.
pub struct ChunkFinder<'a> {
    text: &'a str,
    /// The lines without their ends, and their start positions.
    lines: Vec<&'a str>,
    starts: Vec<usize>,
    /// The lines folded by each step.
    folded: Vec<Vec<String>>,
    /// The line after the last match, and the name of that match.
    next: usize,
    previous: &'static str,
}

impl<'a> ChunkFinder<'a> {
    /// Creates a finder that starts at the first line.
    pub fn new(text: &'a str) -> Self {
        let (mut lines, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        for line in text.split_inclusive('\n') {
            lines.push(line.strip_suffix('\n').unwrap_or(line));
            starts.push(at);
            at += line.len();
        }
        Self { text, lines, starts, folded: Vec::new(), next: 0, previous: "" }
    }

    /// Finds a chunk.
    pub fn locate_chunk(&mut self, chunk: &PatchChunk) -> Result<ChunkEdit, ChunkMismatch> {
        self.previous = "the previous chunk (chunks must be in file order)";
        let header = self.find_headers(&chunk.headers)?;
        if chunk.old.is_empty() {
            return self.plan_insertion(chunk, header);
        }
        let header_line = header.as_ref().map(|header| header.line);
        let (found, old, new) = self.find_old_lines(chunk, header_line)?;
        self.next = found.line + old.len();
        // A header that occurs once chooses the place.
        let is_sure = header.is_some_and(|header| header.others.is_empty());
        let others = if is_sure { Vec::new() } else { found.others };
        let lines = found.line..self.next;
        let there = &self.text[self.byte_range(&lines)];
        let (mut wanted, mut new) = (join_lines(old), join_lines(new));
        if !there.ends_with('\n') {
            // If the last line has no line end, it stays so.
            wanted.pop();
            new.pop();
        }
        if there == wanted {
            return Ok(ChunkEdit { lines, new, differences: String::new(), others });
        }
        let differences = describe_differences(there, &wanted);
        let new = graft_replacement(there, &wanted, &new);
        Ok(ChunkEdit { lines, new, differences, others })
    }

    /// Finds the lines after `@@`. Returns the last one, and the other matches of the first one.
    fn find_headers(&mut self, headers: &[String]) -> Result<Option<LineMatch>, ChunkMismatch> {
        let mut found: Option<LineMatch> = None;
        for header in headers {
            let wanted = std::slice::from_ref(header);
            let LineMatch { line, others } = self
                .find_lines(wanted, MatchPreference::First)
                .map_err(|missing| self.explain_mismatch("the line of `@@` is", wanted, missing))?;
            self.next = line + 1;
            self.previous = "the line of `@@` that precedes it in the patch";
            let others = found.map_or(others, |first| first.others);
            found = Some(LineMatch { line, others });
        }
        Ok(found)
    }

    /// Plans the lines of a chunk that has no old lines.
    fn plan_insertion(
        &mut self,
        chunk: &PatchChunk,
        header: Option<LineMatch>,
    ) -> Result<ChunkEdit, ChunkMismatch> {
        let (end, mut others) = (self.lines.len(), Vec::new());
        let line = match (chunk.line, header) {
            _ if chunk.is_at_end => end,
            (Some(line), _) if line < self.next => {
                let what = format!("it adds lines at line {}, before {}", line + 1, self.previous);
                let hint = Some("write context lines around the added lines".to_owned());
                return Err(ChunkMismatch { what, hint });
            }
            (Some(line), _) => {
                self.next = line.min(end);
                self.next
            }
            (None, Some(header)) => {
                others.extend(header.others.iter().map(|line| line + 1));
                self.next
            }
            (None, None) => end,
        };
        let at = self.line_start(line);
        let (lines, mut new) = (line..line, join_lines(&chunk.new));
        if at == self.text.len() && !self.text.is_empty() && !self.text.ends_with('\n') {
            new.insert(0, '\n');
        }
        Ok(ChunkEdit { lines, new, differences: String::new(), others })
    }

    /// Finds the old lines of a chunk. Also returns the old and new lines without a blank line at
    /// their end that is not part of the file.
    fn find_old_lines<'c>(
        &mut self,
        chunk: &'c PatchChunk,
        header_line: Option<usize>,
    ) -> Result<(LineMatch, &'c [String], &'c [String]), ChunkMismatch> {
        let (mut old, mut new) = (&chunk.old[..], &chunk.new[..]);
        let preference = MatchPreference::for_chunk(chunk);
        let mut found = self.find_lines(old, preference);
        if let (Err(_), Some(line)) = (&found, header_line) {
            // Some models repeat the header's line in the chunk.
            let next = std::mem::replace(&mut self.next, line);
            let again = self.find_lines(old, preference);
            self.next = next;
            found = again.or(found);
        }
        if found.is_err() && old.len() > 1 && old.last().is_some_and(String::is_empty) {
            // The blank line before the next header is not part of the file.
            let shorter = &old[..old.len() - 1];
            if let Ok(again) = self.find_lines(shorter, preference) {
                (found, old) = (Ok(again), shorter);
                if new.last().is_some_and(String::is_empty) {
                    new = &new[..new.len() - 1];
                }
            }
        }
        match found {
            Ok(found) => Ok((found, old, new)),
            Err(missing) => Err(self.explain_mismatch("its lines are", old, missing)),
        }
    }

    fn line_start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// Returns the position of lines in the text.
    pub fn byte_range(&self, lines: &Range<usize>) -> Range<usize> {
        self.line_start(lines.start)..self.line_start(lines.end)
    }

    /// Finds lines after the last match: exactly, or the only match in a folded form.
    fn find_lines(
        &mut self,
        wanted: &[String],
        preference: MatchPreference,
    ) -> Result<LineMatch, LineMismatch> {
        let start = match self.lines.len().checked_sub(wanted.len()) {
            Some(last) if preference == MatchPreference::AtEnd => last.max(self.next),
            _ => self.next,
        };
        let exact = find_chunk_positions(&self.lines, wanted, start).collect();
        if let Some(found) = preference.choose_match(exact) {
            return Ok(found);
        }
        let is_blank = |lines: &[String]| lines.iter().all(|line| line.trim().is_empty());
        let mut before = find_chunk_positions(&self.lines, wanted, 0).next();
        for (number, step) in FoldingStep::ALL.into_iter().enumerate() {
            if self.folded.len() <= number {
                self.folded.push(self.lines.iter().map(|line| fold_line(line, step)).collect());
            }
            let wanted: Vec<String> = wanted.iter().map(|line| fold_line(line, step)).collect();
            if is_blank(&wanted) {
                continue;
            }
            let found: Vec<usize> =
                find_chunk_positions(&self.folded[number], &wanted, start).collect();
            match found[..] {
                [] => {}
                [line] => return Ok(LineMatch { line, others: Vec::new() }),
                [_, _, ..] => return Err(LineMismatch::Similar(found)),
            }
            before =
                before.or_else(|| find_chunk_positions(&self.folded[number], &wanted, 0).next());
        }
        if start > self.next {
            return self.find_lines(wanted, MatchPreference::First);
        }
        let before = before.filter(|line| *line < self.next);
        Err(before.map_or(LineMismatch::Missing, LineMismatch::Before))
    }

    /// Explains why lines have no match.
    fn explain_mismatch(
        &self,
        subject: &str,
        wanted: &[String],
        missing: LineMismatch,
    ) -> ChunkMismatch {
        let wanted = wanted.join("\n");
        let (place, hint) = match missing {
            LineMismatch::Similar(lines) => {
                let place =
                    format!("at {} of the file, but not as written", format_line_numbers(&lines));
                let hint = "copy exactly and add surrounding lines, or `@@` and a line before \
                            them, such as a class or function";
                (place, Some(hint.to_owned()))
            }
            LineMismatch::Before(line) => {
                let place = format!("at line {} of the file, before {}", line + 1, self.previous);
                (place, find_nearest_lines(self.text, &wanted))
            }
            LineMismatch::Missing => {
                ("not in the file".to_owned(), find_nearest_lines(self.text, &wanted))
            }
        };
        ChunkMismatch { what: format!("{subject} {place}: {}", quote_start(&wanted)), hint }
    }
}

/// Describes chunks that match in several places, except for places that other chunks change.
pub fn describe_ambiguous(edits: &[ChunkEdit]) -> Vec<String> {
    let describe = |(index, edit): (usize, &ChunkEdit)| {
        let is_changed = |line: &usize| {
            let end = line + edit.lines.len();
            let overlaps = |other: &ChunkEdit| {
                other.lines.start == *line || other.lines.start < end && *line < other.lines.end
            };
            edits.iter().any(overlaps)
        };
        let others: Vec<usize> =
            edit.others.iter().copied().filter(|line| !is_changed(line)).collect();
        (!others.is_empty()).then(|| {
            format!(
                "chunk {} was applied at line {} of the old file, but also fits at {}",
                index + 1,
                edit.lines.start + 1,
                format_line_numbers(&others)
            )
        })
    };
    edits.iter().enumerate().filter_map(describe).collect()
}

fn join_lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Names lines by their indices: "line 3" or "lines 3, 7".
fn format_line_numbers(lines: &[usize]) -> String {
    let names = lines.iter().take(LINES_NAMED_MAX).map(|line| (line + 1).to_string());
    let names = names.collect::<Vec<_>>().join(", ");
    match lines.len() {
        1 => format!("line {names}"),
        2..=LINES_NAMED_MAX => format!("lines {names}"),
        count => format!("lines {names} and {} more", count - LINES_NAMED_MAX),
    }
}

/// Returns the positions at which the lines occur.
fn find_chunk_positions<'a, Line: AsRef<str>>(
    lines: &'a [Line],
    wanted: &'a [String],
    start: usize,
) -> impl Iterator<Item = usize> + 'a {
    let last = lines.len().checked_sub(wanted.len());
    let all = start..last.map_or(start, |last| last + 1);
    all.filter(move |at| lines[*at..].iter().zip(wanted).all(|(a, b)| a.as_ref() == b))
}
