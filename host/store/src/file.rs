//! The ledger's file. Contains only whole lines, even if several processes write to it.
//!
//! Each record is one `write` to a file opened for appending, so lines of several processes never
//! mix. A lock is held during the write. Only its holder may remove a torn record, and no other
//! process appends during that time. If the lock is unavailable (a stopped process, a file system
//! without locks), records are still appended, and a torn record gets a newline instead of being
//! removed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::error::LedgerError;

/// Longest torn record to remove. Anything longer was never one of ours.
const TORN_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a file to examine to decide whether it is a ledger.
const HEAD_BYTES: usize = 4 * 1024;

/// Number of attempts to take the lock, and the pause between them. Others hold it for
/// microseconds.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The beginning of our lines.
const LINE_START: &[u8] = br#"{"v":"#;

/// The open file.
#[derive(Debug)]
pub struct LedgerFile {
    file: File,
    path: PathBuf,
    /// Devices and pipes have no end to examine.
    is_regular: bool,
}

/// The result of appending.
#[derive(Debug)]
pub struct AppendResult {
    /// Number of lines that are in the file.
    pub lines: usize,
    /// Bytes of a torn record that were removed before them.
    pub cut_bytes: u64,
    /// Why the other lines are missing.
    pub error: Option<LedgerError>,
}

impl LedgerFile {
    /// Opens the file. Creates it and its folder if needed, private to the user.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a ledger.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let failed = |error| LedgerError::Io(path.to_owned(), error);
        let file = match open_ledger_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_folder(path).and_then(|()| open_ledger_file(path))
            }
            opened => opened,
        };
        let file = file.map_err(failed)?;
        let is_regular = file.metadata().map_err(failed)?.is_file();
        let opened = Self { file, path: path.to_owned(), is_regular };
        if is_regular && !opened.is_ledger().map_err(failed)? {
            return Err(LedgerError::NotALedger(path.to_owned()));
        }
        Ok(opened)
    }

    /// Appends lines, each with its newline, in one `write` each. Stops at the first failure.
    pub fn append(&mut self, lines: &[Vec<u8>]) -> AppendResult {
        let has_lock = self.is_regular && self.try_lock();
        let mut appended = AppendResult { lines: 0, cut_bytes: 0, error: None };
        if let Err(error) = self.append_locked(lines, has_lock, &mut appended) {
            appended.error = Some(LedgerError::Io(self.path.clone(), error));
        }
        if has_lock {
            // Closing the file would release it too.
            let _ = self.file.unlock();
        }
        appended
    }

    /// Flushes the appended lines to the disk.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn sync(&self) -> Result<(), LedgerError> {
        if !self.is_regular {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| LedgerError::Io(self.path.clone(), error))
    }

    fn append_locked(
        &mut self,
        lines: &[Vec<u8>],
        has_lock: bool,
        appended: &mut AppendResult,
    ) -> io::Result<()> {
        if self.is_regular {
            appended.cut_bytes = self.repair_tail(has_lock)?;
        }
        for line in lines {
            let before = if has_lock { Some(self.file.metadata()?.len()) } else { None };
            // After a short write on a full disk, `write_all` tries again and returns the cause.
            if let Err(error) = self.file.write_all(line) {
                if let Some(before) = before {
                    self.file.set_len(before)?;
                }
                return Err(error);
            }
            appended.lines += 1;
        }
        Ok(())
    }

    /// Removes a torn record from the end, or ends its line if it must not be removed. Returns the
    /// number of removed bytes.
    fn repair_tail(&mut self, has_lock: bool) -> io::Result<u64> {
        let length = self.file.metadata()?.len();
        let start = length.saturating_sub(TORN_BYTES_MAX as u64);
        let mut last = [0];
        if length == 0 || (self.read_at(&mut last, length - 1)? == 1 && last == *b"\n") {
            return Ok(0);
        }
        let mut tail = vec![0; usize::try_from(length - start).unwrap_or(TORN_BYTES_MAX)];
        let read = self.read_at(&mut tail, start)?;
        let line_end = tail[..read].iter().rposition(|&byte| byte == b'\n');
        let keep = match line_end {
            Some(at) => Some(start + at as u64 + 1),
            None if start == 0 => Some(0),
            None => None,
        };
        match keep.filter(|_| has_lock) {
            Some(keep) => {
                self.file.set_len(keep)?;
                Ok(length - keep)
            }
            None => {
                self.file.write_all(b"\n")?;
                Ok(0)
            }
        }
    }

    /// Returns true if the file is empty or a ledger, so that no other file is ever changed.
    fn is_ledger(&self) -> io::Result<bool> {
        let mut head = vec![0; HEAD_BYTES];
        let read = self.read_at(&mut head, 0)?;
        head.truncate(read);
        if head.is_empty() {
            return Ok(true);
        }
        let has_record = head.split_inclusive(|&byte| byte == b'\n').any(|line| {
            line.ends_with(b"\n")
                && serde_json::from_slice::<Value>(line)
                    .is_ok_and(|record| record.get("stage").is_some())
        });
        Ok(has_record || is_incomplete_start(&head))
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < into.len() {
            match self.file.read_at(&mut into[read..], at + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn try_lock(&self) -> bool {
        for _ in 0..LOCK_TRIES {
            match self.file.try_lock() {
                Ok(()) => return true,
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                Err(TryLockError::Error(_)) => return false,
            }
        }
        false
    }
}

fn open_ledger_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn create_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| {
        jaato_places::make_missing_folders(folder).map_err(io::Error::from)
    })
}

/// Returns true if a file without a whole line is the start of a ledger: a torn first record, or
/// the zeros that some file systems leave after a power failure.
fn is_incomplete_start(head: &[u8]) -> bool {
    let length = head.len().min(LINE_START.len());
    !head.contains(&b'\n')
        && (head[..length] == LINE_START[..length] || head.iter().all(|&b| b == 0))
}
