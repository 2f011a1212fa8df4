//! Finds and replaces matches of a regular expression in the whole text of a file. Pure.
//!
//! The preview and the change use the same [`RegexReplacer::replace`], so they are equal.

mod template;

use jaato_plugin_sdk::types::text::truncate_chars;

use std::ops::Range;

use regex::{Captures, Regex, RegexBuilder};

use crate::text::LineView;
use template::ReplacementTemplate;

/// The maximum size of a compiled expression, in bytes.
const REGEX_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The maximum number of matches shown of a file, and of characters in each line.
const SHOWN_MAX: usize = 10;
const SHOWN_CHARS_MAX: usize = 200;

/// An expression and its replacement.
#[derive(Debug)]
pub struct RegexReplacer {
    regex: Regex,
    template: ReplacementTemplate,
}

/// The result of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplacementResult {
    /// The new text.
    pub text: String,
    /// The number of replaced matches.
    pub matches: usize,
    /// The number of lines in which matches begin.
    pub lines: usize,
    /// The first of these lines.
    pub shown: Vec<ReplacedLine>,
}

/// A line before and after.
#[derive(Debug, PartialEq, Eq)]
pub struct ReplacedLine {
    /// The line number, from 1.
    pub line: usize,
    /// The lines of the match before.
    pub before: String,
    /// The lines of the match after.
    pub after: String,
}

impl RegexReplacer {
    /// Compiles an expression. `^` and `$` match at line ends, and `.` does not match a line end.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn new(pattern: &str, replacement: &str) -> Result<Self, String> {
        let regex = Self::compile_pattern(pattern)?;
        let template = ReplacementTemplate::parse_template(replacement, &regex)?;
        Ok(Self { regex, template })
    }

    /// Creates a replacer for plain texts.
    ///
    /// # Errors
    /// An error if the pattern is too long.
    pub fn from_literal(pattern: &str, replacement: &str) -> Result<Self, String> {
        let regex = Self::compile_pattern(&regex::escape(&pattern.replace("\r\n", "\n")))?;
        Ok(Self { regex, template: ReplacementTemplate::from_plain_text(replacement) })
    }

    fn compile_pattern(pattern: &str) -> Result<Regex, String> {
        let mut builder = RegexBuilder::new(pattern);
        let regex = builder.multi_line(true).size_limit(REGEX_BYTES_MAX).build();
        regex.map_err(|error| format!("Invalid regex pattern: {error}"))
    }

    /// Replaces all matches in a text. Returns `None` if nothing matches or nothing would change.
    pub fn replace_all(&self, original: &str) -> Option<ReplacementResult> {
        let view = LineView::new(original);
        let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
        for captures in self.regex.captures_iter(view.text()) {
            let whole = captures.get_match().range();
            pieces.push((whole, self.template.expand_groups(&captures)));
        }
        if pieces.is_empty() {
            return None;
        }
        let borrowed: Vec<_> =
            pieces.iter().map(|(range, new)| (range.clone(), new.as_str())).collect();
        let text = view.replace_pieces(&borrowed);
        let (lines, shown) = replaced_lines(view.text(), &pieces);
        (text != original).then_some(ReplacementResult {
            text,
            matches: pieces.len(),
            lines,
            shown,
        })
    }
}

/// Counts the lines in which matches begin, and returns the first of them before and after.
fn replaced_lines(text: &str, pieces: &[(Range<usize>, String)]) -> (usize, Vec<ReplacedLine>) {
    let (mut lines, mut shown) = (0, Vec::new());
    let (mut number, mut counted, mut at) = (1, 0, 0);
    while at < pieces.len() {
        let start = text[..pieces[at].0.start].rfind('\n').map_or(0, |end| end + 1);
        // Collects all matches up to the end of the line in which the last of them ends.
        let (mut next, mut end) = (at, start);
        while next < pieces.len() && (next == at || pieces[next].0.start <= end) {
            let behind = pieces[next].0.end.max(pieces[next].0.start);
            end = text[behind..].find('\n').map_or(text.len(), |ahead| behind + ahead);
            next += 1;
        }
        lines += 1;
        number += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..start]).count();
        counted = start;
        if shown.len() < SHOWN_MAX {
            let (mut after, mut done) = (String::new(), start);
            for (range, new) in &pieces[at..next] {
                after.push_str(&text[done..range.start]);
                after.push_str(new);
                done = range.end;
            }
            after.push_str(&text[done.min(end)..end]);
            let shorten = |text| truncate_chars(text, SHOWN_CHARS_MAX);
            let (before, after) = (shorten(&text[start..end]), shorten(&after));
            shown.push(ReplacedLine { line: number, before, after });
        }
        at = next;
    }
    (lines, shown)
}

