//! The part of a program with its modification log, and a parser for logs in columns.

use crate::entries::LogEntry;

/// Characters of a line that are code or a comment. The rest is a mark of the line.
const LINE_CHARS_MAX: usize = 72;

/// A COBOL program.
#[derive(Debug, Clone)]
pub struct Program {
    lines: Vec<String>,
    history: usize,
}

impl Program {
    /// Creates a program from its source. The log is before the working storage, or may be anywhere
    /// if there is none.
    pub fn new(source: &str) -> Self {
        let lines: Vec<String> = source.lines().map(str::to_owned).collect();
        let is_end = |line: &String| {
            line.to_uppercase().replace('-', " ").contains("WORKING STORAGE SECTION")
        };
        let history = lines.iter().position(is_end).unwrap_or(lines.len());
        Self { lines, history }
    }

    /// Returns the whole source.
    pub fn source(&self) -> String {
        self.lines.join("\n")
    }

    /// Returns the part with the log, of at most `chars_max` characters. 0 means no limit.
    pub fn history_text(&self, chars_max: usize) -> String {
        let text = self.lines[..self.history].join("\n");
        match chars_max {
            0 => text,
            _ => text.chars().take(chars_max).collect(),
        }
    }

    /// Returns the lines that a modification may have changed, with their numbers from 1: those
    /// after the log, or all if the log may be anywhere.
    pub fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let start = if self.history < self.lines.len() { self.history } else { 0 };
        (start + 1..).zip(self.lines[start..].iter().map(String::as_str))
    }
}

/// Finds the entries of a log without a model. An entry begins with a comment line
///
/// ```text
/// * 2021-03-04  R. ALVAREZ  RA0304  FIX THE TOTAL OF
/// *                                 NEGATIVE AMOUNTS
/// ```
///
/// whose columns have two or more spaces between them. A column of one word that the code contains
/// is the delimiter. Further lines of the description have only one column.
pub fn parse_history(history: &str, program: &Program) -> Vec<LogEntry> {
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut is_open = false;
    for line in history.lines() {
        let columns = comment_columns(line);
        if let [first, ..] = columns[..]
            && is_date(first.split(' ').next().unwrap_or_default())
        {
            let entry = parse_entry(&columns, program);
            is_open = entry.is_some();
            entries.extend(entry);
        } else if let ([more], true, Some(last)) = (&columns[..], is_open, entries.last_mut())
            && more.chars().any(char::is_alphanumeric)
        {
            let whole = format!("{} {more}", last.description);
            let (name, tag) = (last.programmer.as_deref(), last.delimiter.as_deref());
            if let Some(longer) = LogEntry::new(&last.date, name, &whole, tag) {
                *last = longer;
            }
        } else {
            is_open = false;
        }
    }
    entries
}

fn parse_entry(columns: &[&str], program: &Program) -> Option<LogEntry> {
    let (date, after) = columns[0].split_once(' ').unwrap_or((columns[0], ""));
    let after_date = [after].into_iter().filter(|text| !text.is_empty());
    let mut columns = after_date.chain(columns[1..].iter().copied());
    let programmer = columns.next()?;
    let mut delimiter = None;
    let mut description: Vec<&str> = Vec::new();
    for column in columns {
        let is_tag = delimiter.is_none()
            && column.chars().any(|c| c.is_ascii_digit())
            && !column.contains(' ')
            && program.code_lines().any(|(_, line)| line.contains(column));
        if is_tag {
            delimiter = Some(column);
        } else {
            description.push(column);
        }
    }
    LogEntry::new(date, Some(programmer), &description.join(" "), delimiter)
}

/// Returns the columns of a comment line. Empty for any other line.
fn comment_columns(line: &str) -> Vec<&str> {
    let end = line.char_indices().nth(LINE_CHARS_MAX).map_or(line.len(), |(index, _)| index);
    // Fixed format has `*` after six characters. Free format has `*>` anywhere.
    let fixed = line[..end].char_indices().nth(6).map(|(index, _)| &line[index..end]);
    let comment = fixed
        .and_then(|text| text.strip_prefix('*'))
        .or_else(|| line.trim_start().strip_prefix("*>"))
        .unwrap_or_default();
    let columns = comment.trim_matches(['*', ' ']).split("  ");
    columns.map(str::trim).filter(|column| !column.is_empty()).collect()
}

/// Returns true for a word of at least six digits with `-`, `/` or `.` between them.
fn is_date(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    (6..=8).contains(&digits)
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '/' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_ends_before_the_working_storage() {
        for end in ["       WORKING-STORAGE SECTION.", "working storage section"] {
            let program = Program::new(&format!("      * Ä\n      * B\n{end}\nx"));
            assert_eq!(program.history_text(0), "      * Ä\n      * B");
            assert_eq!(program.history_text(9), "      * Ä");
            assert_eq!(program.code_lines().collect::<Vec<_>>(), [(3, end), (4, "x")]);
        }
        let program = Program::new("a\nb");
        assert_eq!(program.history_text(0), "a\nb");
        assert_eq!(program.code_lines().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }

    #[test]
    fn entries_are_parsed_from_columns() {
        let first_line = "      * 2021-03-04  R. ALVAREZ  RA0304  FIX THE TOTAL OF";
        let history = [
            "      * DATE        WHO         TAG     DESCRIPTION",
            // A mark of the line, as in old sources.
            &format!("{first_line:<72}00010000"),
            "      *                                 NEGATIVE AMOUNTS",
            "      *",
            "      * NO PART OF AN ENTRY",
            "*> 04/03/21 ADA  NEW  REPORT",
            "       MOVE 2021-03-04 TO A.",
            "      * 2021-03-05  NO DESCRIPTION",
        ];
        let entries = parse_history(&history.join("\n"), &Program::new("      * RA0304 START"));
        let first = LogEntry::new(
            "2021-03-04",
            Some("R. ALVAREZ"),
            "FIX THE TOTAL OF NEGATIVE AMOUNTS",
            Some("RA0304"),
        );
        let second = LogEntry::new("04/03/21", Some("ADA"), "NEW REPORT", None);
        assert_eq!(entries, [first, second].into_iter().flatten().collect::<Vec<_>>());
    }
}
