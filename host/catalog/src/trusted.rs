//! Private copies of plugin files trusted by hash, so that the opened file is exactly the hashed
//! one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use jaato_registry::{PluginEntry, PluginFileTrust, PluginStatus};
use sha2::{Digest as _, Sha256};

/// Why the private copy could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Reading or writing failed.
    #[error("cannot make a private copy of plugin `{}`: {error}", .0.display(), error = .1)]
    Io(PathBuf, io::Error),
    /// The file is not the trusted one.
    #[error(
        "plugin `{}` changed since it was trusted: expected sha256 {trusted}, found {has}",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The trusted digest.
        trusted: String,
        /// The file's digest.
        has: String,
    },
}

/// Returns the SHA-256 of a file in lower-case hex.
///
/// # Errors
/// If it cannot be read.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    // Opening a pipe instead of a file would block.
    copy_and_hash(&mut jaato_places::open_plain_file(path)?, &mut io::sink(), &mut hash)?;
    Ok(hex_digest(&hash.finalize()))
}

/// Copies a file to the private folder while hashing the written bytes, and returns the copy's
/// path. An existing copy is hashed again and used.
///
/// # Errors
/// [`CopyError::Changed`] if the content is not the trusted one.
pub fn create_private_copy(
    path: &Path,
    trusted: &str,
    folder: &Path,
) -> Result<PathBuf, CopyError> {
    let io = |error| CopyError::Io(path.to_owned(), error);
    jaato_places::make_own_folder(folder).map_err(|error| io(error.into()))?;
    let copy = copy_path(trusted, folder);
    if file_sha256(&copy).is_ok_and(|has| has == trusted) {
        return Ok(copy);
    }
    let beside = folder.join(format!(".{trusted}.{}.tmp", std::process::id()));
    let mut hash = Sha256::new();
    let written =
        jaato_places::open_plain_file(path).map_err(io::Error::from).and_then(|mut from| {
            copy_and_hash(&mut from, &mut create_private_file(&beside)?, &mut hash)
        });
    let has = hex_digest(&hash.finalize());
    let placed = match written {
        Err(error) => Err(io(error)),
        Ok(()) if has != trusted => {
            Err(CopyError::Changed { path: path.to_owned(), trusted: trusted.to_owned(), has })
        }
        Ok(()) => fs::rename(&beside, &copy).map_err(io),
    };
    if placed.is_err() {
        // Best effort: no one reads this file.
        let _ = fs::remove_file(&beside);
    }
    placed.map(|()| copy)
}

/// Removes the private copy of content that lost its trust, if the copy exists. If it is open, it
/// stays mapped.
///
/// # Errors
/// If it cannot be removed.
pub fn forget_copy(digest: &str, folder: &Path) -> io::Result<()> {
    match fs::remove_file(copy_path(digest, folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the command that trusts a plugin that runs although it is not trusted.
pub fn trust_command(entry: &PluginEntry) -> Option<String> {
    let PluginFileTrust::No(digest) = &entry.candidate.trust else { return None };
    let is_used = entry.status == PluginStatus::Active;
    is_used.then(|| trust_line(&entry.candidate.path, digest))
}

/// Returns the command that trusts a file with this content.
pub fn trust_line(file: &Path, sha256: &str) -> String {
    format!("jaato plugin trust {} --sha256 {sha256}", shell_word(&file.to_string_lossy()))
}

/// Quotes any text as one word for a shell.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn copy_path(digest: &str, folder: &Path) -> PathBuf {
    folder.join(format!("{digest}{}", std::env::consts::DLL_SUFFIX))
}

fn copy_and_hash(
    from: &mut impl io::Read,
    to: &mut impl io::Write,
    hash: &mut Sha256,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return to.flush(),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hash.update(&buffer[..read]);
        to.write_all(&buffer[..read])?;
    }
}

fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o500);
    options.open(path)
}

fn hex_digest(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_copy_holds_exactly_the_trusted_content() {
        let folder = tempfile::tempdir().unwrap();
        let (plugin, private) = (folder.path().join("moon.so"), folder.path().join("trusted"));
        fs::write(&plugin, "good").unwrap();
        let trusted = file_sha256(&plugin).unwrap();
        let copy = create_private_copy(&plugin, &trusted, &private).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"good");

        // The copy remains valid when the file changes. Without the copy, the change is refused.
        fs::write(&plugin, "evil").unwrap();
        assert_eq!(create_private_copy(&plugin, &trusted, &private).unwrap(), copy);
        fs::remove_file(&copy).unwrap();
        let error = create_private_copy(&plugin, &trusted, &private).unwrap_err();
        assert!(matches!(error, CopyError::Changed { .. }), "{error}");
        assert!(fs::read_dir(&private).unwrap().next().is_none(), "nothing is left beside");
    }

    #[test]
    fn a_copy_that_was_tampered_with_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = folder.path().join("moon.so");
        fs::write(&plugin, "good").unwrap();
        let trusted = file_sha256(&plugin).unwrap();
        let copy = create_private_copy(&plugin, &trusted, folder.path()).unwrap();
        fs::remove_file(&copy).unwrap();
        fs::write(&copy, "evil").unwrap();
        let copy = create_private_copy(&plugin, &trusted, folder.path()).unwrap();
        assert_eq!(fs::read(copy).unwrap(), b"good");
    }

    #[test]
    fn forget_copy_removes_the_copy_and_may_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = folder.path().join("moon.so");
        fs::write(&plugin, "good").unwrap();
        let digest = file_sha256(&plugin).unwrap();
        let copy = create_private_copy(&plugin, &digest, folder.path()).unwrap();
        for _ in 0..2 {
            forget_copy(&digest, folder.path()).unwrap();
            assert!(!copy.exists());
        }
        assert!(plugin.exists());
    }
}
