//! Reads a ledger line by line, regardless of its size and content.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use crate::record::LedgerRecord;

/// Longest possible record, in bytes. Longer lines are skipped without storing them.
pub const LINE_BYTES_MAX: usize = 256 * 1024;

/// A line of a ledger.
#[derive(Debug, Clone, PartialEq)]
pub enum LedgerLine {
    /// A record.
    Record(Box<LedgerRecord>),
    /// An invalid line: torn, or written by another program.
    Bad {
        /// The line number, counted from 1.
        number: u64,
    },
}

/// Reads lines one after the other.
#[derive(Debug)]
pub struct LedgerReader<R = BufReader<File>> {
    from: R,
    number: u64,
    buffer: Vec<u8>,
}

impl LedgerReader {
    /// Opens a ledger.
    ///
    /// # Errors
    /// `NotFound` if there is none yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Opening a pipe would block until another process writes to it.
        if path.metadata().is_ok_and(|found| found.file_type().is_fifo()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a named pipe"));
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Self::new(BufReader::with_capacity(64 * 1024, file)))
    }
}

impl<R: BufRead> LedgerReader<R> {
    /// Reads from any source.
    pub fn new(from: R) -> Self {
        Self { from, number: 0, buffer: Vec::new() }
    }

    /// Reads the next non-empty line.
    ///
    /// # Errors
    /// If the file cannot be read further.
    pub fn next_line(&mut self) -> io::Result<Option<LedgerLine>> {
        loop {
            self.buffer.clear();
            let limit = LINE_BYTES_MAX as u64 + 1;
            let read = (&mut self.from).take(limit).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read > LINE_BYTES_MAX {
                if !self.buffer.ends_with(b"\n") {
                    self.from.skip_until(b'\n')?;
                }
                return Ok(Some(LedgerLine::Bad { number: self.number }));
            }
            if self.buffer.trim_ascii().is_empty() {
                continue;
            }
            return Ok(Some(match serde_json::from_slice(&self.buffer) {
                Ok(record) => LedgerLine::Record(Box::new(record)),
                Err(_) => LedgerLine::Bad { number: self.number },
            }));
        }
    }
}
