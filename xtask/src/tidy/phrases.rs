//! Checks that comments avoid phrases that read like a translation.

use super::{BEING_REPLACED, TextFile, TidyFinding};

/// The phrases in lower case, one per line, each with the better words.
const PHRASES: &str = include_str!("phrases.txt");

/// Finds the phrases in comments that have a line of their own.
pub fn check_phrases(files: &[TextFile]) -> Vec<TidyFinding> {
    let is_checked = |file: &&TextFile| {
        file.path.ends_with(".rs")
            && !file.path.contains("/fixtures/")
            && !BEING_REPLACED.iter().any(|start| file.path.starts_with(start))
    };
    files.iter().filter(is_checked).flat_map(find_phrases).collect()
}

fn find_phrases(file: &TextFile) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
        let comment = comment.to_lowercase();
        for (phrase, better) in PHRASES.lines().filter_map(|line| line.split_once(" = ")) {
            if has_whole_words(&comment, phrase) {
                let what = format!("the comment says `{phrase}`");
                findings.push(TidyFinding::error_finding(
                    &file.path,
                    at + 1,
                    what,
                    format!("write: {better}"),
                ));
            }
        }
    }
    findings
}

/// Returns true if the text contains the words, and not only as a part of longer words.
fn has_whole_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        let is_part = |c: char| c.is_alphanumeric() || c == '-';
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{format_findings, text_file};

    #[test]
    fn every_phrase_is_found_in_a_comment_and_only_there() {
        assert!(PHRASES.lines().all(|line| line.contains(" = ")));
        for (phrase, better) in PHRASES.lines().filter_map(|line| line.split_once(" = ")) {
            let text = |line: &str| text_file("host/a.rs", &format!("//! A.\n    {line}\n"));
            let found = format_findings(&check_phrases(&[text(&format!("/// But {phrase}, so."))]));
            let expected = format!("host/a.rs:2: the comment says `{phrase}`, write: {better}");
            assert_eq!(found, [expected]);
            for fine in [format!("let a = \"{phrase}\";"), format!("// x{phrase}")] {
                assert_eq!(
                    format_findings(&check_phrases(&[text(&fine)])),
                    Vec::<String>::new(),
                    "{fine}"
                );
            }
        }
    }

    #[test]
    fn code_being_replaced_is_not_checked() {
        let files =
            BEING_REPLACED.iter().map(|folder| text_file(&format!("{folder}a.rs"), "// nobody\n"));
        assert_eq!(
            format_findings(&check_phrases(&files.collect::<Vec<_>>())),
            Vec::<String>::new()
        );
    }
}
