//! Lines of JSON on a socket, each of limited length.

use std::io;

use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};

/// Reads lines.
pub(crate) struct SocketLineReader<R> {
    from: BufReader<R>,
    bytes_max: usize,
    line: Vec<u8>,
}

impl<R: AsyncRead + Unpin> SocketLineReader<R> {
    /// Creates a reader with a maximum line length.
    pub(crate) fn new(from: R, bytes_max: usize) -> Self {
        Self { from: BufReader::new(from), bytes_max, line: Vec::new() }
    }

    /// Reads the next line. Returns `None` at the end. Cancel safe.
    ///
    /// # Errors
    /// If a line is too long, or the other side is gone.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            let there = self.from.fill_buf().await?;
            if there.is_empty() {
                return Ok(None);
            }
            let end = there.iter().position(|byte| *byte == b'\n');
            let take = end.unwrap_or(there.len());
            if self.line.len() + take > self.bytes_max {
                let text = format!("a line has more than {} bytes", self.bytes_max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            self.line.extend_from_slice(&there[..take]);
            self.from.consume(take + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

/// Writes a value as a line.
pub(crate) async fn write_line<T: Serialize>(
    to: &mut (impl AsyncWrite + Unpin),
    value: &T,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_read_up_to_its_limit_and_not_one_past_it() {
        let mut lines = SocketLineReader::new(b"abcd\n\nabcde\n".as_slice(), 4);
        assert_eq!(lines.next().await.unwrap().unwrap(), b"abcd");
        assert_eq!(lines.next().await.unwrap().unwrap(), b"");
        assert!(lines.next().await.unwrap_err().to_string().contains("more than 4 bytes"));
        let mut lines = SocketLineReader::new(b"half".as_slice(), 4);
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
