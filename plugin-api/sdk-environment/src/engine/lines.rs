//! The lines of a search, shortened if they are too long, and pages of the right size. Pure, and
//! shared by all searches.

use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_types::files::{
    SEARCH_LINE_BYTES_MAX, SEARCH_MATCHES_MAX, SearchTotals, SearchedFile, SearchedLine,
    SearchedPage, UNREADABLE_MAX, WALK_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind};

/// The approximate bytes of JSON that a line needs besides its text and matches.
const LINE_BYTES: usize = 40;
/// The approximate bytes of JSON of one match.
const MATCH_BYTES: usize = 12;

/// Builds the result line of a search, without its line end and shortened around the first match.
/// `matches` lists the byte ranges of the matches, in order. It is empty for a context line.
///
/// ```
/// use jaato_plugin_sdk_environment::searched_line;
///
/// let line = searched_line(7, "über alles\r\n".as_bytes(), &[(6, 11)]);
/// assert_eq!((line.text.as_str(), line.matches), ("über alles", vec![(5, 10)]));
/// ```
pub fn searched_line(number: u64, line: &[u8], matches: &[(usize, usize)]) -> SearchedLine {
    let line = without_line_end(line);
    let first = matches.first().map_or(0, |(start, _)| (*start).min(line.len()));
    let (from, to) = shown_range(line, first);
    let mut told = Vec::new();
    let (mut bytes, mut chars) = (from, 0);
    let mut chars_to = |at: usize| {
        chars += count_chars(&line[bytes..at]);
        bytes = at;
        chars
    };
    for (start, end) in matches {
        // A match at the end of the text counts only if it is empty and the rest of the line is
        // too.
        if *start < from || *start > to || (*start == to && to < line.len()) {
            continue;
        }
        let begin = chars_to(*start);
        told.push((begin, chars_to((*end).clamp(*start, to))));
    }
    SearchedLine {
        number,
        text: String::from_utf8_lossy(&line[from..to]).into_owned(),
        skipped: count_chars(&line[..from]),
        is_cut: to < line.len(),
        matches: told,
        ..SearchedLine::default()
    }
}

/// Collects the matches of a line: all matches that are not empty, or otherwise the first one.
pub fn collect_matches(find: impl FnOnce(&mut dyn FnMut(usize, usize))) -> Vec<(usize, usize)> {
    let (mut matches, mut empty) = (Vec::new(), None);
    find(&mut |start, end| match start == end {
        true => _ = empty.get_or_insert((start, end)),
        false => matches.push((start, end)),
    });
    if matches.is_empty() {
        matches.extend(empty);
    }
    matches
}

/// Returns a one-line error for an invalid regular expression.
pub fn invalid_regex_error(pattern: &str, error: impl std::fmt::Display) -> Error {
    /// The maximum number of characters of the pattern in the error.
    const PATTERN_CHARS_MAX: usize = 80;

    let error = error.to_string();
    let mut lines = error.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last).trim_end_matches('.');
    let reason = match reason.contains("exceeds size limit") {
        true => "it becomes too large",
        false => reason,
    };
    let pattern = truncate_chars(pattern, PATTERN_CHARS_MAX);
    let text = format!("`{pattern}` is not a valid regular expression: {reason}");
    Error::new(ErrorKind::InvalidArguments, text)
        .with_hint("use Rust's regex syntax: no look-around, no back-references")
}

/// Returns a line without `\n` or `\r\n` at its end.
pub(super) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Returns the part of a line to show, which includes some text before the first match.
fn shown_range(line: &[u8], first: usize) -> (usize, usize) {
    let rest = match line.len().checked_sub(SEARCH_LINE_BYTES_MAX) {
        None | Some(0) => return (0, line.len()),
        Some(rest) => rest,
    };
    let from = first.saturating_sub(SEARCH_LINE_BYTES_MAX / 4).min(rest);
    let to = from + SEARCH_LINE_BYTES_MAX;
    (char_start(line, from), char_start(line, to))
}

/// Returns the offset at which the character at this byte starts.
fn char_start(line: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| !is_inside(at)).unwrap_or(at)
}

/// Counts characters as they are shown. Each invalid UTF-8 sequence counts as one.
fn count_chars(bytes: &[u8]) -> usize {
    let chunks = bytes.utf8_chunks();
    chunks.map(|it| it.valid().chars().count() + usize::from(!it.invalid().is_empty())).sum()
}

/// Collects search results into pages of the right size, and stops at the limit.
///
/// ```
/// use jaato_plugin_sdk_environment::{PageFiller, searched_line};
///
/// let mut filler = PageFiller::new(Some(1));
/// filler.push_line("a.txt", searched_line(1, b"moon moon", &[(0, 4), (5, 9)]));
/// filler.push_line("a.txt", searched_line(2, b"moon", &[(0, 4)]));
/// let page = filler.take_page();
/// assert_eq!(page.files[0].lines.len(), 1);
/// assert!(filler.has_reached_limit());
/// ```
#[derive(Debug, Default)]
pub struct PageFiller {
    files: Vec<SearchedFile>,
    /// The file of the last line.
    path: Option<String>,
    unreadable: Vec<String>,
    unreadable_left: usize,
    bytes: usize,
    /// The number of matches that may still be added.
    left: usize,
    /// A match was omitted, so later matches are omitted too.
    is_over: bool,
    /// The totals so far.
    pub totals: SearchTotals,
}