/// Returns the text of a group, which is empty if the group did not match.
fn group_text<'a>(captures: &Captures<'a>, number: usize) -> &'a str {
    captures.get(number).map_or("", |group| group.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_replacement(pattern: &str, replacement: &str, text: &str, expected: &str) {
        let replaced = RegexReplacer::new(pattern, replacement).unwrap().replace_all(text);
        assert_eq!(replaced.map_or_else(|| text.to_owned(), |it| it.text), expected);
    }

    #[test]
    fn group_references_work_in_both_syntaxes() {
        check_replacement(r"(\w+) (\w+)", r"\2 \1", "a b", "b a");
        check_replacement(r"(\w+) (\w+)", "$2 $1", "a b", "b a");
        check_replacement(r"(?<first>\w+) (\w+)", r"\g<first>-\g<2>-${first}", "a b", "a-b-a");
        check_replacement(r"(\w)(x)?", r"[\1\2]", "a", "[a]");
        check_replacement("(a)", "${1}0 $10 \\g<0>", "a", "a0 a0 a");
    }

    #[test]
    fn replacement_text_without_a_group_reference_is_literal() {
        check_replacement(
            "price",
            "$5 or $PATH or $$ or ${HOME}",
            "price",
            "$5 or $PATH or $$ or ${HOME}",
        );
        check_replacement("(a)", "$$1 \\\\1 \\.", "a", "$1 \\1 \\.");
        check_replacement("a", r"x\ny\tz", "a", "x\ny\tz");
    }

    #[test]
    fn anchors_match_at_line_ends_and_patterns_span_lines() {
        check_replacement("^l", "L", "l\nl\nx l\n", "L\nL\nx l\n");
        check_replacement(";$", "", "a;\r\nb;\r\n", "a\r\nb\r\n");
        check_replacement("a\nb", "c\nd", "a\r\nb\r\n", "c\r\nd\r\n");
        check_replacement(r"(?s)\{.*\}", "{}", "{\n1\n}\n", "{}\n");
        check_replacement("(?i)ÄRGER", "Ruhe", "ärger", "Ruhe");
    }

    #[test]
    fn matches_and_lines_are_counted() {
        let replaced = RegexReplacer::new("a", "b").unwrap().replace_all("a a\nx\na\n").unwrap();
        assert_eq!((replaced.matches, replaced.lines), (3, 2));
        let shown = |line, before: &str, after: &str| ReplacedLine {
            line,
            before: before.to_owned(),
            after: after.to_owned(),
        };
        assert_eq!(replaced.shown, [shown(1, "a a", "b b"), shown(3, "a", "b")]);
        let over = RegexReplacer::new("b\nc", "x").unwrap().replace_all("a b\nc d\ne\n").unwrap();
        assert_eq!((over.lines, &over.shown[..]), (1, &[shown(1, "a b\nc d", "a x d")][..]));
        let end = RegexReplacer::new("\n", "").unwrap().replace_all("a\nb\n").unwrap();
        assert_eq!((end.matches, &*end.text), (2, "ab"));
        let empty = RegexReplacer::new("^", "> ").unwrap().replace_all("a\n\nb").unwrap();
        assert_eq!((empty.matches, empty.lines, &*empty.text), (3, 3, "> a\n> \n> b"));
    }

    #[test]
    fn replacement_equal_to_the_match_counts_as_no_match() {
        let replacer = RegexReplacer::new("a", "a").unwrap();
        assert_eq!((replacer.replace_all("a"), replacer.replace_all("b")), (None, None));
    }

    #[test]
    fn literal_mode_treats_special_characters_as_text() {
        let literal = |pattern, replacement, text| {
            RegexReplacer::from_literal(pattern, replacement)
                .unwrap()
                .replace_all(text)
                .map(|it| it.text)
        };
        assert_eq!(literal("a(b)", r"$1\q", "a(b)c\r\n"), Some("$1\\qc\r\n".to_owned()));
        assert_eq!((literal("a.", "x", "ab"), literal("", "x", "")), (None, Some("x".to_owned())));
    }

    #[test]
    fn invalid_pattern_or_replacement_is_refused() {
        let wrong = |pattern, replacement| RegexReplacer::new(pattern, replacement).unwrap_err();
        assert!(wrong("(", "").starts_with("Invalid regex pattern: "));
        assert!(wrong(r"\w{1000}{1000}", "").contains("size limit"));
        assert_eq!(wrong("a", r"\1"), r"`\1` in the replacement is not a group of the pattern");
        assert_eq!(
            wrong("a", r"\g<x>"),
            r"`\g<x>` in the replacement is not a group of the pattern"
        );
        assert_eq!(wrong("a", r"\q"), r"`\q` in the replacement is not valid: write `\\q`");
    }
}
