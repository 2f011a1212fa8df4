//! The file `journal.jsonl`, with one line per finished change.
//!
//! The holder of the lock writes each line with one `write`. A killed process or a full disk may
//! leave a torn last line. The next line then begins on its own line, so that only the torn one is
//! lost. The caller must hold the lock for every method.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ChangeId, FilePath, HistoryError, RecordedChange};

/// The maximum length of a line. A longer line is damaged.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalEntry {
    /// A finished change.
    Change(RecordedChange),
    /// Steps that were removed from the history.
    Forget(Vec<(ChangeId, FilePath)>),
    /// The smallest unused number.
    Next(ChangeId),
}

/// A reader and writer of the journal.
#[derive(Debug)]
pub(super) struct ChangeJournal {
    path: PathBuf,
    /// The file that was read. It stays open, so that its inode number is not reused.
    file: Option<File>,
    /// The position up to which the file was read.
    offset: u64,
}

/// The new content of the journal.
#[derive(Debug, Default)]
pub(super) struct JournalUpdate {
    /// Whether the journal was rewritten, so that everything read before is void.
    pub is_anew: bool,
    /// The new lines.
    pub entries: Vec<JournalEntry>,
    /// The number of lines that cannot be read.
    pub damaged: usize,
}

impl ChangeJournal {
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, offset: 0 }
    }

    /// Reads the lines added since the last call.
    pub fn read_update(&mut self) -> Result<JournalUpdate, HistoryError> {
        let mut news =
            JournalUpdate { is_anew: self.reopen_if_replaced()?, ..JournalUpdate::default() };
        let Some(file) = &self.file else { return Ok(news) };
        let failed = |error| HistoryError::from_io_error("read", &self.path)(error);
        let length = file.metadata().map_err(failed)?.len();
        if length == self.offset {
            return Ok(news);
        }
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(self.offset)).map_err(failed)?;
        let mut line = Vec::new();
        while read_line(&mut reader, &mut line).map_err(failed)? {
            match serde_json::from_slice(&line) {
                Ok(entry) => news.entries.push(entry),
                // An empty line follows a torn line.
                Err(_) if line.is_empty() => {}
                Err(_) => news.damaged += 1,
            }
        }
        self.offset = length;
        Ok(news)
    }

    /// Appends a line. On failure, the journal stays as it was.
    pub fn append_entry(&mut self, entry: &JournalEntry) -> Result<(), HistoryError> {
        if self.file.is_none() {
            self.file = Some(
                self.open_options().create(true).open(&self.path).map_err(self.journal_error())?,
            );
        }
        let Some(file) = &self.file else { return Ok(()) };
        let is_torn = has_torn_end(file, self.offset).map_err(self.journal_error())?;
        let line = format_entry_line(entry, if is_torn { b"\n" } else { b"" });
        if let Err(error) = (&mut &*file).write_all(&line) {
            // If truncating fails, a torn line remains, which readers skip.
            let _ = file.set_len(self.offset);
            return Err(self.journal_error()(error));
        }
        self.offset += line.len() as u64;
        Ok(())
    }

    /// Replaces all lines.
    pub fn rewrite_entries(&mut self, entries: &[JournalEntry]) -> Result<(), HistoryError> {
        let beside = self.path.with_extension("new");
        let text: Vec<u8> =
            entries.iter().flat_map(|entry| format_entry_line(entry, b"")).collect();
        let write = || {
            let mut options = OpenOptions::new();
            let options = options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&beside)?.write_all(&text)?;
            fs::rename(&beside, &self.path)
        };
        write().map_err(self.journal_error())?;
        self.file = Some(self.open_options().open(&self.path).map_err(self.journal_error())?);
        self.offset = text.len() as u64;
        Ok(())
    }

    /// Opens the file if it is not the one that was read.
    fn reopen_if_replaced(&mut self) -> Result<bool, HistoryError> {
        let now = match self.open_options().open(&self.path) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(self.journal_error()(error)),
        };
        let is_same = match (&self.file, &now) {
            (None, None) => true,
            (Some(read), Some(now)) => {
                let facts = |file: &File| file.metadata().map_err(self.journal_error());
                let (read, now) = (facts(read)?, facts(now)?);
                (read.dev(), read.ino()) == (now.dev(), now.ino()) && self.offset <= now.len()
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
        if !is_same {
            (self.file, self.offset) = (now, 0);
        }
        Ok(!is_same)
    }

    fn open_options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).append(true).mode(0o600);
        options
    }

    fn journal_error(&self) -> impl FnOnce(io::Error) -> HistoryError {
        HistoryError::from_io_error("write", &self.path)
    }
}

