//! Formats text for display: on one line, and with a maximum length.

/// Puts a text on one line: whitespace and control characters become single spaces.
pub fn one_line(text: &str) -> String {
    let words = text.split(|sign: char| sign.is_whitespace() || sign.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns at most `chars_max` characters of a text, followed by `…` if the text has more.
pub fn truncate_chars(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// Returns at most `bytes_max` bytes of a text. A longer text is cut between characters and ends
/// with `…`, which counts toward the limit.
pub fn truncate_bytes(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let room = bytes_max.saturating_sub('…'.len_utf8());
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_collapses_spaces_and_removes_control_characters() {
        assert_eq!(one_line(" a\n\n b\t\u{1b}c\u{2028}d "), "a b c d");
    }

    #[test]
    fn truncation_keeps_whole_characters_and_marks_only_longer_text() {
        assert_eq!(
            [
                truncate_chars("éé", 2),
                truncate_chars("ééé", 2),
                truncate_chars("a b", 2),
                truncate_chars("a", 0)
            ],
            ["éé", "éé…", "a…", "…"]
        );
        let at = |bytes_max| truncate_bytes("éééé", bytes_max);
        assert_eq!([at(8), at(7), at(6), at(2)], ["éééé", "éé…", "é…", "…"]);
    }
}
