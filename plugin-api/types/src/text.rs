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

/// Returns the visible text in one line, cut to at most this many characters.
pub fn visible_line(text: &str, chars_max: usize) -> String {
    truncate_chars(&one_line(&without_invisible(text)), chars_max)
}

/// Removes characters without a visible form, which can hide instructions or change the order of
/// the text. Joiners stay between letters of scripts that need them.
pub fn without_invisible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_kept = match letter {
            '\n' | '\t' => true,
            '\u{200c}' | '\u{200d}' => visible.chars().next_back().is_some_and(can_take_joiner),
            other => !is_invisible(other),
        };
        if is_kept {
            visible.push(letter);
        }
    }
    visible
}

/// Returns true if a joiner may follow a letter: not in Latin scripts, and not a second one.
fn can_take_joiner(letter: char) -> bool {
    letter as u32 > 0x2ff && !matches!(letter, '\u{200c}' | '\u{200d}')
}

fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            // Soft hyphen, joiners, marks and overrides of the direction, invisible operators.
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            // Tags, and selectors that can encode a hidden text.
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed() {
        assert_eq!(
            without_invisible("a\u{200b}b\u{202e}c\u{2066}d\u{feff}e\u{ad}f\u{1b}[31m\n\tg"),
            "abcdef[31m\n\tg"
        );
        let tags: String =
            "ignore".chars().map(|it| char::from_u32(0xe0000 + it as u32).unwrap()).collect();
        assert_eq!(without_invisible(&format!("x{tags}y\u{e0100}")), "xy");
    }

    #[test]
    fn visible_line_is_short_and_single() {
        assert_eq!(visible_line(" a\n b\u{200b} ", 10), "a b");
        assert_eq!(visible_line("abcdef", 3), "abc…");
    }

    #[test]
    fn joiners_stay_only_where_scripts_need_them() {
        assert_eq!(without_invisible("می\u{200c}خواهم"), "می\u{200c}خواهم");
        assert_eq!(without_invisible("a\u{200c}b\u{200d}c"), "abc");
        assert_eq!(without_invisible("می\u{200c}\u{200c}\u{200d}خ"), "می\u{200c}خ");
    }

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
