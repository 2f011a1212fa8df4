//! Keeps outputs that are too large for the model in files on this machine. If the model works in
//! another environment, that environment keeps them.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jaato_places::TrustedOwners;
use jaato_types::{Error, ErrorKind};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

/// Largest output file of one call, in bytes. A tool that prints without end must not fill the
/// disk.
pub const OUTPUT_FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Longest file name, in bytes.
const NAME_BYTES_MAX: usize = 120;

/// A folder that the host creates with the first output and removes when it ends.
#[derive(Debug)]
pub struct OutputFolder {
    parent: PathBuf,
    folder: OnceLock<LockedFolder>,
}

/// A folder with a lock that the system releases when its host ends in any way.
#[derive(Debug)]
struct LockedFolder {
    folder: TempDir,
    _lock: File,
}

impl OutputFolder {
    /// Sets the parent folder.
    pub fn in_folder(parent: &Path) -> Self {
        Self { parent: parent.join("outputs"), folder: OnceLock::new() }
    }

    /// Returns a path for a file with this name, after sanitizing it. Creates the folder.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = match self.folder.get() {
            Some(folder) => folder,
            None => {
                let made = create_locked_folder(&self.parent)
                    .map_err(|error| folder_error(&self.parent, &error))?;
                // Two calls may get here at the same time. One folder wins, and the other is
                // removed.
                self.folder.get_or_init(|| made)
            }
        };
        Ok(folder.folder.path().join(file_name(name)))
    }

    /// Removes folders that killed hosts left behind. On a file system without locks, they stay.
    pub fn remove_abandoned_folders(&self) {
        // Usually there is nothing, and checking costs one system call.
        let Ok(entries) = std::fs::read_dir(&self.parent) else { return };
        if jaato_places::check_folder(&self.parent, &TrustedOwners::this_user_and_root()).is_err() {
            return;
        }
        let Ok(lock) = File::open(&self.parent) else { return };
        // While this lock is held, no other host creates its folder or sweeps.
        if lock.try_lock().is_err() {
            return;
        }
        for entry in entries.flatten() {
            let folder = entry.path();
            let is_dead = File::open(&folder).is_ok_and(|file| file.try_lock().is_ok());
            if is_dead && folder.is_dir() {
                // The next start tries again if this fails.
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }
}

/// Sanitizes a file name. Ids come from providers, so different ids must not map to one file.
pub fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain) && !name.starts_with('.') {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // The end of the name shows the kind of content.
    let end: Vec<char> = name.chars().rev().take(NAME_BYTES_MAX / 2).collect();
    let end = end.into_iter().rev().map(|c| if is_plain(c) { c } else { '_' });
    format!("{:016x}-{}", hasher.finish(), end.collect::<String>())
}

/// Returns an alternative file name if `name` is taken.
pub fn numbered_name(name: &str, number: u64) -> String {
    format!("{number}-{name}")
}

fn create_locked_folder(parent: &Path) -> io::Result<LockedFolder> {
    jaato_places::make_own_folder(parent)?;
    // Held until the new folder has its own lock, because a folder without one counts as dead.
    let sweeping = File::open(parent)?;
    let has_locks = sweeping.lock().is_ok();
    let folder = tempfile::Builder::new().prefix("session-").tempdir_in(parent)?;
    let lock = File::open(folder.path())?;
    if has_locks {
        lock.lock()?;
    }
    Ok(LockedFolder { folder, _lock: lock })
}

fn folder_error(path: &Path, error: &io::Error) -> Error {
    let text = format!("cannot save output in `{}`: {error}", path.display());
    let made = Error::new(ErrorKind::Io, text);
    jaato_places::io_error_hint(error).into_iter().fold(made, Error::with_hint)
}

/// The file of one call's output, written piece by piece.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    file: tokio::fs::File,
    bytes: u64,
    bytes_max: u64,
}

