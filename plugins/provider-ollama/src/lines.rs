//! Cuts a body into lines, wherever its pieces were cut.

use jaato_plugin_sdk::prelude::*;

/// Longest line. A line is a token or a few, or a call with its arguments, or an answer that comes
/// at once.
pub const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A line that has not ended yet.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Takes a piece and gives the lines that it ends, without those that are empty.
    ///
    /// # Errors
    /// When a line is longer than any that a server means.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut ended = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if self.begun.len() > LINE_BYTES_MAX {
                let text = format!("the server sends a line of more than {LINE_BYTES_MAX} bytes");
                return Err(Error::new(ErrorKind::Provider, text));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.begun);
                ended.extend((!line.trim_ascii().is_empty()).then_some(line));
            }
        }
        Ok(ended)
    }

    /// Gives the line that the body's end left without an end of its own: an answer that is not
    /// streamed is one.
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.begun.trim_ascii().is_empty()).then_some(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_wherever_they_were_cut() {
        let body = b"{\"a\":1}\n\n{\"b\":\"\xc3\xa9\"}\r\n{\"c\"";
        for at in 0..body.len() {
            let mut lines = Lines::default();
            let mut ended = lines.push(&body[..at]).unwrap();
            ended.extend(lines.push(&body[at..]).unwrap());
            assert_eq!(
                ended,
                [b"{\"a\":1}\n".to_vec(), b"{\"b\":\"\xc3\xa9\"}\r\n".to_vec()],
                "{at}"
            );
            assert_eq!(lines.finish().as_deref(), Some(&b"{\"c\""[..]));
        }
    }

    #[test]
    fn a_line_without_an_end_is_given_up() {
        let mut lines = Lines::default();
        assert_eq!(lines.push(&vec![b'x'; LINE_BYTES_MAX]), Ok(Vec::new()));
        assert!(lines.push(b"x").is_err());
        assert_eq!(Lines::default().finish(), None);
    }
}
