//! A growing file that is hashed while its bytes arrive.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use jaato_types::Asset;
use sha2::{Digest, Sha256};

use crate::AssetError;
use crate::digest::{self, hex_digest};
use crate::lock::AssetLock;
use crate::remembered::DigestRecord;
use crate::store::{AssetPaths, VerifiedAsset, remove_file};

/// The received part of a file. Unique, because it holds the file's lock.
pub(crate) struct PartialFile {
    pub(crate) paths: AssetPaths,
    file: File,
    hasher: Sha256,
    /// Number of bytes received and hashed.
    length: u64,
    total: u64,
    wants: String,
    /// Whether some of it came from another source or an earlier attempt.
    pub(crate) is_mixed: bool,
    _lock: AssetLock,
}

/// Why bytes were refused.
#[derive(Debug)]
pub(crate) enum WriteRefusal {
    /// The source provides more than the total size.
    TooMuch,
    /// They could not be written.
    Disk(AssetError),
}

impl PartialFile {
    /// Opens existing data and hashes it. Data that is too long is discarded.
    pub(crate) fn open(
        paths: AssetPaths,
        asset: &Asset,
        lock: AssetLock,
        cancelled: &AtomicBool,
    ) -> Result<Self, AssetError> {
        let part = paths.part.clone();
        let mut options = OpenOptions::new();
        let file = jaato_places::open_own_file(
            &part,
            options.read(true).write(true).create(true).truncate(false),
        );
        let file = file.map_err(|error| AssetError::from_io("open", &part, error.into()))?;
        let mut partial = Self {
            paths,
            file,
            hasher: Sha256::new(),
            length: 0,
            total: asset.bytes,
            wants: asset.sha256.clone(),
            is_mixed: false,
            _lock: lock,
        };
        partial.hash_existing_data(cancelled)?;
        Ok(partial)
    }

    fn hash_existing_data(&mut self, cancelled: &AtomicBool) -> Result<(), AssetError> {
        let path = &self.paths.part;
        let metadata =
            self.file.metadata().map_err(|error| AssetError::from_io("read", path, error))?;
        if metadata.len() > self.total {
            return self.discard_data();
        }
        let (hasher, length) = (&mut self.hasher, &mut self.length);
        digest::read_blocks(&self.file, path, cancelled, |block| {
            hasher.update(block);
            *length += block.len() as u64;
            Ok(())
        })?;
        self.is_mixed = self.length > 0;
        Ok(())
    }

    /// Returns the number of received bytes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.length
    }

    /// Returns the number of missing bytes.
    pub(crate) fn missing_bytes(&self) -> u64 {
        self.total - self.length
    }

    /// Writes bytes that belong at `at`, which is within or directly after the received data. Skips
    /// data that is already there.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), WriteRefusal> {
        let known = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let fresh = bytes.get(known..).unwrap_or_default();
        if fresh.len() as u64 > self.missing_bytes() {
            return Err(WriteRefusal::TooMuch);
        }
        let written = self.file.write_all(fresh);
        written.map_err(|error| {
            let error = AssetError::from_io("write", &self.paths.part, error);
            WriteRefusal::Disk(error.with_needed_bytes(self.missing_bytes()))
        })?;
        self.hasher.update(fresh);
        self.length += fresh.len() as u64;
        Ok(())
    }

    /// Discards the received data.
    pub(crate) fn discard_data(&mut self) -> Result<(), AssetError> {
        remove_file(&self.paths.parts)?;
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| AssetError::from_io("empty", &self.paths.part, error))?;
        self.hasher = Sha256::new();
        (self.length, self.is_mixed) = (0, false);
        Ok(())
    }

    /// Returns the digest of the received data.
    pub(crate) fn digest(&self) -> String {
        hex_digest(self.hasher.clone())
    }

    /// Returns true if the file is complete and correct.
    pub(crate) fn is_verified(&self) -> bool {
        self.missing_bytes() == 0 && self.digest() == self.wants
    }

    /// Renames the file to its final name. Only for a file that [`PartialFile::is_verified`].
    pub(crate) fn finish(self) -> Result<VerifiedAsset, AssetError> {
        let AssetPaths { file: path, part, parts, .. } = &self.paths;
        self.file.sync_all().map_err(|error| AssetError::from_io("write", part, error))?;
        let metadata =
            self.file.metadata().map_err(|error| AssetError::from_io("read", part, error))?;
        fs::rename(part, path).map_err(|error| AssetError::from_io("rename", part, error))?;
        remove_file(parts)?;
        let noted = DigestRecord::new(self.wants.clone(), &metadata).write(path);
        let path = PathBuf::from(path);
        let not_remembered = noted.err().map(|error| error.to_string());
        Ok(VerifiedAsset { path, sha256: self.wants, not_remembered })
    }
}
