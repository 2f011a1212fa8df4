//! Reads bytes.

use std::os::fd::OwnedFd;
use std::path::Path;

use jaato_types::Result;
use jaato_types::files::{FileBytes, FileRead, READ_BYTES_MAX};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use super::confined::ConfinedFiles;
use crate::errors::{self, FileOperationVerb};
use crate::platform::{FileMetadata, read_without_waiting};

/// The maximum number of bytes that are read in place if nothing has to wait.
pub const CACHED_BYTES_MAX: u64 = 64 * 1024;

impl ConfinedFiles {
    /// Reads bytes.
    pub fn read(&self, request: &FileRead) -> Result<(FileBytes, Vec<u8>)> {
        let asked = self.requested_path(&request.path)?;
        let (file, facts) = self.roots.open_file(&asked, FileOperationVerb::Read)?;
        let wanted = request.length.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX);
        let bytes = read_range(&file, request.offset, wanted, &facts, &asked.display_path())?;
        Ok((file_bytes(request.offset, &bytes, &facts), bytes))
    }

    /// Reads a few bytes if the system has them in memory, so that a thread that must not block may
    /// call it. Returns `None` if it does not, or if that is unknown. Use [`Self::read`] then.
    pub fn read_cached(&self, request: &FileRead) -> Option<(FileBytes, Vec<u8>)> {
        let asked = self.requested_path(&request.path).ok()?;
        let (file, facts) = self.roots.open_file_without_waiting(&asked)?;
        let ahead = facts.size.checked_sub(request.offset)?;
        let wanted = request.length.unwrap_or(READ_BYTES_MAX).min(ahead);
        if wanted > CACHED_BYTES_MAX {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(wanted).ok()?];
        let count = read_without_waiting(&file, &mut bytes, request.offset)?;
        // A file without a fixed size, or one that became shorter.
        if count == 0 || count < bytes.len() {
            return None;
        }
        Some((file_bytes(request.offset, &bytes, &facts), bytes))
    }
}

fn file_bytes(offset: u64, bytes: &[u8], facts: &FileMetadata) -> FileBytes {
    let end = offset.saturating_add(bytes.len() as u64);
    let size = if bytes.is_empty() { facts.size } else { facts.size.max(end) };
    FileBytes { size, offset, has_more: end < facts.size, ..FileBytes::default() }
}

fn read_range(
    file: &OwnedFd,
    offset: u64,
    wanted: u64,
    facts: &FileMetadata,
    shown: &Path,
) -> Result<Vec<u8>> {
    // One byte more than the known size, so that the read that finds the end needs no more memory.
    let known = facts.size.saturating_sub(offset).saturating_add(1).min(wanted);
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(usize::try_from(known).unwrap_or(0));
    while bytes.len() < wanted {
        if bytes.len() == bytes.capacity() {
            bytes.reserve(GROWTH_BYTES.min(wanted - bytes.len()));
        }
        let at = offset.saturating_add(bytes.len() as u64);
        match pread(file, spare_capacity(&mut bytes), at) {
            // The end of the file, or an offset beyond the possible sizes.
            Ok(0) | Err(Errno::INVAL | Errno::OVERFLOW) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(errors::operation_error(FileOperationVerb::Read, shown, errno));
            }
        }
    }
    bytes.truncate(wanted);
    Ok(bytes)
}

/// The growth of the buffer for a file that is larger than its size says, as for files of `/proc`.
const GROWTH_BYTES: usize = 64 * 1024;
