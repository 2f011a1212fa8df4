//! Finds the lines of a program that a modification probably changed, by the words of its entry.

use serde::{Deserialize, Serialize};

use crate::history::Program;

/// The maximum number of lines for an entry.
const LINES_MAX: usize = 12;

/// Words of descriptions that say nothing about the code.
const STOP_WORDS: &str = "the and for with from this that into will have been being were shall \
    used also more less data code logic process change changes updated adjusted modify modified \
    fix fixed performance security enhancement other";

/// A line of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedLine {
    /// Its number, from 1.
    pub line_number: usize,
    /// Its text.
    pub code_line: String,
}

/// Returns at most 12 lines, those that contain the most words of the description and of the
/// delimiter first.
pub fn changed_lines(
    description: &str,
    delimiter: Option<&str>,
    program: &Program,
) -> Vec<ChangedLine> {
    let words = search_words(description, delimiter.unwrap_or_default());
    let mut found: Vec<(usize, ChangedLine)> = Vec::new();
    for (line_number, line) in program.code_lines() {
        let upper = line.to_uppercase();
        let score = words.iter().filter(|word| upper.contains(word.as_str())).count();
        if score > 0 {
            found.push((score, ChangedLine { line_number, code_line: line.to_owned() }));
        }
    }
    // A stable sort, so that lines with as many words stay in order.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(LINES_MAX).map(|(_, line)| line).collect()
}

fn search_words(description: &str, delimiter: &str) -> Vec<String> {
    let text = format!("{description} {delimiter}").replace(['/', ',', '.'], " ");
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
        let word: String = word.chars().filter(is_kept).collect();
        let is_name = word.chars().count() >= 4 || word.contains(['-', '_']);
        let is_stop_word = STOP_WORDS.split(' ').any(|stop| word.eq_ignore_ascii_case(stop));
        let word = word.to_uppercase();
        if is_name && !is_stop_word && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns the lines with their numbers, as a training pair shows them.
pub fn format_excerpt(lines: &[ChangedLine]) -> String {
    let line = |it: &ChangedLine| format!("{:>5}: {}", it.line_number, it.code_line);
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_the_most_words_come_first() {
        let code = "compute ws-rate\nMOVE A TO B\n* RA01 WS-RATE OF THE LOAN\n* ra01\n* FIX";
        let program = Program::new(code);
        let lines = changed_lines("Fix WS-RATE, of the loan.", Some("RA01"), &program);
        let numbers: Vec<usize> = lines.iter().map(|line| line.line_number).collect();
        assert_eq!(numbers, [3, 1, 4]);
        assert_eq!(lines[0].code_line, "* RA01 WS-RATE OF THE LOAN");
        assert_eq!(format_excerpt(&lines[1..2]), "    1: compute ws-rate");
        assert_eq!(changed_lines("fix the data", None, &program), []);
    }

    #[test]
    fn at_most_twelve_lines_are_returned() {
        let numbers = |count: usize| {
            let lines = changed_lines("total", None, &Program::new(&"TOTAL\n".repeat(count)));
            lines.iter().map(|line| line.line_number).collect::<Vec<_>>()
        };
        assert_eq!(numbers(12).len(), 12);
        assert_eq!(numbers(13), (1..=12).collect::<Vec<_>>());
    }
}
