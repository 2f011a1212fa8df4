//! Reads the records of a session file, also while another process appends.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize as _;

use crate::error::SessionStoreError;
use crate::line;
use crate::record::{FORMAT_VERSION, SessionHeader, StoredRecord, record_type};

/// Longest line, in bytes. A longer one is damaged.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// A part of a file that holds no record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadProblem {
    /// The end of the file is not a whole record: a write that did not finish.
    TornEnd {
        /// The bytes without a record.
        bytes: u64,
    },
    /// Lines between whole records are damaged.
    Damaged {
        /// The number of the first damaged line, from 1.
        line: u64,
        /// Their bytes.
        bytes: u64,
    },
}

/// Reads records in their order.
#[derive(Debug)]
pub struct SessionReader {
    file: BufReader<File>,
    path: PathBuf,
    header: SessionHeader,
    /// The offset behind the last whole record.
    end: u64,
    lines: u64,
    problems: Vec<ReadProblem>,
}

impl SessionReader {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// If it cannot be read, is no session, or has a newer format.
    pub fn open(path: &Path) -> Result<Self, SessionStoreError> {
        let file = File::open(path).map_err(SessionStoreError::io("open", path))?;
        let mut file = BufReader::new(file);
        let not_a_session = || SessionStoreError::NotASession(path.to_owned());
        let (line, is_whole) = next_line(&mut file, path)?.ok_or_else(not_a_session)?;
        let first =
            line::decode(&line).filter(|it| is_whole && it.record.kind == record_type::HEADER);
        let data = first.ok_or_else(not_a_session)?.record.data;
        let version =
            data["version"].as_u64().map_or(0, |it| u32::try_from(it).unwrap_or(u32::MAX));
        if version > FORMAT_VERSION {
            let (path, known) = (path.to_owned(), FORMAT_VERSION);
            return Err(SessionStoreError::NewerFormat { path, version, known });
        }
        let header = SessionHeader::deserialize(data).map_err(|_| not_a_session())?;
        let end = line.len() as u64 + 1;
        Ok(Self { file, path: path.to_owned(), header, end, lines: 1, problems: Vec::new() })
    }

    /// Returns the header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns the offset behind the last whole record that was read.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the parts of the file that were skipped.
    pub fn problems(&self) -> &[ReadProblem] {
        &self.problems
    }

    /// Reads all records that follow. May be called again, and then returns what was appended since.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_rest(&mut self) -> Result<Vec<StoredRecord>, SessionStoreError> {
        let mut records = Vec::new();
        self.problems.retain(|problem| !matches!(problem, ReadProblem::TornEnd { .. }));
        let seek = self.file.seek(SeekFrom::Start(self.end));
        seek.map_err(SessionStoreError::io("read", &self.path))?;
        let mut damaged = 0;
        while let Some((line, is_whole)) = next_line(&mut self.file, &self.path)? {
            let bytes = line.len() as u64 + u64::from(is_whole);
            match line::decode(&line).filter(|_| is_whole) {
                Some(record) => {
                    if damaged > 0 {
                        let line = self.lines + 1;
                        self.problems.push(ReadProblem::Damaged { line, bytes: damaged });
                        self.lines += 1;
                    }
                    self.end += damaged + bytes;
                    self.lines += 1;
                    damaged = 0;
                    records.push(record);
                }
                None => damaged += bytes,
            }
        }
        if damaged > 0 {
            self.problems.push(ReadProblem::TornEnd { bytes: damaged });
        }
        Ok(records)
    }
}

/// Reads the next line, without its newline, and whether it has one.
fn next_line(
    file: &mut BufReader<File>,
    path: &Path,
) -> Result<Option<(Vec<u8>, bool)>, SessionStoreError> {
    let mut line = Vec::new();
    let read = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
    read.map_err(SessionStoreError::io("read", path))?;
    if line.is_empty() {
        return Ok(None);
    }
    let is_whole = line.last() == Some(&b'\n');
    if is_whole {
        line.pop();
    }
    Ok(Some((line, is_whole)))
}