fn format_entry_line(entry: &JournalEntry, before: &[u8]) -> Vec<u8> {
    let mut line = before.to_vec();
    // Serialization cannot fail, because entries hold only numbers, texts and lists.
    line.extend(serde_json::to_vec(entry).unwrap_or_default());
    line.push(b'\n');
    line
}

fn has_torn_end(file: &File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != [b'\n'])
}

/// Reads a line without its end. Returns false at the end of the file. A line that is too long is
/// truncated.
fn read_line(reader: &mut impl io::BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read as u64 == LINE_BYTES_MAX {
        reader.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next_entry(number: u64) -> JournalEntry {
        JournalEntry::Next(ChangeId(number))
    }

    fn read_journal(journal: &mut ChangeJournal) -> (bool, Vec<u64>, usize) {
        let JournalUpdate { is_anew, entries, damaged } = journal.read_update().unwrap();
        let number = |entry| match entry {
            JournalEntry::Next(ChangeId(number)) => number,
            other => panic!("{other:?}"),
        };
        (is_anew, entries.into_iter().map(number).collect(), damaged)
    }

    fn journals_on_same_file() -> (tempfile::TempDir, ChangeJournal, ChangeJournal) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        (folder, ChangeJournal::new(path.clone()), ChangeJournal::new(path))
    }

    #[test]
    fn journal_reader_sees_lines_of_other_writers() {
        let (_folder, mut one, mut other) = journals_on_same_file();
        assert_eq!(read_journal(&mut one), (false, vec![], 0));
        one.append_entry(&next_entry(1)).unwrap();
        assert_eq!(
            read_journal(&mut one),
            (false, vec![], 0),
            "a journal does not return its own lines"
        );
        assert_eq!(read_journal(&mut other), (true, vec![1], 0));
        other.append_entry(&next_entry(2)).unwrap();
        assert_eq!(read_journal(&mut one), (false, vec![2], 0));
        assert_eq!(read_journal(&mut one), (false, vec![], 0));
    }

    #[test]
    fn a_journal_that_is_rewritten_is_read_from_its_beginning() {
        let (folder, mut one, mut other) = journals_on_same_file();
        one.append_entry(&next_entry(1)).unwrap();
        assert_eq!(read_journal(&mut other), (true, vec![1], 0));
        one.rewrite_entries(&[next_entry(3), next_entry(4)]).unwrap();
        assert_eq!(read_journal(&mut one), (false, vec![], 0));
        assert_eq!(read_journal(&mut other), (true, vec![3, 4], 0));
        fs::remove_file(folder.path().join("journal.jsonl")).unwrap();
        assert_eq!(read_journal(&mut other), (true, vec![], 0));
        other.append_entry(&next_entry(5)).unwrap();
        assert_eq!(read_journal(&mut one), (true, vec![5], 0));
    }

    #[test]
    fn damaged_journal_line_affects_no_other_line() {
        let (folder, mut one, mut other) = journals_on_same_file();
        let path = folder.path().join("journal.jsonl");
        fs::write(&path, b"{\"next\":1}\n{\"next\":\xff}\n{\"new\":1}\n{\"next\":2}\n{\"nex")
            .unwrap();
        assert_eq!(read_journal(&mut one), (true, vec![1, 2], 3));
        one.append_entry(&next_entry(3)).unwrap();
        one.append_entry(&next_entry(4)).unwrap();
        assert_eq!(read_journal(&mut one), (false, vec![], 0));
        assert_eq!(read_journal(&mut other), (true, vec![1, 2, 3, 4], 3));
        assert!(fs::read(&path).unwrap().ends_with(b"{\"nex\n{\"next\":3}\n{\"next\":4}\n"));
    }
}
