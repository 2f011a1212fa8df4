//! Makes of the lines that a search tells one entry for each file, in the form of `rg`. Pure.

use jaato_plugin_sdk::files::{SearchedFile, SearchedLine};
use jaato_plugin_sdk::prelude::*;

use crate::place::Place;

/// Bytes of an answer that are no entries: totals, notes.
pub const HEADING_BYTES: usize = 1024;
/// Bytes of JSON that an entry has next to its path and lines.
pub const ENTRY_BYTES: usize = 24;

/// Bytes of an answer if the host does not say how many a model is sent.
const ANSWER_BYTES: usize = 16 * 1024;
/// Bytes of an answer at most: it must fit into a frame.
const ANSWER_BYTES_MAX: usize = 1024 * 1024;

/// Entries, as they are collected.
pub struct Entries {
    /// Matches that are still passed over.
    skip: u64,
    bytes_left: usize,
    with_context: bool,
    entries: Vec<Entry>,
    /// Matches that were told or passed over.
    pub seen: u64,
    /// An entry did not fit: none after it is told.
    pub is_full: bool,
}

struct Entry {
    path: String,
    lines: String,
    last: u64,
}

impl Entries {
    /// Begins: passes over so many matches, and fits into an answer of so many bytes.
    pub fn new(skip: u64, bytes_max: usize, with_context: bool) -> Self {
        let bytes_left = bytes_max.saturating_sub(HEADING_BYTES);
        Self { skip, bytes_left, with_context, entries: Vec::new(), seen: 0, is_full: false }
    }

    /// Adds lines of a file; a file may come in several pages.
    pub fn add(&mut self, place: &Place, file: SearchedFile) {
        let path = place.relative_of(&file.path);
        let mut is_passed_over = false;
        for line in &file.lines {
            let matches = line.matches.len() as u64;
            if matches > 0 {
                is_passed_over = self.seen + matches <= self.skip;
            }
            if self.is_full {
                return;
            }
            // Lines before the first match that is told, and after the last one passed over.
            if is_passed_over || (matches == 0 && self.seen < self.skip) {
                self.seen += matches;
                continue;
            }
            if self.push(&path, line) {
                self.seen += matches;
            }
        }
    }

    /// Tells whether a file is told by its name; the results that are skipped are files then.
    pub fn takes_file(&mut self, path: &str) -> bool {
        let bytes = json_bytes(path) + ENTRY_BYTES;
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

    fn push(&mut self, path: &str, line: &SearchedLine) -> bool {
        let is_match = !line.matches.is_empty() || line.continues;
        let sign = if is_match { ':' } else { '-' };
        let mut told = format!("{}{sign}{}", line.number, text(line));
        let is_same = self.entries.last().is_some_and(|entry| entry.path == path);
        let mut bytes = json_bytes(&told) + 2;
        if !is_same {
            bytes += ENTRY_BYTES + json_bytes(path);
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
                let entry = Entry { path: path.to_owned(), lines: told, last: line.number };
                self.entries.push(entry);
            }
        }
        true
    }

    /// Gives all entries.
    pub fn finish(self) -> Vec<Value> {
        let told = |entry: Entry| json!({ "file": entry.path, "lines": entry.lines });
        self.entries.into_iter().map(told).collect()
    }
}

/// A line as it is told: without spaces at its end, and with a sign where something is left out.
pub fn text(line: &SearchedLine) -> String {
    let before = if line.skipped > 0 { "…" } else { "" };
    match line.is_cut {
        true => format!("{before}{}…", line.text),
        false => format!("{before}{}", line.text.trim_end()),
    }
}

/// Bytes that an answer may have, so that the model is sent all of it.
pub async fn answer_bytes(cx: &Reporter) -> usize {
    let facts = cx.session().await.ok();
    facts.and_then(|facts| facts.output_bytes_max).unwrap_or(ANSWER_BYTES).min(ANSWER_BYTES_MAX)
}

/// Bytes of a text as JSON, about.
pub fn json_bytes(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| matches!(byte, b'"' | b'\\' | b'\t' | b'\n'));
    text.len() + escaped.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, text: &str, matches: &[(usize, usize)]) -> SearchedLine {
        let (text, matches) = (text.to_owned(), matches.to_vec());
        SearchedLine { number, text, matches, ..SearchedLine::default() }
    }

    fn page(path: &str, lines: Vec<SearchedLine>) -> SearchedFile {
        SearchedFile { path: path.into(), lines, ..SearchedFile::default() }
    }

    fn place() -> Place {
        Place { asked: "src".into(), is_folder: true }
    }

    fn pages() -> [SearchedFile; 3] {
        let two = line(2, "moon moon", &[(0, 4), (5, 9)]);
        let last = vec![line(3, "c", &[]), line(8, "d", &[]), line(9, "moon", &[(0, 4)])];
        [
            page("a", vec![line(1, "b ", &[]), two]),
            page("a", last),
            page("b", vec![line(7, "moon", &[(0, 4)])]),
        ]
    }

    #[test]
    fn a_file_is_named_once_however_the_pages_were_cut() {
        let mut entries = Entries::new(0, 10_000, true);
        pages().into_iter().for_each(|page| entries.add(&place(), page));
        assert_eq!((entries.seen, entries.is_full), (4, false));
        let expected = json!([
            { "file": "src/a", "lines": "1-b\n2:moon moon\n3-c\n--\n8-d\n9:moon" },
            { "file": "src/b", "lines": "7:moon" },
        ]);
        assert_eq!(Value::Array(entries.finish()), expected);
    }

    #[test]
    fn matches_are_passed_over_and_an_answer_holds_so_many_bytes() {
        let mut entries = Entries::new(3, 10_000, true);
        pages().into_iter().for_each(|page| entries.add(&place(), page));
        let expected = json!([{ "file": "src/b", "lines": "7:moon" }]);
        assert_eq!((entries.seen, Value::Array(entries.finish())), (4, expected));
        let lines = (1..2000).map(|number| line(number, &"m\"".repeat(900), &[(0, 1)])).collect();
        let mut entries = Entries::new(0, 16 * 1024, false);
        entries.add(&place(), page("a", lines));
        let (seen, is_full) = (entries.seen, entries.is_full);
        let bytes = Value::Array(entries.finish()).to_string().len();
        assert!(is_full && seen == 5 && bytes <= 15 * 1024, "{seen} {bytes}");
    }
}
