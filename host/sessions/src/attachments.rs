//! Large contents beside a session's records, named by the SHA-256 of their bytes.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jaato_places::open_own_file;
use sha2::{Digest as _, Sha256};

use crate::error::SessionStoreError;

/// Stores a content in a folder, unless it is there. Returns its name.
///
/// # Errors
/// If the disk refuses.
pub fn keep(folder: &Path, content: &[u8]) -> Result<String, SessionStoreError> {
    let digest = Sha256::digest(content);
    let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let path = folder.join(&name);
    if path.exists() {
        return Ok(name);
    }
    // A name never has a part of a content, even if the process is killed.
    let part = folder.join(format!("{name}.{}.part", std::process::id()));
    let mut file =
        open_own_file(&part, OpenOptions::new().write(true).create(true).truncate(true))?;
    let written = file.write_all(content).and_then(|()| file.sync_data());
    let placed = written.and_then(|()| fs::rename(&part, &path));
    if let Err(error) = placed {
        let _ = fs::remove_file(&part);
        return Err(SessionStoreError::io("write", path)(error));
    }
    Ok(name)
}

/// Reads a content. Returns `None` if it is missing or damaged.
///
/// # Errors
/// If it cannot be read.
pub fn read(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, SessionStoreError> {
    let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_name {
        return Ok(None);
    }
    let path: PathBuf = folder.join(name);
    let content = match fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(SessionStoreError::io("read", path)(error)),
    };
    let digest = Sha256::digest(&content);
    let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((found == name).then_some(content))
}
