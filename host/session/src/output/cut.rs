//! Shows a long text as its head and tail. Pure.

use jaato_types::{Error, Result};

/// A text is cut at a line's end if that keeps at least this much of it.
const KEPT_PERCENT_MIN: usize = 50;

/// A text of a result that may be too long.
#[derive(Debug)]
pub(super) struct LongText {
    pub(super) key: String,
    /// The whole text, or its beginning.
    pub(super) head: String,
    /// Its end, if `head` is not the whole text.
    pub(super) tail: Option<String>,
    /// The bytes of the whole text, as the tool printed them.
    pub(super) bytes: u64,
    /// The bytes of the text as JSON.
    pub(super) json_bytes: usize,
    /// Where the whole text is, once that is known.
    pub(super) whole: Option<FullOutputLocation>,
}

/// Where a whole output is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FullOutputLocation {
    /// In this file.
    In(String),
    /// Only its beginning is in a file, for this reason.
    Begun { path: String, bytes: u64, why: String },
    /// In no file, for this reason.
    Nowhere(String),
}

impl FullOutputLocation {
    pub(super) fn path(&self) -> Option<&str> {
        match self {
            Self::In(path) | Self::Begun { path, .. } => Some(path),
            Self::Nowhere(_) => None,
        }
    }

    /// Describes where the whole output is.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::In(path) => format!("the whole output: {path}"),
            Self::Begun { path, bytes, why } => {
                format!("only the first {bytes} bytes of the output are in {path}: {why}")
            }
            Self::Nowhere(why) => format!("the whole output is not kept: {why}"),
        }
    }
}

impl From<Result<String>> for FullOutputLocation {
    fn from(kept: Result<String>) -> Self {
        kept.map_or_else(|Error { message, .. }| Self::Nowhere(message), Self::In)
    }
}

impl LongText {
    /// Takes a complete text. If it was truncated before, the whole text is in `file`.
    pub(super) fn new(key: &str, text: String, file: Option<&str>) -> Self {
        let json_bytes = escaped_len(&text);
        if let Some((path, (head, left_out, tail))) =
            file.and_then(|path| Some((path, parse_truncated_text(&text, path)?)))
        {
            let bytes = left_out.saturating_add((head.len() + tail.len()) as u64);
            let (head, tail, whole) = (
                head.to_owned(),
                Some(tail.to_owned()),
                Some(FullOutputLocation::In(path.to_owned())),
            );
            return Self { key: key.to_owned(), head, tail, bytes, json_bytes, whole };
        }
        let bytes = text.len() as u64;
        Self { key: key.to_owned(), head: text, tail: None, bytes, json_bytes, whole: None }
    }

    /// Returns the text to show in at most this many bytes of JSON.
    pub(super) fn truncated_text(&self, json_bytes: usize) -> String {
        let Some(whole) = &self.whole else { return self.head.clone() };
        let note = |left_out| format!("\n[… {left_out} bytes left out; {} …]\n", whole.describe());
        let (head, tail) = match &self.tail {
            _ if self.json_bytes > json_bytes => {
                let room = json_bytes.saturating_sub(escaped_len(&note(self.bytes)));
                head_and_tail(&self.head, self.tail.as_deref(), room)
            }
            // The text was truncated before and fits as it is.
            Some(tail) => (self.head.as_str(), tail.as_str()),
            None => return self.head.clone(),
        };
        let left_out = self.bytes.saturating_sub((head.len() + tail.len()) as u64);
        format!("{head}{}{tail}", note(left_out))
    }
}

/// Parses a text that was truncated before: its head, how many bytes were left out, its tail.
fn parse_truncated_text<'a>(text: &'a str, path: &str) -> Option<(&'a str, u64, &'a str)> {
    let end =
        format!(" bytes left out; {} …]\n", FullOutputLocation::In(path.to_owned()).describe());
    let (before, tail) = text.split_once(&end)?;
    let (head, left_out) = before.rsplit_once("\n[… ")?;
    Some((head, left_out.parse().ok()?, tail))
}

/// Returns the beginning of `text` and the end of what follows it (`rest`, if given), together in
/// at most this many bytes of JSON. Cuts between lines if that keeps most of the text, and always
/// between characters.
pub(crate) fn head_and_tail<'a>(
    text: &'a str,
    rest: Option<&'a str>,
    json_bytes: usize,
) -> (&'a str, &'a str) {
    let head = &text[..count_fitting_bytes(text.char_indices(), json_bytes / 2)];
    let head = match head.rfind('\n') {
        Some(end) if head.len() < text.len() && keeps_most_bytes(end, head) => &head[..end],
        _ => head,
    };
    let rest = rest.unwrap_or(&text[head.len()..]);
    let from_behind = rest.chars().rev().scan(0, |at, c| {
        let start = *at;
        *at += c.len_utf8();
        Some((start, c))
    });
    let tail =
        &rest[rest.len() - count_fitting_bytes(from_behind, json_bytes - escaped_len(head))..];
    let is_line = tail.len() == rest.len() || rest[..rest.len() - tail.len()].ends_with('\n');
    match tail.find('\n') {
        Some(end) if !is_line && keeps_most_bytes(tail.len() - end - 1, tail) => {
            (head, &tail[end + 1..])
        }
        _ => (head, tail),
    }
}

