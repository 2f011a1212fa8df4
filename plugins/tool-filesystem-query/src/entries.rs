//! Makes of the lines that a search tells one entry for each match. Pure.

use jaato_plugin_sdk::files::{SearchedFile, SearchedLine};
use jaato_plugin_sdk::prelude::*;

use crate::place::Place;

/// Bytes of text that all entries of one answer hold, about: an answer must fit into a frame.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Entries, as they are collected.
pub struct Entries {
    context_lines: usize,
    /// The lines of the file that comes, which may come in several pages.
    file: Option<SearchedFile>,
    entries: Vec<Value>,
    bytes: usize,
}

impl Entries {
    /// Begins.
    pub fn new(context_lines: usize) -> Self {
        Self { context_lines, file: None, entries: Vec::new(), bytes: 0 }
    }

    /// Adds lines of a file.
    pub fn add(&mut self, place: &Place, file: SearchedFile) {
        match &mut self.file {
            Some(last) if last.path == file.path => last.lines.extend(file.lines),
            _ => {
                self.close_file(place);
                self.file = Some(file);
            }
        }
    }

    /// Gives all entries.
    pub fn finish(mut self, place: &Place) -> Vec<Value> {
        self.close_file(place);
        self.entries
    }

    fn close_file(&mut self, place: &Place) {
        let Some(file) = self.file.take() else { return };
        for (at, line) in file.lines.iter().enumerate() {
            for (start, end) in &line.matches {
                if self.bytes >= TEXT_BYTES_MAX {
                    return;
                }
                let entry = self.entry(place, &file, at, (*start, *end));
                self.entries.push(entry);
            }
        }
    }

    fn entry(
        &mut self,
        place: &Place,
        file: &SearchedFile,
        at: usize,
        (start, end): (usize, usize),
    ) -> Value {
        let line = &file.lines[at];
        let near =
            |other: &&SearchedLine| other.number.abs_diff(line.number) <= self.context_lines as u64;
        let mut before: Vec<String> =
            file.lines[..at].iter().rev().take_while(near).map(text).collect();
        before.reverse();
        let after: Vec<String> = file.lines[at + 1..].iter().take_while(near).map(text).collect();
        let matched: String =
            line.text.chars().skip(start).take(end.saturating_sub(start)).collect();
        let (name, absolute) = (place.relative_of(&file.path), place.absolute_of(&file.path));
        let told = text(line);
        let lengths = before.iter().chain(&after).map(String::len).sum::<usize>();
        self.bytes += lengths + told.len() + matched.len() + name.len() + absolute.len();
        json!({
            "file": name,
            "absolute_path": absolute,
            "line": line.number,
            "column": line.skipped + start + 1,
            "text": told,
            "match": matched,
            "context_before": before,
            "context_after": after,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, text: &str, matches: &[(usize, usize)]) -> SearchedLine {
        let (text, matches) = (text.to_owned(), matches.to_vec());
        SearchedLine { number, text, matches, ..SearchedLine::default() }
    }

    #[test]
    fn each_match_is_an_entry_with_the_lines_around_it_however_the_pages_were_cut() {
        let place = Place { asked: "src".into(), absolute: "/w/src".into(), is_folder: true };
        let page = |lines| SearchedFile { path: "a".into(), lines, ..SearchedFile::default() };
        let mut entries = Entries::new(1);
        entries.add(
            &place,
            page(vec![line(1, "b ", &[]), line(2, "é moon moon", &[(2, 6), (7, 11)])]),
        );
        entries.add(
            &place,
            page(vec![line(3, "c", &[]), line(8, "d", &[]), line(9, "moon", &[(0, 4)])]),
        );
        let entries = entries.finish(&place);
        assert_eq!(entries.len(), 3);
        let second = json!({
            "file": "src/a", "absolute_path": "/w/src/a", "line": 2, "column": 8,
            "text": "é moon moon", "match": "moon",
            "context_before": ["b"], "context_after": ["c"],
        });
        assert_eq!(entries[1], second);
        assert_eq!(entries[2]["context_before"], json!(["d"]));
    }

    #[test]
    fn an_answer_holds_so_much_text_and_no_more() {
        let place = Place { asked: String::new(), absolute: "/w".into(), is_folder: true };
        let lines = (1..2000).map(|number| line(number, &"m".repeat(2000), &[(0, 1)])).collect();
        let mut entries = Entries::new(2);
        entries.add(&place, SearchedFile { path: "a".into(), lines, ..SearchedFile::default() });
        let bytes = Value::Array(entries.finish(&place)).to_string().len();
        assert!(bytes < 2 * TEXT_BYTES_MAX, "{bytes}");
    }
}
