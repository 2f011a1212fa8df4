//! The ledger's file: whole lines alone, whoever else writes to it.
//!
//! Each record is one `write` to a file opened for appending, so that lines of several processes
//! never mix. A lock is held around it: only its holder may cut off what is torn, and while it is
//! held nobody else appends. Where the lock cannot be had (a stopped process, a file system without
//! locks), records are appended all the same, and what is torn is closed with a line end instead of
//! being cut.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::error::LedgerError;

/// Longest torn record that is cut; what is longer was never one of ours.
const TORN_BYTES_MAX: usize = 64 * 1024;

/// How much of a file is looked at to tell whether it is a ledger.
const HEAD_BYTES: usize = 4 * 1024;

/// How often the lock is asked for, and how long is waited in between. Others hold it for
/// microseconds.
const LOCK_TRIES: u32 = 200;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// How a line of ours begins.
const LINE_START: &[u8] = br#"{"v":"#;

/// The file, open.
#[derive(Debug)]
pub struct LedgerFile {
    file: File,
    path: PathBuf,
    /// Devices and pipes have no end that could be looked at.
    is_regular: bool,
}

/// What came of appending.
#[derive(Debug)]
pub struct Appended {
    /// Lines that are in the file.
    pub lines: usize,
    /// Bytes of a torn record that were cut off before them.
    pub cut_bytes: u64,
    /// Why the rest is not.
    pub error: Option<LedgerError>,
}

impl LedgerFile {
    /// Opens the file, and makes it and its folder where they are missing, for the user alone.
    ///
    /// # Errors
    /// When it cannot be opened, or holds something else than a ledger.
    pub fn open(path: &Path) -> Result<Self, LedgerError> {
        let failed = |error| LedgerError::Io(path.to_owned(), error);
        let file = match open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_folder(path).and_then(|()| open(path))
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

    /// Appends lines, each with its end, in one `write` each. Stops at the first that cannot be
    /// written.
    pub fn append(&mut self, lines: &[Vec<u8>]) -> Appended {
        let has_lock = self.is_regular && self.lock();
        let mut appended = Appended { lines: 0, cut_bytes: 0, error: None };
        if let Err(error) = self.append_in_turn(lines, has_lock, &mut appended) {
            appended.error = Some(LedgerError::Io(self.path.clone(), error));
        }
        if has_lock {
            // Closing the file would let go of it too.
            let _ = self.file.unlock();
        }
        appended
    }

    /// Brings what was appended onto the disk itself.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> Result<(), LedgerError> {
        if !self.is_regular {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| LedgerError::Io(self.path.clone(), error))
    }

    fn append_in_turn(
        &mut self,
        lines: &[Vec<u8>],
        has_lock: bool,
        appended: &mut Appended,
    ) -> io::Result<()> {
        if self.is_regular {
            appended.cut_bytes = self.mend(has_lock)?;
        }
        for line in lines {
            let before = if has_lock { Some(self.file.metadata()?.len()) } else { None };
            // A write that is cut short by a full disk is tried to its end, which tells the cause.
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

    /// Cuts a torn record off the end, or closes its line where it must not be cut; tells how much
    /// was cut.
    fn mend(&mut self, has_lock: bool) -> io::Result<u64> {
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

    /// Tells whether the file is empty or a ledger, so that no other file is ever added to, or cut.
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
        Ok(has_record || is_torn_start(&head))
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

    fn lock(&self) -> bool {
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

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), |folder| jaato_places::make_missing(folder).map_err(io::Error::from))
}

/// Tells whether a file without a whole line is the beginning of a ledger: a first record that was
/// torn, or the zeros that some file systems leave after a power cut.
fn is_torn_start(head: &[u8]) -> bool {
    let length = head.len().min(LINE_START.len());
    !head.contains(&b'\n')
        && (head[..length] == LINE_START[..length] || head.iter().all(|&b| b == 0))
}