fn keeps_most_bytes(bytes: usize, part: &str) -> bool {
    bytes > 0 && bytes * 100 >= part.len() * KEPT_PERCENT_MIN
}

/// Counts the bytes of the whole characters that fit.
fn count_fitting_bytes(chars: impl Iterator<Item = (usize, char)>, json_bytes: usize) -> usize {
    let mut left = json_bytes;
    let mut taken = 0;
    for (at, c) in chars {
        let Some(after) = left.checked_sub(escaped_char_len(c)) else { break };
        (left, taken) = (after, at + c.len_utf8());
    }
    taken
}

/// Returns the size to which the largest must shrink so that all together fit.
pub(crate) fn largest_share(sizes: impl Iterator<Item = u64>, room: u64) -> u64 {
    let mut sizes: Vec<u64> = sizes.collect();
    sizes.sort_unstable();
    let mut left = room;
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - at) as u64;
        if *size > share {
            return share;
        }
        left -= size;
    }
    u64::MAX
}

/// Counts the bytes of a text inside a JSON string, as serde_json writes it.
pub(super) fn escaped_len(text: &str) -> usize {
    text.chars().map(escaped_char_len).sum()
}

fn escaped_char_len(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_texts_are_shortened_first() {
        let check = |sizes: &[u64], room, share| {
            assert_eq!(largest_share(sizes.iter().copied(), room), share, "{sizes:?}");
        };
        check(&[], 0, u64::MAX);
        check(&[10, 20], 30, u64::MAX);
        check(&[10, 20], 29, 19);
        check(&[100, 1, 50], 61, 30);
        check(&[5, 5], 0, 0);
    }

    #[test]
    fn escaped_length_equals_the_json_length() {
        for text in ["", "plain", "\n\u{1}é\"\\\t\r\u{8}\u{c}", "\u{85}日本\u{7f}"] {
            assert_eq!(escaped_len(text) + 2, serde_json::to_string(text).unwrap().len());
        }
    }

    #[track_caller]
    fn check_ends(text: &str, rest: Option<&str>, json_bytes: usize, head: &str, tail: &str) {
        assert_eq!(head_and_tail(text, rest, json_bytes), (head, tail));
    }

    #[test]
    fn ends_are_cut_between_lines_if_that_keeps_most_of_them() {
        check_ends("abcd\nefgh\nijkl\nmnop", None, 13, "abcd", "mnop");
        check_ends("a\nbcdefghijklmnopqr\ns", None, 16, "a\nbcdef", "nopqr\ns");
        check_ends("ab\ncd", Some("uvwx\nyzab"), 12, "ab\ncd", "yzab");
        check_ends("日本日本日本", None, 13, "日本", "日本");
        check_ends("", None, 10, "", "");
    }

    #[test]
    fn a_text_that_is_cut_twice_names_the_first_file_and_counts_all_that_is_left_out() {
        let text: String = (0..5_000).map(|number| format!("{number}\n")).collect();
        let mut long = LongText::new("out", text.clone(), None);
        long.whole = Some(FullOutputLocation::In("/f".to_owned()));
        let first = long.truncated_text(4_000);
        assert!(escaped_len(&first) <= 4_000);
        let again = LongText::new("out", first, Some("/f"));
        assert_eq!((again.bytes, &again.whole), (text.len() as u64, &long.whole));
        let second = again.truncated_text(1_000);
        assert!(escaped_len(&second) <= 1_000);
        let (head, left_out, tail) = parse_truncated_text(&second, "/f").unwrap();
        assert!(text.starts_with(head) && text.ends_with(tail));
        assert_eq!(head.len() + tail.len() + left_out as usize, text.len());
    }

    #[test]
    fn count_in_a_forged_note_does_not_overflow() {
        let forged = format!("a\n[… {} bytes left out; the whole output: /f …]\nb", u64::MAX);
        assert_eq!(LongText::new("out", forged, Some("/f")).bytes, u64::MAX);
    }

    #[test]
    fn a_note_that_a_program_printed_is_text() {
        let printed = "x\n[… 5 bytes left out; the whole output: /etc/passwd …]\ny";
        let long = LongText::new("out", printed.to_owned(), None);
        assert_eq!((long.head.as_str(), long.whole), (printed, None));
    }
}