impl OutputFile {
    /// Creates the file with a maximum size. If the name is taken, prefixes it with a number.
    ///
    /// # Errors
    /// If it cannot be created.
    pub async fn create(path: PathBuf, bytes_max: u64) -> Result<Self, Error> {
        let mut options = tokio::fs::OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut numbered = path.clone();
        for number in 2_u64.. {
            match options.open(&numbered).await {
                Ok(file) => return Ok(Self { path: numbered, file, bytes: 0, bytes_max }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    numbered = path.with_file_name(numbered_name(&name, number));
                }
                Err(error) => return Err(write_error(error)),
            }
        }
        Err(write_error(io::ErrorKind::AlreadyExists.into()))
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of bytes written.
    pub fn written_bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a whole piece.
    ///
    /// # Errors
    /// If the file would become too large, in which case nothing is written, or if it cannot be
    /// written.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let after = self.bytes + bytes.len() as u64;
        if after > self.bytes_max {
            return Err(too_large_error(self.bytes_max));
        }
        self.file.write_all(bytes).await.map_err(write_error)?;
        self.file.flush().await.map_err(write_error)?;
        self.bytes = after;
        Ok(())
    }
}

/// Returns the error for an output that exceeds the limit of its file.
pub fn too_large_error(bytes_max: u64) -> Error {
    let text = format!("the call's output has more than {bytes_max} bytes");
    Error::new(ErrorKind::LimitReached, text)
}

fn write_error(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot save the call's output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_output_names_give_different_files_inside_the_folder() {
        assert_eq!(file_name("call_1-stdout.txt"), "call_1-stdout.txt");
        let long = |middle: &str, end: &str| format!("{}{middle}-{end}.txt", "x".repeat(128));
        let names = [
            "a/b-output.txt",
            "a_b-output.txt",
            "../../x",
            "..",
            &long("1", "stdout"),
            &long("2", "stdout"),
            &long("1", "stderr"),
        ];
        let files: std::collections::BTreeSet<String> =
            names.iter().map(|name| file_name(name)).collect();
        assert_eq!(files.len(), names.len());
        for file in files {
            assert!(!file.contains('/') && !file.starts_with('.') && file.len() <= 120, "{file}");
        }
        assert!(file_name(&long("1", "stdout")).ends_with("-stdout.txt"));
    }

    #[tokio::test]
    async fn output_folder_is_removed_with_the_host() {
        let parent = tempfile::tempdir().unwrap();
        let outputs = OutputFolder::in_folder(parent.path());
        let path = outputs.path("../../x-std out.txt").unwrap();
        let mut file = OutputFile::create(path.clone(), 8).await.unwrap();
        file.write(b"much").await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"much");
        assert!(path.starts_with(parent.path().join("outputs")));
        drop(outputs);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn output_folders_of_dead_hosts_are_removed_and_others_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        let living = OutputFolder::in_folder(parent.path());
        let kept = living.path("c-output.txt").unwrap();
        let mut file = OutputFile::create(kept.clone(), 8).await.unwrap();
        file.write(b"much").await.unwrap();
        let dead = parent.path().join("outputs/session-dead");
        std::fs::create_dir(&dead).unwrap();
        std::fs::write(dead.join("call-output.txt"), "much").unwrap();
        OutputFolder::in_folder(parent.path()).remove_abandoned_folders();
        assert!(!dead.exists());
        assert_eq!(std::fs::read(&kept).unwrap(), b"much");
        let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&path.metadata().unwrap());
        assert_eq!(mode(&kept) & 0o777, 0o600);
        assert_eq!(mode(&parent.path().join("outputs")) & 0o777, 0o700);
    }

    #[tokio::test]
    async fn output_file_accepts_bytes_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("call-output.txt");
        let mut file = OutputFile::create(path.clone(), 8).await.unwrap();
        file.write(b"12345").await.unwrap();
        let error = file.write(b"6789").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        assert_eq!(error.message, "the call's output has more than 8 bytes");
        assert_eq!((file.written_bytes(), std::fs::read(&path).unwrap()), (5, b"12345".to_vec()));
        file.write(b"678").await.unwrap();
        assert_eq!(file.write(b"9").await.unwrap_err().kind, ErrorKind::LimitReached);
        assert_eq!(
            (file.written_bytes(), std::fs::read(&path).unwrap()),
            (8, b"12345678".to_vec())
        );
    }

    #[tokio::test]
    async fn a_second_output_of_one_name_leaves_the_first_one_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("call_0-output.txt");
        let mut names = Vec::new();
        for text in ["first", "second", "third"] {
            let mut file = OutputFile::create(path.clone(), 8).await.unwrap();
            file.write(text.as_bytes()).await.unwrap();
            assert_eq!(std::fs::read(file.path()).unwrap(), text.as_bytes());
            names.push(file.path().file_name().unwrap().to_owned());
        }
        assert_eq!(names, ["call_0-output.txt", "2-call_0-output.txt", "3-call_0-output.txt"]);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
    }
}
