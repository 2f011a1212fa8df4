//! Converts a text to the bytes to type. Pure.

use crate::keys::{PASTE_BEGIN, PASTE_END};

/// The maximum length of a line that a terminal accepts in line mode. It silently drops the rest.
pub const LINE_BYTES_MAX: usize = 4095;

/// How a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramInputMode {
    /// From a pipe.
    Pipe,
    /// Line by line, edited by the terminal's driver.
    Lines,
    /// Key by key.
    Keys,
    /// Key by key, with marks around pasted text.
    Paste,
}

/// Returns the bytes to type for a text. A line end is the Enter key, which is a carriage return
/// unless a driver converts it to a line feed. Several lines are pasted if the program supports it,
/// so that it does not indent them itself.
pub fn typed_bytes(text: &str, mode: ProgramInputMode) -> Vec<u8> {
    let text = text.replace("\r\n", "\n");
    match mode {
        ProgramInputMode::Pipe | ProgramInputMode::Lines => text.into_bytes(),
        ProgramInputMode::Keys => with_carriage_returns(&text),
        ProgramInputMode::Paste => {
            let body = text.strip_suffix('\n').unwrap_or(&text);
            let is_plain = body.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
            if !body.contains('\n') || !is_plain {
                return with_carriage_returns(&text);
            }
            let mut typed = PASTE_BEGIN.to_vec();
            typed.extend(with_carriage_returns(body));
            typed.extend_from_slice(PASTE_END);
            if text.ends_with('\n') {
                typed.push(b'\r');
            }
            typed
        }
    }
}

/// Returns the length of a line that the terminal would truncate.
pub fn too_long_line_length(bytes: &[u8], mode: ProgramInputMode) -> Option<usize> {
    match mode {
        ProgramInputMode::Lines => {
            let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::len);
            lines.max().filter(|longest| *longest > LINE_BYTES_MAX)
        }
        ProgramInputMode::Pipe | ProgramInputMode::Keys | ProgramInputMode::Paste => None,
    }
}

fn with_carriage_returns(text: &str) -> Vec<u8> {
    text.replace('\n', "\r").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_typed_bytes(text: &str, mode: ProgramInputMode, expected: &str) {
        assert_eq!(String::from_utf8(typed_bytes(text, mode)).unwrap(), expected);
    }

    #[test]
    fn newline_is_typed_as_the_enter_key() {
        check_typed_bytes("ls\n", ProgramInputMode::Lines, "ls\n");
        check_typed_bytes("ls\r\n", ProgramInputMode::Lines, "ls\n");
        check_typed_bytes("ls\n", ProgramInputMode::Pipe, "ls\n");
        check_typed_bytes("ls\n", ProgramInputMode::Keys, "ls\r");
        check_typed_bytes(":q!\r", ProgramInputMode::Keys, ":q!\r");
        check_typed_bytes("ls\n", ProgramInputMode::Paste, "ls\r");
    }

    #[test]
    fn line_longer_than_the_terminal_limit_is_detected() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let lines = format!("{longest}\n{longest}");
        assert_eq!(too_long_line_length(lines.as_bytes(), ProgramInputMode::Lines), None);
        let longer = format!("a\nx{longest}\n");
        assert_eq!(
            too_long_line_length(longer.as_bytes(), ProgramInputMode::Lines),
            Some(LINE_BYTES_MAX + 1)
        );
        for mode in [ProgramInputMode::Pipe, ProgramInputMode::Keys, ProgramInputMode::Paste] {
            assert_eq!(too_long_line_length(longer.as_bytes(), mode), None);
        }
    }

    #[test]
    fn several_lines_are_typed_as_a_paste() {
        check_typed_bytes("a\n  b\n", ProgramInputMode::Paste, "\u{1b}[200~a\r  b\u{1b}[201~\r");
        check_typed_bytes("a\nb", ProgramInputMode::Paste, "\u{1b}[200~a\rb\u{1b}[201~");
    }

    #[test]
    fn text_with_keys_is_never_pasted() {
        check_typed_bytes("i\nx\u{1b}:wq\n", ProgramInputMode::Paste, "i\rx\u{1b}:wq\r");
        check_typed_bytes("a\u{1b}[201~\nrm\n", ProgramInputMode::Paste, "a\u{1b}[201~\rrm\r");
    }
}