impl PageFiller {
    /// Creates a filler for at most `limit` matches, and never more than [`SEARCH_MATCHES_MAX`].
    pub fn new(limit: Option<usize>) -> Self {
        let left = limit.unwrap_or(SEARCH_MATCHES_MAX).min(SEARCH_MATCHES_MAX);
        Self { left, unreadable_left: UNREADABLE_MAX, ..Self::default() }
    }

    /// Adds a line of a file. Lines must arrive in order, with the lines of one file together.
    pub fn push_line(&mut self, path: &str, mut line: SearchedLine) {
        let is_match = !line.matches.is_empty();
        let is_same = self.path.as_deref() == Some(path);
        if self.is_over || (self.left == 0 && (is_match || !is_same)) {
            self.is_over = true;
            return;
        }
        line.matches.truncate(self.left);
        self.left -= line.matches.len();
        self.bytes += LINE_BYTES + json_size(&line.text) + MATCH_BYTES * line.matches.len();
        if !is_same {
            self.path = Some(path.to_owned());
        }
        if !is_same || self.files.is_empty() {
            self.bytes += LINE_BYTES + json_size(path);
            let path = path.to_owned();
            self.files.push(SearchedFile { path, ..SearchedFile::default() });
        }
        if let Some(file) = self.files.last_mut() {
            file.lines.push(line);
        }
    }

    /// Adds a file with its number of matches.
    pub fn push_count(&mut self, path: String, matches: u64) {
        if self.left == 0 {
            self.is_over = true;
            return;
        }
        self.left -= 1;
        self.bytes += LINE_BYTES + json_size(&path);
        self.files.push(SearchedFile { path, matches: Some(matches), ..SearchedFile::default() });
    }

    /// Adds the reason why a file could not be read, up to a limit.
    pub fn push_unreadable(&mut self, line: String) {
        if self.unreadable_left > 0 {
            self.unreadable_left -= 1;
            self.bytes += LINE_BYTES + json_size(&line);
            self.unreadable.push(line);
        }
    }

    /// Returns true if the page is full.
    pub fn is_full(&self) -> bool {
        self.bytes >= WALK_BYTES_MAX
    }

    /// Returns true if the limit is reached. Further matches are only counted.
    pub fn has_reached_limit(&self) -> bool {
        self.is_over
    }

    /// Takes the collected page.
    pub fn take_page(&mut self) -> SearchedPage {
        self.bytes = 0;
        SearchedPage {
            files: std::mem::take(&mut self.files),
            totals: self.totals,
            unreadable: std::mem::take(&mut self.unreadable),
            ..SearchedPage::default()
        }
    }
}

/// Returns the size of a text as JSON, assuming six bytes for each escaped character.
pub(crate) fn json_size(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
    text.len() + 5 * escaped.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_is_truncated_around_its_first_match_between_characters() {
        let long = "é".repeat(3000) + "moon" + &"ü".repeat(3000);
        let line = searched_line(1, long.as_bytes(), &[(6000, 6004), (11_000, 11_002)]);
        assert!(line.text.len() <= SEARCH_LINE_BYTES_MAX + 3, "{}", line.text.len());
        assert!(line.is_cut && !line.text.contains('\u{fffd}'));
        let (start, end) = line.matches[0];
        let told: String = line.text.chars().skip(start).take(end - start).collect();
        assert_eq!((told.as_str(), line.matches.len()), ("moon", 1));
        assert_eq!(line.skipped + start, 3000);
        let end = searched_line(1, long.as_bytes(), &[(12_003, 12_004)]);
        assert!(!end.is_cut && end.matches.len() == 1);
    }

    #[test]
    fn invalid_utf8_is_replaced_and_counted_as_one_character() {
        let line = searched_line(3, b"a\xff\xfeb moon\n", &[(5, 9)]);
        assert_eq!(line.text, "a\u{fffd}\u{fffd}b moon");
        assert_eq!(line.matches, [(5, 9)]);
    }

    #[test]
    fn empty_match_keeps_its_position() {
        assert_eq!(searched_line(1, b"", &[(0, 0)]).matches, [(0, 0)]);
        assert_eq!(searched_line(1, b"ab", &[(2, 2)]).matches, [(2, 2)]);
    }

    #[test]
    fn context_lines_after_the_last_reported_match_are_included() {
        let mut filler = PageFiller::new(Some(2));
        let plain = |number| searched_line(number, b"x", &[]);
        let hit = |number| searched_line(number, b"moon", &[(0, 4)]);
        for line in [hit(1), plain(2), hit(3), plain(4), hit(5), plain(6)] {
            filler.push_line("a", line);
        }
        filler.push_line("b", plain(1));
        let page = filler.take_page();
        let numbers: Vec<_> = page.files[0].lines.iter().map(|line| line.number).collect();
        assert_eq!((numbers, page.files.len()), (vec![1, 2, 3, 4], 1));
        assert!(filler.has_reached_limit());
        let mut none = PageFiller::new(Some(0));
        none.push_line("a", hit(1));
        assert!(none.take_page().files.is_empty() && none.has_reached_limit());
    }
}
