//! Cuts a long text into pages.

use jaato_plugin_sdk::prelude::*;

/// Bytes of an answer besides its text.
const REST_BYTES: usize = 2 * 1024;

/// The size of answers if the host does not limit them.
const BYTES_DEFAULT: usize = 64 * 1024;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct TextPart<'a> {
    /// The part.
    pub text: &'a str,
    /// The number of characters of the whole text.
    pub length: usize,
    /// The character after the part, if there is one.
    pub next_offset: Option<usize>,
}

/// Returns the part of a text that begins at a character, and fits into an answer for the model.
///
/// # Errors
/// `invalid_arguments` if the text ends before that character.
pub fn text_part(
    text: &str,
    offset: usize,
    characters_max: usize,
    answer_bytes_max: Option<usize>,
) -> Result<TextPart<'_>> {
    let room = answer_bytes_max.unwrap_or(BYTES_DEFAULT).saturating_sub(REST_BYTES).max(512);
    let (mut start, mut end) = (None, None);
    let (mut length, mut bytes) = (0, 0);
    for (at, letter) in text.char_indices() {
        if length == offset {
            start = Some(at);
        }
        if length >= offset && end.is_none() {
            bytes += json_char_bytes(letter);
            if bytes > room || length - offset >= characters_max {
                end = Some((at, length));
            }
        }
        length += 1;
    }
    let start = match start {
        Some(start) => start,
        None if offset == length => text.len(),
        None => {
            let text = format!("`offset` is {offset}, but the text has {length} characters");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
    };
    let (end, next_offset) = end.map_or((text.len(), None), |(at, next)| (at, Some(next)));
    Ok(TextPart { text: &text[start..end], length, next_offset })
}

fn json_char_bytes(letter: char) -> usize {
    match letter {
        '\n' | '\t' | '\r' | '"' | '\\' => 2,
        other if other.is_control() => 6,
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json;

    use super::*;

    #[test]
    fn parts_follow_each_other_without_a_gap() {
        let text = "é\n\"x".repeat(2000);
        let (mut offset, mut whole) = (0, String::new());
        loop {
            let part = text_part(&text, offset, 3000, Some(4096)).unwrap();
            assert!(serde_json::to_string(part.text).unwrap().len() <= 2048 + 2);
            assert_eq!(part.length, 8000);
            whole.push_str(part.text);
            match part.next_offset {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(whole, text);
    }

    #[test]
    fn limit_on_characters_and_the_end_are_exact() {
        let part = |offset, max| text_part("abcd", offset, max, None);
        assert_eq!(part(0, 4).unwrap(), TextPart { text: "abcd", length: 4, next_offset: None });
        assert_eq!(part(1, 2).unwrap(), TextPart { text: "bc", length: 4, next_offset: Some(3) });
        assert_eq!(part(4, 2).unwrap(), TextPart { text: "", length: 4, next_offset: None });
        assert_eq!(part(5, 2).unwrap_err().kind, ErrorKind::InvalidArguments);
    }
}
