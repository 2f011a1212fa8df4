//! Parses variables files (`.env`).
//!
//! Supports plain assignments only: `NAME=value`, `export NAME=value`, single or double quotes
//! (including multi-line values), and comments. Nothing is expanded or executed, because the file
//! comes from a workspace.

/// One assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The name of the variable.
    pub name: String,
    /// Its value, often a secret.
    pub value: String,
    /// The line of the name, counted from 1.
    pub line: usize,
    /// Whether other parsers would expand a `${…}` in this value.
    pub looks_expanded: bool,
}

/// The content of a variables file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DotEnv {
    /// The assignments, in file order. If a name occurs twice, the later one counts.
    pub assignments: Vec<Assignment>,
    /// The lines that are not assignments. They are skipped, because other programs share the file.
    pub odd_lines: Vec<usize>,
}

/// Parses the text of a file. Nothing is expanded.
pub fn parse(text: &str) -> DotEnv {
    let mut found = DotEnv::default();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let first = &rest[..end];
        let trimmed = first.trim();
        let mut taken = end;
        if !trimmed.is_empty() && !trimmed.starts_with('#') {
            match parse_assignment(rest) {
                Some((name, value, looks_expanded, length)) => {
                    found.assignments.push(Assignment { name, value, line, looks_expanded });
                    taken = length.max(end);
                }
                None => found.odd_lines.push(line),
            }
        }
        line += rest[..taken].matches('\n').count();
        rest = &rest[taken..];
    }
    found
}

/// Returns the name, the value, whether it contains `${`, and the number of bytes up to the end of
/// its line.
fn parse_assignment(text: &str) -> Option<(String, String, bool, usize)> {
    let line_end = text.find('\n').unwrap_or(text.len());
    let equals = text[..line_end].find('=')?;
    let left = text[..equals].trim();
    let name = left.strip_prefix("export ").unwrap_or(left).trim();
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return None;
    }
    let line_value = &text[equals + 1..line_end];
    let start = equals + 1 + (line_value.len() - line_value.trim_start_matches([' ', '\t']).len());
    let (value, length, can_expand) = match text[start..].chars().next() {
        Some('\'') => {
            let inner = &text[start + 1..];
            let close = inner.find('\'')?;
            (inner[..close].to_owned(), start + 1 + close + 1, false)
        }
        Some('"') => {
            let (value, length) = parse_double_quoted(&text[start + 1..])?;
            (value, start + 1 + length, true)
        }
        _ => (parse_unquoted(&text[start..line_end]), line_end, true),
    };
    let looks_expanded = can_expand && value.contains("${");
    let length = text[length..].find('\n').map_or(text.len(), |at| length + at + 1);
    Some((name.to_owned(), value, looks_expanded, length))
}

/// Returns the text before the closing quote, and the number of bytes including the quote.
fn parse_double_quoted(text: &str) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, at + 1)),
            '\\' => match chars.next()?.1 {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                c @ ('"' | '\\' | '$') => value.push(c),
                other => value.extend(['\\', other]),
            },
            c => value.push(c),
        }
    }
    None
}

/// Returns an unquoted value. A comment begins at a `#` after white space.
fn parse_unquoted(text: &str) -> String {
    let comment = text
        .char_indices()
        .find(|(at, c)| *c == '#' && (*at == 0 || text[..*at].ends_with([' ', '\t'])));
    text[..comment.map_or(text.len(), |(at, _)| at)].trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_parsed_file(text: &str, expected: &[(&str, &str, usize)], odd_lines: &[usize]) {
        let found = parse(text);
        let assignments: Vec<_> = found
            .assignments
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str(), one.line))
            .collect();
        assert_eq!(assignments, expected);
        assert_eq!(found.odd_lines, odd_lines);
    }

    #[test]
    fn assignments_comments_and_quotes_are_read() {
        check_parsed_file(
            "# head\r\n\r\nA=1\r\nexport B = two words # not this\nC='x # y'\nD=\"a\\n\\\"b\\\"\" # c\nE=\nF=a#b\n",
            &[
                ("A", "1", 3),
                ("B", "two words", 4),
                ("C", "x # y", 5),
                ("D", "a\n\"b\"", 6),
                ("E", "", 7),
                ("F", "a#b", 8),
            ],
            &[],
        );
    }

    #[test]
    fn quoted_multiline_value_hides_assignments_inside_it() {
        check_parsed_file(
            "KEY=\"one\nMODEL_NAME=evil\nend\"\nA=1",
            &[("KEY", "one\nMODEL_NAME=evil\nend", 1), ("A", "1", 4)],
            &[],
        );
    }

    #[test]
    fn lines_that_are_not_assignments_are_skipped_and_reported() {
        check_parsed_file(
            "just words\n1A=2\nA B=3\nQ='open\nA=1\n",
            &[("A", "1", 5)],
            &[1, 2, 3, 4],
        );
    }

    #[test]
    fn variables_in_values_are_not_expanded() {
        let found = parse("A=${HOME}/x\nB='${HOME}'\n");
        let flags: Vec<_> =
            found.assignments.iter().map(|one| (one.value.as_str(), one.looks_expanded)).collect();
        assert_eq!(flags, [("${HOME}/x", true), ("${HOME}", false)]);
    }

    #[test]
    fn malformed_text_never_panics() {
        for text in ["=", "A", "A=\"", "A=\"\\", "é=1", "A='é", "\n\n=\n", "A=é # ü", "A=\"é\\é\""]
        {
            parse(text);
        }
    }
}
