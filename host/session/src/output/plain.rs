//! Converts a program's output to readable text.
//!
//! Terminal sequences (colours, cursor, titles) are left out. `\r\n` becomes `\n`. A single `\r`,
//! with which progress bars restart their line, stays. Bytes that are not valid UTF-8, and all
//! other control characters, become U+FFFD.

/// Replaces a byte that is not text.
const NO_TEXT: char = '\u{fffd}';

/// Reads bytes as they arrive, split anywhere.
#[derive(Debug, Default)]
pub(super) struct PlainTextReader {
    state: PlainReaderState,
    /// The incomplete beginning of a character.
    partial: Vec<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum PlainReaderState {
    #[default]
    Text,
    /// A `\r` that may be followed by `\n`.
    Return,
    /// After ESC.
    Escape,
    /// In ESC [ …, which ends with a letter or a similar character.
    Control,
    /// In ESC ] … and similar sequences, which end with BEL or ESC \.
    Title,
    /// An ESC in it.
    TitleEscape,
}

impl PlainTextReader {
    /// Reads a piece.
    pub(super) fn decode_text(&mut self, bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            if self.state == PlainReaderState::Text && self.partial.is_empty() {
                // Most output is plain, so handle runs of it at once instead of byte by byte.
                let plain = rest.iter().take_while(|byte| is_plain(**byte)).count();
                text.extend(std::str::from_utf8(&rest[..plain]));
                rest = &rest[plain..];
                if plain > 0 {
                    continue;
                }
            }
            self.read_byte(byte, &mut text);
            rest = behind;
        }
        text
    }

    /// Returns the text for a sequence that does not continue.
    pub(super) fn finish(&mut self) -> &'static str {
        let Self { state, partial } = std::mem::take(self);
        match state {
            PlainReaderState::Return => "\r",
            _ if !partial.is_empty() => "\u{fffd}",
            PlainReaderState::Text
            | PlainReaderState::Escape
            | PlainReaderState::Control
            | PlainReaderState::Title
            | PlainReaderState::TitleEscape => "",
        }
    }

    fn read_byte(&mut self, byte: u8, text: &mut String) {
        self.state = match (self.state, byte) {
            (PlainReaderState::Text, _) => return self.read_character(byte, text),
            (PlainReaderState::Return, _) => {
                self.state = PlainReaderState::Text;
                // `\r\n` is handled with its second half.
                if byte != b'\n' {
                    text.push('\r');
                }
                return self.read_character(byte, text);
            }
            (PlainReaderState::Escape, b'[') => PlainReaderState::Control,
            (PlainReaderState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => PlainReaderState::Title,
            // ESC ( B and the like: one more byte belongs to it.
            (PlainReaderState::Escape, b' '..=b'/') => PlainReaderState::Escape,
            (PlainReaderState::Escape, _) | (PlainReaderState::Control, 0x40..=0x7e | 0..b' ') => {
                PlainReaderState::Text
            }
            (PlainReaderState::Control, _) => PlainReaderState::Control,
            // No title is that long, so a line end ends it.
            (PlainReaderState::Title | PlainReaderState::TitleEscape, 7 | b'\n') => {
                PlainReaderState::Text
            }
            (PlainReaderState::TitleEscape, b'\\') => PlainReaderState::Text,
            (PlainReaderState::Title | PlainReaderState::TitleEscape, 0x1b) => {
                PlainReaderState::TitleEscape
            }
            (PlainReaderState::Title | PlainReaderState::TitleEscape, _) => PlainReaderState::Title,
        };
    }

    fn read_character(&mut self, byte: u8, text: &mut String) {
        if !self.partial.is_empty() {
            self.partial.push(byte);
            match std::str::from_utf8(&self.partial) {
                Ok(character) => {
                    let is_control = character.chars().any(char::is_control);
                    text.push_str(if is_control { "\u{fffd}" } else { character });
                    return self.partial.clear();
                }
                Err(error) if error.error_len().is_none() => return,
                // The byte does not continue the character, so it begins a new one.
                Err(_) => {
                    self.partial.clear();
                    text.push(NO_TEXT);
                }
            }
        }
        match byte {
            0x1b => self.state = PlainReaderState::Escape,
            b'\r' => self.state = PlainReaderState::Return,
            byte if is_plain(byte) => text.push(char::from(byte)),
            0xc2..=0xf4 => self.partial.push(byte),
            _ => text.push(NO_TEXT),
        }
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7e | b'\n' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(bytes: &[u8], expected: &str) {
        let mut whole = PlainTextReader::default();
        let text = whole.decode_text(bytes) + whole.finish();
        assert_eq!(text, expected);
        // Splitting between any two bytes produces the same text.
        let mut cut = PlainTextReader::default();
        let mut text = String::new();
        for byte in bytes {
            text += &cut.decode_text(&[*byte]);
        }
        assert_eq!(text + cut.finish(), expected);
    }

    #[test]
    fn plain_text_is_unchanged() {
        check_text("a\tb\nmönd 日本 🌒\n".as_bytes(), "a\tb\nmönd 日本 🌒\n");
        check_text(b"", "");
    }

    #[test]
    fn terminal_sequences_are_left_out() {
        check_text(b"\x1b[1;31mred\x1b[0m \x1b[2Kline", "red line");
        check_text(b"\x1b]0;title\x07text", "text");
        check_text(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
        check_text(b"\x1b(Bplain\x1b=", "plain");
        check_text(b"\x1b]never ended\nnext line", "next line");
    }

    #[test]
    fn carriage_return_is_removed_only_before_a_newline() {
        check_text(b"a\r\nb", "a\nb");
        check_text(b"10 %\r20 %\r", "10 %\r20 %\r");
        check_text(b"\r\r\n", "\r\n");
    }

    #[test]
    fn invalid_utf8_and_control_characters_are_replaced() {
        check_text(b"\xff\xfe", "\u{fffd}\u{fffd}");
        check_text(b"a\x00b\x08", "a\u{fffd}b\u{fffd}");
        check_text(b"\xe6\x97", "\u{fffd}");
        check_text(b"\xe6\x97a", "\u{fffd}a");
        check_text(b"\xe6\xe6\x97\xa5", "\u{fffd}\u{65e5}");
        check_text("\u{85}".as_bytes(), "\u{fffd}");
        check_text(b"\xc3\x1b[0mx", "\u{fffd}x");
    }
}
