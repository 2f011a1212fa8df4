//! Appends records to the session that this process owns.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use jaato_places::open_own_file;

use crate::disk::Disk;
use crate::error::SessionStoreError;
use crate::line::{self, UnwritableRecord};
use crate::owner::OwnerClaim;
use crate::reader::{ReadProblem, SessionReader};
use crate::record::{SessionRecord, StoredRecord};

/// When an append returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the system has the bytes: they survive the end of the process.
    Written,
    /// After the disk has the bytes: they survive a loss of power, as do all records before them.
    Synced,
}

/// A session's file and the folders whose names must be durable for it.
#[derive(Debug)]
pub(crate) struct WriterPaths {
    /// The folder with all sessions.
    pub(crate) sessions: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) id: String,
    pub(crate) folders: Vec<PathBuf>,
}

/// The owner of a session. Dropping it gives the session up.
#[derive(Debug)]
pub struct SessionWriter {
    file: File,
    path: PathBuf,
    id: String,
    claim: OwnerClaim,
    disk: Disk,
    epoch: u64,
    next_seq: u64,
    /// The offset after the last whole record. Bytes after it are of a write that failed.
    end: u64,
    /// Whether a loss of power could lose what this process wrote.
    is_unsynced: bool,
    /// Folders with names that may not be durable yet.
    unsynced_folders: Vec<PathBuf>,
}

impl SessionWriter {
    /// Opens a claimed session's file at its end. A torn end is removed. Returns the records.
    pub(crate) fn open(
        disk: Disk,
        paths: WriterPaths,
        claim: OwnerClaim,
    ) -> Result<(Self, Vec<StoredRecord>, Vec<ReadProblem>), SessionStoreError> {
        let WriterPaths { sessions, file: path, id, folders } = paths;
        let file = open_own_file(&path, OpenOptions::new().append(true).read(true))?;
        // The owner before may be in an append.
        file.lock().map_err(SessionStoreError::from_io("lock", &path))?;
        let mut reader = SessionReader::open(&sessions, &path)?;
        let records = reader.read_locked_rest()?;
        let end = reader.end_offset();
        let length = file.metadata().map_err(SessionStoreError::from_io("read", &path))?.len();
        if length > end {
            disk.truncate_file(&file, &path, end)?;
        }
        file.unlock().map_err(SessionStoreError::from_io("unlock", &path))?;
        let next_seq = records.iter().map(|stored| stored.seq).max().unwrap_or(0) + 1;
        // The files of earlier owners may be gone, for example after a loss of power.
        let last_epoch = records.last().map_or(0, |last| last.epoch);
        let epoch = claim.epoch.max(last_epoch + 1);
        let problems = reader.problems().to_vec();
        let writer = Self {
            file,
            path,
            id,
            claim,
            disk,
            epoch,
            next_seq,
            end,
            is_unsynced: false,
            unsynced_folders: folders,
        };
        Ok((writer, records, problems))
    }

    /// Creates a session's file with its header. A file with the final name always has a whole
    /// header.
    pub(crate) fn create(
        disk: Disk,
        paths: WriterPaths,
        claim: OwnerClaim,
        header: SessionRecord,
    ) -> Result<Self, SessionStoreError> {
        let WriterPaths { sessions: _, file: path, id, folders } = paths;
        let part = path.with_extension("part");
        let file = disk.create_empty(&part)?;
        let epoch = claim.epoch;
        let mut writer = Self {
            file,
            path: part.clone(),
            id,
            claim,
            disk,
            epoch,
            next_seq: 0,
            end: 0,
            is_unsynced: false,
            unsynced_folders: folders,
        };
        writer.append_records([header], Durability::Written)?;
        writer.disk.rename(&part, &path)?;
        writer.path = path;
        Ok(writer)
    }

    /// Checks that no other process has taken the session over.
    ///
    /// # Errors
    /// [`SessionStoreError::TakenOver`] if one has.
    pub fn check_owner(&self) -> Result<(), SessionStoreError> {
        match self.claim.is_current() {
            true => Ok(()),
            false => Err(SessionStoreError::TakenOver { id: self.id.clone() }),
        }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Appends records, all or none. Returns the number of the last one.
    ///
    /// # Errors
    /// [`SessionStoreError::TakenOver`] if another process owns the session now.
    /// [`SessionStoreError::Unwritable`] if a record is too long. If the disk
    /// refuses to write, nothing is added. If it refuses only to sync, the records are added, and
    /// a loss of power may lose them. A later append may succeed in both cases.
    pub fn append_records(
        &mut self,
        records: impl IntoIterator<Item = SessionRecord>,
        durability: Durability,
    ) -> Result<u64, SessionStoreError> {
        let (epoch, at_ms) = (self.epoch, now_ms());
        let mut seq = self.next_seq;
        let mut lines = Vec::new();
        for record in records {
            let encoded = line::encode_record(&StoredRecord { seq, at_ms, epoch, record });
            lines.extend(encoded.map_err(unwritable_record_error(&self.id))?);
            seq += 1;
        }
        self.file.lock().map_err(SessionStoreError::from_io("lock", &self.path))?;
        let written = self.write_lines(&lines);
        // Closing the file would release it too.
        let _ = self.file.unlock();
        written?;
        self.next_seq = seq;
        if durability == Durability::Synced {
            self.sync_records()?;
        }
        Ok(seq.saturating_sub(1))
    }

    /// Makes all records durable. Does nothing if they are.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn sync_records(&mut self) -> Result<(), SessionStoreError> {
        if !self.is_unsynced {
            return Ok(());
        }
        self.disk.sync_file(&self.file, &self.path)?;
        while let Some(folder) = self.unsynced_folders.last() {
            self.disk.sync_folder(folder)?;
            self.unsynced_folders.pop();
        }
        self.is_unsynced = false;
        Ok(())
    }

    fn write_lines(&mut self, lines: &[u8]) -> Result<(), SessionStoreError> {
        self.check_owner()?;
        let found = self.file.metadata().map_err(SessionStoreError::from_io("read", &self.path))?;
        if found.len() > self.end {
            // A part of a record would hide the ones after it.
            self.disk.truncate_file(&self.file, &self.path, self.end)?;
        }
        self.end = self.end.min(found.len());
        self.is_unsynced |= !lines.is_empty();
        if let Err(error) = self.disk.append_bytes(&self.file, &self.path, lines) {
            // If the disk refuses this too, the next append or the next owner does it.
            let _ = self.disk.truncate_file(&self.file, &self.path, self.end);
            return Err(error);
        }
        self.end += lines.len() as u64;
        Ok(())
    }
}

/// Returns a function that converts the error of a record for a session.
pub(crate) fn unwritable_record_error(
    id: &str,
) -> impl FnOnce(UnwritableRecord) -> SessionStoreError {
    let id = id.to_owned();
    move |why| SessionStoreError::Unwritable { id, why }
}

/// Returns the folders whose names must be durable before a session's records are.
pub(crate) fn folders_to_sync(session: &Path, others: &[&Path]) -> Vec<PathBuf> {
    // The last one is synced first.
    let mut folders: Vec<PathBuf> = others.iter().map(|folder| (*folder).to_owned()).collect();
    folders.push(session.to_owned());
    folders
}

/// Returns the time in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
