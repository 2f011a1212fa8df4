//! Turns the bytes of a terminal into keys.

/// A key that the line of a question supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    Up,
    Down,
    /// Deletes everything before the cursor.
    KillBefore,
    /// Deletes everything after the cursor.
    KillAfter,
    /// Deletes the word before the cursor.
    KillWord,
    Escape,
    CtrlC,
    CtrlD,
    CtrlZ,
    /// A pasted character. It is text, even if it is a control character.
    Pasted(char),
}

/// Longest escape sequence, in bytes. The bytes of a longer one are dropped.
const SEQUENCE_BYTES_MAX: usize = 32;

/// Decodes bytes that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    /// The beginning of a key whose end has not arrived.
    begun: Vec<u8>,
    /// Whether the bytes belong to a paste. All of them are text, except Ctrl-C.
    is_pasted: bool,
}

impl Decoder {
    /// Decodes the next piece. An escape at the end of a piece is the Escape key, because terminals
    /// send a sequence at once. In a paste, which arrives in many pieces, it begins a sequence.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys: Vec<Key> = bytes.iter().filter_map(|byte| self.byte(*byte)).collect();
        if self.begun == [0x1b] && !self.is_pasted {
            self.begun.clear();
            keys.push(Key::Escape);
        }
        keys
    }

    fn byte(&mut self, byte: u8) -> Option<Key> {
        if self.begun.first() == Some(&0x1b) {
            return self.sequence(byte);
        }
        if byte.is_ascii() {
            // The earlier bytes were half of a character whose other half is missing.
            self.begun.clear();
            return if self.is_pasted { self.take_pasted(byte) } else { self.ascii(byte) };
        }
        self.begun.push(byte);
        match std::str::from_utf8(&self.begun) {
            Ok(text) => {
                let sign = text.chars().next();
                self.begun.clear();
                let key = if self.is_pasted { Key::Pasted } else { Key::Char };
                sign.filter(|sign| !sign.is_control()).map(key)
            }
            Err(error) => {
                if error.error_len().is_some() {
                    self.begun.clear();
                }
                None
            }
        }
    }

    fn ascii(&mut self, byte: u8) -> Option<Key> {
        Some(match byte {
            0x1b => {
                self.begun.push(byte);
                return None;
            }
            b'\r' | b'\n' => Key::Enter,
            0x08 | 0x7f => Key::Backspace,
            0x01 => Key::Home,
            0x02 => Key::Left,
            0x03 => Key::CtrlC,
            0x04 => Key::CtrlD,
            0x05 => Key::End,
            0x06 => Key::Right,
            0x0b => Key::KillAfter,
            0x0e => Key::Down,
            0x10 => Key::Up,
            0x15 => Key::KillBefore,
            0x17 => Key::KillWord,
            0x1a => Key::CtrlZ,
            b' '..=b'~' => Key::Char(char::from(byte)),
            _ => return None,
        })
    }

    /// Takes an ASCII character of a paste.
    fn take_pasted(&mut self, byte: u8) -> Option<Key> {
        match byte {
            0x1b => {
                self.begun.push(byte);
                None
            }
            0x03 => Some(Key::CtrlC),
            b'\r' | b'\n' => Some(Key::Pasted('\n')),
            b' '..=b'~' => Some(Key::Pasted(char::from(byte))),
            _ => None,
        }
    }

    /// Takes a byte of an escape sequence, such as that of an arrow key.
    fn sequence(&mut self, byte: u8) -> Option<Key> {
        let is_first = self.begun.len() == 1;
        if byte == 0x1b {
            self.begun.truncate(1);
            return None;
        }
        self.begun.push(byte);
        let goes_on = match is_first {
            true => matches!(byte, b'[' | b'O'),
            false => !matches!(byte, b'@'..=b'~') && self.begun.len() < SEQUENCE_BYTES_MAX,
        };
        if goes_on {
            return None;
        }
        let sequence = std::mem::take(&mut self.begun);
        let parameters = sequence.get(2..sequence.len() - 1).unwrap_or_default();
        let first = parameters.split(|byte| *byte == b';').next().unwrap_or_default();
        Some(match (byte, first) {
            _ if is_first => return None,
            (b'~', b"200" | b"201") => {
                self.is_pasted = first == b"200";
                return None;
            }
            _ if self.is_pasted => return None,
            (b'A', _) => Key::Up,
            (b'B', _) => Key::Down,
            (b'C', _) => Key::Right,
            (b'D', _) => Key::Left,
            (b'H', _) | (b'~', b"1" | b"7") => Key::Home,
            (b'F', _) | (b'~', b"4" | b"8") => Key::End,
            (b'~', b"3") => Key::Delete,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&[u8]], expected: &[Key]) {
        let mut decoder = Decoder::default();
        let keys: Vec<Key> = pieces.iter().flat_map(|piece| decoder.keys(piece)).collect();
        assert_eq!(keys, expected, "{pieces:?}");
    }

    #[test]
    fn arrows_and_their_like_are_keys_and_not_text() {
        check(&[b"\x1b[D\x1bOH\x1b[1~\x1b[3~"], &[Key::Left, Key::Home, Key::Home, Key::Delete]);
        check(&[b"\x1b[1;5C\x1b[A"], &[Key::Right, Key::Up]);
        check(&[b"\x1bx\x1b[5~\x1b[?1;2cb"], &[Key::Char('b')]);
    }

    #[test]
    fn a_key_may_come_in_pieces_and_an_escape_alone_is_one() {
        check(&[b"\x1b[", b"D"], &[Key::Left]);
        check(&["é".as_bytes()], &[Key::Char('é')]);
        check(&[&"é".as_bytes()[..1], &"é".as_bytes()[1..]], &[Key::Char('é')]);
        check(&[b"\x1b", b"[D"], &[Key::Escape, Key::Char('['), Key::Char('D')]);
    }

    #[test]
    fn a_paste_is_text_wherever_it_is_cut() {
        let paste = b"\x1b[200~\x04\x1a\x10\x7f\x15y\r\x1b[A\x1bx\x1b[201~\x04";
        let pasted = ['y', '\n'].map(Key::Pasted);
        let expected = [&pasted[..], &[Key::CtrlD]].concat();
        check(&[paste], &expected);
        for at in 6..paste.len() {
            check(&[&paste[..at], &paste[at..]], &expected);
        }
        check(&["\x1b[200~é".as_bytes(), b"\x03"], &[Key::Pasted('é'), Key::CtrlC]);
    }

    #[test]
    fn wrong_bytes_and_control_characters_are_no_keys() {
        check(&[b"a\xff\xc3b\x00\x07\tc"], &[Key::Char('a'), Key::Char('b'), Key::Char('c')]);
        check(&["\u{85}x".as_bytes()], &[Key::Char('x')]);
        let long = [b"\x1b[".as_slice(), &[b'1'; 100], b"~z"].concat();
        assert!(Decoder::default().keys(&long).contains(&Key::Char('z')));
    }
}
