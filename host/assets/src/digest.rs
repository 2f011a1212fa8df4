//! SHA-256 of files, and copying while hashing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest, Sha256};

use crate::AssetError;

/// Bytes per read: large enough for the disk, small enough to notice a cancel quickly.
const BLOCK_BYTES: usize = 256 * 1024;

/// Reads `file` to its end and calls `each` with every block.
pub(crate) fn read_blocks(
    mut file: impl Read,
    path: &Path,
    cancelled: &AtomicBool,
    mut each: impl FnMut(&[u8]) -> Result<(), AssetError>,
) -> Result<(), AssetError> {
    let mut block = vec![0; BLOCK_BYTES];
    loop {
        if cancelled.load(Ordering::Relaxed) {
            return Err(AssetError::Cancelled);
        }
        match file.read(&mut block) {
            Ok(0) => return Ok(()),
            Ok(length) => each(&block[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(AssetError::from_io("read", path, error)),
        }
    }
}

/// Returns the digest of the unread rest of a file.
pub(crate) fn file_digest(
    file: &File,
    path: &Path,
    cancelled: &AtomicBool,
) -> Result<String, AssetError> {
    let mut hasher = Sha256::new();
    read_blocks(file, path, cancelled, |block| {
        hasher.update(block);
        Ok(())
    })?;
    Ok(hex_digest(hasher))
}

/// Copies a file and returns the digest of the written bytes.
pub(crate) fn copy_and_digest(
    from: (&File, &Path),
    to: (&mut File, &Path),
    cancelled: &AtomicBool,
    mut progress: impl FnMut(u64),
) -> Result<String, AssetError> {
    let mut hasher = Sha256::new();
    let mut done = 0;
    let (target, target_path) = to;
    read_blocks(from.0, from.1, cancelled, |block| {
        target
            .write_all(block)
            .map_err(|error| AssetError::from_io("write", target_path, error))?;
        hasher.update(block);
        done += block.len() as u64;
        progress(done);
        Ok(())
    })?;
    Ok(hex_digest(hasher))
}

/// Returns a finished digest as text.
pub(crate) fn hex_digest(hasher: Sha256) -> String {
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
