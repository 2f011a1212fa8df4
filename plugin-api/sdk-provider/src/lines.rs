//! Splits a body into lines, for servers that answer with lines of JSON.

use jaato_plugin_sdk::prelude::*;

/// Turns bytes, split anywhere, into lines.
#[derive(Debug)]
pub struct StreamLineSplitter {
    /// A line without its end.
    begun: Vec<u8>,
    bytes_max: usize,
}

impl StreamLineSplitter {
    /// Creates a reader for lines of at most `bytes_max` bytes, including their ends.
    pub fn new(bytes_max: usize) -> Self {
        Self { begun: Vec::new(), bytes_max }
    }

    /// Takes a piece and returns the lines that it completes, except empty ones.
    ///
    /// # Errors
    /// Fails if a line is longer than the limit.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut ended = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if self.begun.len() > self.bytes_max {
                let text = format!("the server sent a line of more than {} bytes", self.bytes_max);
                return Err(Error::new(ErrorKind::Provider, text));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.begun);
                ended.extend((!line.trim_ascii().is_empty()).then_some(line));
            }
        }
        Ok(ended)
    }

    /// Returns the last line if it has no line end, as in an answer that is not streamed.
    pub fn finish(self) -> Option<Vec<u8>> {
        (!self.begun.trim_ascii().is_empty()).then_some(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

    #[test]
    fn lines_are_the_same_wherever_they_were_cut() {
        let body = b"{\"a\":1}\n\n{\"b\":\"\xc3\xa9\"}\r\n{\"c\"";
        for at in 0..body.len() {
            let mut lines = StreamLineSplitter::new(LINE_BYTES_MAX);
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
    fn too_long_line_is_an_error() {
        let mut lines = StreamLineSplitter::new(LINE_BYTES_MAX);
        assert_eq!(lines.push(&vec![b'x'; LINE_BYTES_MAX]), Ok(Vec::new()));
        assert!(lines.push(b"x").is_err());
        assert_eq!(StreamLineSplitter::new(LINE_BYTES_MAX).finish(), None);
    }
}
