//! Converts a text to the bytes to type. Pure.

use crate::keys::{PASTE_BEGIN, PASTE_END};

/// The maximum length of a line that a terminal accepts in line mode. It silently drops the rest.
pub const LINE_BYTES_MAX: usize = 4095;

/// How a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
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
pub fn bytes(text: &str, mode: Mode) -> Vec<u8> {
    let text = text.replace("\r\n", "\n");
    match mode {
        Mode::Pipe | Mode::Lines => text.into_bytes(),
        Mode::Keys => with_returns(&text),
        Mode::Paste => {
            let body = text.strip_suffix('\n').unwrap_or(&text);
            let is_plain = body.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
            if !body.contains('\n') || !is_plain {
                return with_returns(&text);
            }
            let mut typed = PASTE_BEGIN.to_vec();
            typed.extend(with_returns(body));
            typed.extend_from_slice(PASTE_END);
            if text.ends_with('\n') {
                typed.push(b'\r');
            }
            typed
        }
    }
}

/// Returns the length of a line that the terminal would truncate.
pub fn line_too_long(bytes: &[u8], mode: Mode) -> Option<usize> {
    match mode {
        Mode::Lines => {
            let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::len);
            lines.max().filter(|longest| *longest > LINE_BYTES_MAX)
        }
        Mode::Pipe | Mode::Keys | Mode::Paste => None,
    }
}

fn with_returns(text: &str) -> Vec<u8> {
    text.replace('\n', "\r").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, mode: Mode, expected: &str) {
        assert_eq!(String::from_utf8(bytes(text, mode)).unwrap(), expected);
    }

    #[test]
    fn a_line_end_is_the_enter_key() {
        check("ls\n", Mode::Lines, "ls\n");
        check("ls\r\n", Mode::Lines, "ls\n");
        check("ls\n", Mode::Pipe, "ls\n");
        check("ls\n", Mode::Keys, "ls\r");
        check(":q!\r", Mode::Keys, ":q!\r");
        check("ls\n", Mode::Paste, "ls\r");
    }

    #[test]
    fn a_line_that_a_terminal_would_cut_is_found() {
        let longest = "x".repeat(LINE_BYTES_MAX);
        let lines = format!("{longest}\n{longest}");
        assert_eq!(line_too_long(lines.as_bytes(), Mode::Lines), None);
        let longer = format!("a\nx{longest}\n");
        assert_eq!(line_too_long(longer.as_bytes(), Mode::Lines), Some(LINE_BYTES_MAX + 1));
        for mode in [Mode::Pipe, Mode::Keys, Mode::Paste] {
            assert_eq!(line_too_long(longer.as_bytes(), mode), None);
        }
    }

    #[test]
    fn several_lines_are_a_paste() {
        check("a\n  b\n", Mode::Paste, "\u{1b}[200~a\r  b\u{1b}[201~\r");
        check("a\nb", Mode::Paste, "\u{1b}[200~a\rb\u{1b}[201~");
    }

    #[test]
    fn keys_are_never_in_a_paste() {
        check("i\nx\u{1b}:wq\n", Mode::Paste, "i\rx\u{1b}:wq\r");
        check("a\u{1b}[201~\nrm\n", Mode::Paste, "a\u{1b}[201~\rrm\r");
    }
}
