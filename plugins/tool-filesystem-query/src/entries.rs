//! Groups a search's lines into one entry per file, in the format of `rg`. Pure.

use jaato_plugin_sdk::files::{SearchedFile, SearchedLine};
use jaato_plugin_sdk::prelude::*;

use crate::search_start::SearchStartPath;

/// Bytes of an answer in addition to the entries: totals and notes.
pub const HEADING_BYTES: usize = 1024;
/// Bytes of an entry's JSON in addition to its path and lines.
pub const ENTRY_BYTES: usize = 24;

/// The answer's size if the host does not report the model's limit.
const ANSWER_BYTES: usize = 16 * 1024;
/// The largest answer, which must fit into a frame.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// The entries collected so far.
pub struct GrepEntries {
    /// Number of matches that are still to be skipped.
    skip: u64,
    bytes_left: usize,
    with_context: bool,
    entries: Vec<GrepEntry>,
    /// Number of matches that were added or skipped.
    pub seen: u64,
    /// An entry did not fit, so no later entry is added.
    pub is_full: bool,
}

struct GrepEntry {
    path: String,
    lines: String,
    last: u64,
}

impl GrepEntries {
    /// Skips `skip` matches, and collects an answer of at most `bytes_max` bytes.
    pub fn new(skip: u64, bytes_max: usize, with_context: bool) -> Self {
        let bytes_left = bytes_max.saturating_sub(HEADING_BYTES);
        Self { skip, bytes_left, with_context, entries: Vec::new(), seen: 0, is_full: false }
    }

    /// Adds lines of a file. The lines of one file may arrive in several pages.
    pub fn add_lines(&mut self, place: &SearchStartPath, file: SearchedFile) {
        let path = place.callable_path(&file.path);
        let mut is_passed_over = false;
        for line in &file.lines {
            let matches = line.matches.len() as u64;
            if matches > 0 {
                is_passed_over = self.seen + matches <= self.skip;
            }
            if self.is_full {
                return;
            }
            // Lines before the first added match, and after the last skipped one.
            if is_passed_over || (matches == 0 && self.seen < self.skip) {
                self.seen += matches;
                continue;
            }
            if self.push_line(&path, line) {
                self.seen += matches;
            }
        }
    }

    /// Returns true if the file's name is part of the answer. The results to skip are files here.
    pub fn take_file(&mut self, path: &str) -> bool {
        let bytes = estimate_json_bytes(path) + ENTRY_BYTES;
        self.is_full |= self.seen >= self.skip && bytes > self.bytes_left;
        if self.is_full {
            return false;
        }
        self.seen += 1;
        let is_told = self.seen > self.skip;
        if is_told {
            self.bytes_left -= bytes;
        }
        is_told
    }

    fn push_line(&mut self, path: &str, line: &SearchedLine) -> bool {
        let is_match = !line.matches.is_empty() || line.continues;
        let sign = if is_match { ':' } else { '-' };
        let mut told = format!("{}{sign}{}", line.number, line_text(line));
        let is_same = self.entries.last().is_some_and(|entry| entry.path == path);
        let mut bytes = estimate_json_bytes(&told) + 2;
        if !is_same {
            bytes += ENTRY_BYTES + estimate_json_bytes(path);
        }
        if bytes > self.bytes_left && !self.entries.is_empty() {
            self.is_full = true;
            return false;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        match self.entries.last_mut().filter(|_| is_same) {
            Some(entry) => {
                if self.with_context && line.number > entry.last + 1 {
                    entry.lines.push_str("\n--");
                }
                told.insert(0, '\n');
                entry.lines.push_str(&told);
                entry.last = line.number;
            }
            None => {
                let entry = GrepEntry { path: path.to_owned(), lines: told, last: line.number };
                self.entries.push(entry);
            }
        }
        true
    }

    /// Lists the paths of the entries.
    pub fn entry_paths(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.path.as_str())
    }

    /// Returns all entries.
    pub fn into_entries(self) -> Vec<Value> {
        let told = |entry: GrepEntry| json!({ "file": entry.path, "lines": entry.lines });
        self.entries.into_iter().map(told).collect()
    }
}

/// Formats a line: without trailing whitespace, and with a mark for omitted text.
pub fn line_text(line: &SearchedLine) -> String {
    let before = if line.skipped > 0 { "…" } else { "" };
    match line.is_cut {
        true => format!("{before}{}…", line.text),
        false => format!("{before}{}", line.text.trim_end()),
    }
}

/// Returns the largest answer that the host sends to the model completely.
pub async fn answer_bytes_max(cx: &Reporter) -> usize {
    let facts = cx.session().await.ok();
    facts.and_then(|facts| facts.output_bytes_max).unwrap_or(ANSWER_BYTES).min(ANSWER_BYTES_MAX)
}

/// Estimates the size of a text as JSON.
pub fn estimate_json_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | b'\t' | b'\n'));
    text.len() + escaped.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search_line(number: u64, text: &str, matches: &[(usize, usize)]) -> SearchedLine {
        let (text, matches) = (text.to_owned(), matches.to_vec());
        SearchedLine { number, text, matches, ..SearchedLine::default() }
    }

    fn search_page(path: &str, lines: Vec<SearchedLine>) -> SearchedFile {
        SearchedFile { path: path.into(), lines, ..SearchedFile::default() }
    }

    fn empty_start_path() -> SearchStartPath {
        SearchStartPath { asked: "src".into(), is_folder: true }
    }

    fn search_pages() -> [SearchedFile; 3] {
        let two = search_line(2, "moon moon", &[(0, 4), (5, 9)]);
        let last = vec![
            search_line(3, "c", &[]),
            search_line(8, "d", &[]),
            search_line(9, "moon", &[(0, 4)]),
        ];
        [
            search_page("a", vec![search_line(1, "b ", &[]), two]),
            search_page("a", last),
            search_page("b", vec![search_line(7, "moon", &[(0, 4)])]),
        ]
    }

    #[test]
    fn file_is_listed_once_even_if_split_across_pages() {
        let mut entries = GrepEntries::new(0, 10_000, true);
        search_pages().into_iter().for_each(|page| entries.add_lines(&empty_start_path(), page));
        assert_eq!((entries.seen, entries.is_full), (4, false));
        let expected = json!([
            { "file": "src/a", "lines": "1-b\n2:moon moon\n3-c\n--\n8-d\n9:moon" },
            { "file": "src/b", "lines": "7:moon" },
        ]);
        assert_eq!(Value::Array(entries.into_entries()), expected);
    }

    #[test]
    fn offset_skips_matches_and_answer_size_is_limited() {
        let mut entries = GrepEntries::new(3, 10_000, true);
        search_pages().into_iter().for_each(|page| entries.add_lines(&empty_start_path(), page));
        let expected = json!([{ "file": "src/b", "lines": "7:moon" }]);
        assert_eq!((entries.seen, Value::Array(entries.into_entries())), (4, expected));
        let lines =
            (1..2000).map(|number| search_line(number, &"m\"".repeat(900), &[(0, 1)])).collect();
        let mut entries = GrepEntries::new(0, 16 * 1024, false);
        entries.add_lines(&empty_start_path(), search_page("a", lines));
        let (seen, is_full) = (entries.seen, entries.is_full);
        let bytes = Value::Array(entries.into_entries()).to_string().len();
        assert!(is_full && seen == 5 && bytes <= 15 * 1024, "{seen} {bytes}");
    }
}
