//! Lines of input from programs, each limited in length, and those of standard input few at a time.

use std::io::{self, BufRead as _, Read as _};

use jaato_runtime::types::{Error, ErrorKind};
use tokio::sync::mpsc;

/// The longest line, in bytes: the capacity of a frame.
pub const LINE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How many lines wait to be taken, so that a fast writer does not fill the memory.
const LINES_WAITING_MAX: usize = 16;

/// A line of input.
#[derive(Debug)]
pub enum InputLine {
    /// The line with its end.
    Whole(Vec<u8>),
    /// It has more than [`LINE_BYTES_MAX`] bytes, and was skipped.
    TooLong,
}

/// Reads lines of standard input on their own thread, because reading blocks.
pub fn read_lines() -> mpsc::Receiver<Result<Vec<u8>, Error>> {
    let (sender, receiver) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let message = match next_line(&mut input) {
                Ok(None) => return,
                Ok(Some(InputLine::Whole(line))) => Ok(line),
                Ok(Some(InputLine::TooLong)) => {
                    let text = format!("the line has more than {LINE_BYTES_MAX} bytes");
                    Err(Error::new(ErrorKind::LimitReached, text))
                }
                Err(error) => {
                    Err(Error::new(ErrorKind::Io, format!("cannot read standard input: {error}")))
                }
            };
            let is_end = message.as_ref().is_err_and(|error| error.kind == ErrorKind::Io);
            if sender.blocking_send(message).is_err() || is_end {
                return;
            }
        }
    });
    receiver
}

/// Reads one line. Returns `None` at the end of the input.
///
/// # Errors
/// If the input cannot be read.
pub fn next_line(input: &mut impl io::BufRead) -> io::Result<Option<InputLine>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line)?;
    if read == 0 {
        return Ok(None);
    }
    if line.len() as u64 <= LINE_BYTES_MAX {
        return Ok(Some(InputLine::Whole(line)));
    }
    // The line end may be the very byte that makes it too long.
    if !line.ends_with(b"\n") {
        skip_line(input)?;
    }
    Ok(Some(InputLine::TooLong))
}

fn skip_line(input: &mut impl io::BufRead) -> io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|&byte| byte == b'\n');
        let skipped = end.map_or(buffer.len(), |at| at + 1);
        input.consume(skipped);
        if end.is_some() {
            return Ok(());
        }
    }
}
