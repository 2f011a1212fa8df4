//! Reads the records of a session file, also while another process appends.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize as _;

use crate::error::SessionStoreError;
use crate::line::{self, LINE_BYTES_MAX};
use crate::plain::open_regular_file;
use crate::record::{FORMAT_VERSION, SessionHeader, StoredRecord, record_type};

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
    begun_ms: i64,
    /// The offset after the last whole record.
    end: u64,
    lines: u64,
    problems: Vec<ReadProblem>,
}

impl SessionReader {
    /// Opens a file below the folder with all sessions and reads its header.
    ///
    /// # Errors
    /// If it is not a regular file, cannot be read, is not a session, or has a newer format.
    pub(crate) fn open(sessions: &Path, path: &Path) -> Result<Self, SessionStoreError> {
        let name = path.strip_prefix(sessions).unwrap_or(path);
        let mut file = BufReader::new(open_regular_file(sessions, name)?);
        let not_a_session = || SessionStoreError::NotASession(path.to_owned());
        let (line, is_whole) =
            read_next_line(&mut file, u64::MAX, path)?.ok_or_else(not_a_session)?;
        let first = line::decode_record(&line)
            .filter(|it| is_whole && it.record.kind == record_type::HEADER);
        let first = first.ok_or_else(not_a_session)?;
        let (begun_ms, data) = (first.at_ms, first.record.data);
        let version =
            data["version"].as_u64().map_or(0, |it| u32::try_from(it).unwrap_or(u32::MAX));
        if version > FORMAT_VERSION {
            let (path, known) = (path.to_owned(), FORMAT_VERSION);
            return Err(SessionStoreError::NewerFormat { path, version, known });
        }
        let header = SessionHeader::deserialize(data).map_err(|_| not_a_session())?;
        let (path, end) = (path.to_owned(), line.len() as u64 + 1);
        Ok(Self { file, path, header, begun_ms, end, lines: 1, problems: Vec::new() })
    }

    /// Returns the header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns when the session was created, in milliseconds since 1970.
    pub fn begun_ms(&self) -> i64 {
        self.begun_ms
    }

    /// Returns the offset after the last whole record that was read.
    pub fn end_offset(&self) -> u64 {
        self.end
    }

    /// Returns the parts of the file that were skipped.
    pub fn problems(&self) -> &[ReadProblem] {
        &self.problems
    }

    /// Skips all records before an offset that [`end_offset`](Self::end_offset) has returned for
    /// this file. Returns false, and skips nothing, if no record ends there.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn skip_to(&mut self, offset: u64) -> Result<bool, SessionStoreError> {
        let failed = |error| SessionStoreError::from_io("read", &self.path)(error);
        let length = self.file.get_ref().metadata().map_err(failed)?.len();
        if offset < self.end || offset > length {
            return Ok(false);
        }
        let mut last = [0];
        self.file.seek(SeekFrom::Start(offset - 1)).map_err(failed)?;
        self.file.read_exact(&mut last).map_err(failed)?;
        let is_boundary = last == *b"\n";
        if is_boundary {
            self.end = offset;
        }
        Ok(is_boundary)
    }

    /// Reads all records that follow. A further call returns the records that were appended since.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read_rest(&mut self) -> Result<Vec<StoredRecord>, SessionStoreError> {
        let failed = |error| SessionStoreError::from_io("read", &self.path)(error);
        // An append that fails undoes what it wrote, so it must not be seen before its end. Without
        // locks, for example on a network disk, this is only less exact.
        let locked = self.file.get_ref().lock_shared();
        let length = self.file.get_ref().metadata().map(|found| found.len());
        if locked.is_ok() {
            self.file.get_ref().unlock().map_err(failed)?;
        }
        let length = length.map_err(failed)?;
        self.read_until(length)
    }

    /// Returns the last record of a type among those that follow, and parses no others.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn last_record_of(
        &mut self,
        kind: &str,
    ) -> Result<Option<StoredRecord>, SessionStoreError> {
        /// The type follows a few numbers, so it is in the first bytes of a line.
        const HEAD_BYTES: usize = 256;
        let (mut last, text) = (None, format!("\"type\":\"{kind}\","));
        while let Some((line, is_whole)) = read_next_line(&mut self.file, u64::MAX, &self.path)? {
            let mut windows = line[..line.len().min(HEAD_BYTES)].windows(text.len());
            let is_asked = windows.any(|window| window == text.as_bytes());
            let record = if is_asked && is_whole { line::decode_record(&line) } else { None };
            last = record.filter(|it| it.record.kind == kind).or(last);
        }
        Ok(last)
    }

    /// Reads all records that follow, for the process that has locked the file.
    pub(crate) fn read_locked_rest(&mut self) -> Result<Vec<StoredRecord>, SessionStoreError> {
        self.read_until(u64::MAX)
    }

    fn read_until(&mut self, length: u64) -> Result<Vec<StoredRecord>, SessionStoreError> {
        let mut records = Vec::new();
        self.problems.retain(|problem| !matches!(problem, ReadProblem::TornEnd { .. }));
        let seek = self.file.seek(SeekFrom::Start(self.end));
        seek.map_err(SessionStoreError::from_io("read", &self.path))?;
        let mut left = length.saturating_sub(self.end);
        let (mut damaged, mut damaged_lines) = (0, 0);
        while let Some((line, is_whole)) = read_next_line(&mut self.file, left, &self.path)? {
            let bytes = line.len() as u64 + u64::from(is_whole);
            left = left.saturating_sub(bytes);
            match line::decode_record(&line).filter(|_| is_whole) {
                Some(record) => {
                    if damaged > 0 {
                        let line = self.lines + 1;
                        self.problems.push(ReadProblem::Damaged { line, bytes: damaged });
                    }
                    self.end += damaged + bytes;
                    self.lines += damaged_lines + 1;
                    (damaged, damaged_lines) = (0, 0);
                    records.push(record);
                }
                None => (damaged, damaged_lines) = (damaged + bytes, damaged_lines + 1),
            }
        }
        if damaged > 0 {
            self.problems.push(ReadProblem::TornEnd { bytes: damaged });
        }
        Ok(records)
    }
}

/// Reads the next line of at most this many bytes, without its newline, and whether it has one.
fn read_next_line(
    file: &mut BufReader<File>,
    left: u64,
    path: &Path,
) -> Result<Option<(Vec<u8>, bool)>, SessionStoreError> {
    let mut line = Vec::new();
    let read = file.by_ref().take(left.min(LINE_BYTES_MAX)).read_until(b'\n', &mut line);
    read.map_err(SessionStoreError::from_io("read", path))?;
    if line.is_empty() {
        return Ok(None);
    }
    let is_whole = line.last() == Some(&b'\n');
    if is_whole {
        line.pop();
    }
    Ok(Some((line, is_whole)))
}
