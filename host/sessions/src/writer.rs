//! Appends records to the session that this process owns.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use jaato_places::open_own_file;

use crate::error::SessionStoreError;
use crate::line;
use crate::owner::OwnerClaim;
use crate::reader::{ReadProblem, SessionReader};
use crate::record::{SessionRecord, StoredRecord};

/// When an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the system has the bytes: they survive the end of the process.
    Written,
    /// After the disk has the bytes: they survive a loss of power.
    Synced,
}

/// The owner of a session. Dropping it gives the session up.
#[derive(Debug)]
pub struct SessionWriter {
    file: File,
    path: PathBuf,
    id: String,
    claim: OwnerClaim,
    next_seq: u64,
}

impl SessionWriter {
    /// Opens a claimed session's file at its end. A torn end is removed. Returns the records.
    pub(crate) fn open(
        path: PathBuf,
        id: String,
        claim: OwnerClaim,
    ) -> Result<(Self, Vec<StoredRecord>, Vec<ReadProblem>), SessionStoreError> {
        let file = open_own_file(&path, OpenOptions::new().append(true).read(true))?;
        // The owner before may be in an append.
        file.lock().map_err(SessionStoreError::io("lock", &path))?;
        let mut reader = SessionReader::open(&path)?;
        let records = reader.read_rest()?;
        file.set_len(reader.end()).map_err(SessionStoreError::io("write", &path))?;
        file.unlock().map_err(SessionStoreError::io("unlock", &path))?;
        let next_seq = records.last().map_or(0, |last| last.seq) + 1;
        let problems = reader.problems().to_vec();
        Ok((Self { file, path, id, claim, next_seq }, records, problems))
    }

    /// Creates a session's file with its header, and syncs it.
    pub(crate) fn create(
        path: PathBuf,
        id: String,
        claim: OwnerClaim,
        header: SessionRecord,
    ) -> Result<Self, SessionStoreError> {
        let file = open_own_file(&path, OpenOptions::new().append(true).create_new(true))?;
        let mut writer = Self { file, path, id, claim, next_seq: 0 };
        writer.append([header], Durability::Synced)?;
        Ok(writer)
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Appends records, all or none. Returns the number of the last one.
    ///
    /// # Errors
    /// [`SessionStoreError::TakenOver`] if another process owns the session now. If the disk refuses,
    /// nothing is added.
    pub fn append(
        &mut self,
        records: impl IntoIterator<Item = SessionRecord>,
        durability: Durability,
    ) -> Result<u64, SessionStoreError> {
        let (epoch, at_ms) = (self.claim.epoch, now_ms());
        let mut seq = self.next_seq;
        let mut lines = Vec::new();
        for record in records {
            lines.extend(line::encode(&StoredRecord { seq, at_ms, epoch, record }));
            seq += 1;
        }
        self.file.lock().map_err(SessionStoreError::io("lock", &self.path))?;
        let written = self.write(&lines);
        // Closing the file would release it too.
        let _ = self.file.unlock();
        written?;
        if durability == Durability::Synced {
            self.file.sync_data().map_err(SessionStoreError::io("write", &self.path))?;
        }
        self.next_seq = seq;
        Ok(seq.saturating_sub(1))
    }

    fn write(&mut self, lines: &[u8]) -> Result<(), SessionStoreError> {
        if !self.claim.holds() {
            return Err(SessionStoreError::TakenOver { id: self.id.clone() });
        }
        let failed = |error| SessionStoreError::io("write", &self.path)(error);
        let before = self.file.metadata().map_err(failed)?.len();
        let failed = |error| SessionStoreError::io("write", &self.path)(error);
        if let Err(error) = (&self.file).write_all(lines) {
            // A part of a record would hide the ones after it.
            let _ = self.file.set_len(before);
            return Err(failed(error));
        }
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
