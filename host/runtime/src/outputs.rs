//! Keeps what is too large for the model in files that it can read.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use jaato_session::OutputStore;
use jaato_types::{CallId, Error, ErrorKind};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

/// Largest output file of one call, in bytes: a tool that prints without end must not fill the disk.
pub const OUTPUT_FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Longest name of a file, in bytes.
const NAME_BYTES_MAX: usize = 120;

/// A folder of the host's own, made with the first output and removed with the host.
#[derive(Debug)]
pub struct Outputs {
    parent: PathBuf,
    folder: OnceLock<TempDir>,
}

impl Outputs {
    /// Names the folder in which the folder will be made.
    pub fn below(parent: &Path) -> Self {
        Self { parent: parent.join("outputs"), folder: OnceLock::new() }
    }

    /// Returns the path for a file of this name, which is made safe. Makes the folder.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = match self.folder.get() {
            Some(folder) => folder,
            None => {
                let made = make(&self.parent).map_err(|error| failed(&self.parent, &error))?;
                // Two calls may come here together: one folder wins, the other is removed again.
                self.folder.get_or_init(|| made)
            }
        };
        Ok(folder.path().join(file_name(name)))
    }
}

/// Makes a name safe. Ids come from providers: two that differ must not become one file.
fn file_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= NAME_BYTES_MAX && name.chars().all(is_plain) && !name.starts_with('.') {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    // The end tells what is in the file.
    let end: Vec<char> = name.chars().rev().take(NAME_BYTES_MAX / 2).collect();
    let end = end.into_iter().rev().map(|c| if is_plain(c) { c } else { '_' });
    format!("{:016x}-{}", hasher.finish(), end.collect::<String>())
}

fn make(parent: &Path) -> io::Result<TempDir> {
    std::fs::create_dir_all(parent)?;
    tempfile::Builder::new().prefix("session-").tempdir_in(parent)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let text = format!("cannot keep an output in `{}`: {error}", path.display());
    Error::new(ErrorKind::Io, text)
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
    /// Makes the file, which grows to so many bytes at most.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn create(path: PathBuf, bytes_max: u64) -> Result<Self, Error> {
        let file = tokio::fs::File::create(&path).await.map_err(not_written)?;
        Ok(Self { path, file, bytes: 0, bytes_max })
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how much is in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a piece, whole.
    ///
    /// # Errors
    /// When the file would be too large, and then nothing is added; or when it cannot be written.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let after = self.bytes + bytes.len() as u64;
        if after > self.bytes_max {
            let text = format!("the call's output has more than {} bytes", self.bytes_max);
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        self.file.write_all(bytes).await.map_err(not_written)?;
        self.file.flush().await.map_err(not_written)?;
        self.bytes = after;
        Ok(())
    }
}

fn not_written(error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot keep the call's output: {error}"))
}

impl OutputStore for Outputs {
    fn keep<'a>(
        &'a self,
        call: &'a CallId,
        label: &'a str,
        bytes: &'a [u8],
    ) -> BoxFuture<'a, Result<String, Error>> {
        Box::pin(async move {
            let path = self.path(&format!("{call}-{label}.txt"))?;
            let bytes = bytes.to_vec();
            let at = path.clone();
            let written = tokio::task::spawn_blocking(move || {
                let mut file = std::fs::File::create(&at)?;
                file.write_all(&bytes)
            });
            match written.await {
                Ok(Ok(())) => Ok(path.display().to_string()),
                Ok(Err(error)) => Err(failed(&path, &error)),
                Err(error) => Err(Error::new(ErrorKind::HostBug, error.to_string())),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_are_files_that_differ_and_stay_in_the_folder() {
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
    async fn an_output_lands_in_a_folder_that_goes_with_the_host() {
        let parent = tempfile::tempdir().unwrap();
        let outputs = Outputs::below(parent.path());
        let path = outputs.keep(&CallId::from("../../x"), "std out", b"much").await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"much");
        assert!(Path::new(&path).starts_with(parent.path().join("outputs")));
        drop(outputs);
        assert!(!Path::new(&path).exists());
    }

    #[tokio::test]
    async fn an_output_file_holds_what_its_bound_allows_and_not_a_byte_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("call-output.txt");
        let mut file = OutputFile::create(path.clone(), 8).await.unwrap();
        file.write(b"12345").await.unwrap();
        let error = file.write(b"6789").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::LimitReached);
        assert_eq!(error.message, "the call's output has more than 8 bytes");
        assert_eq!((file.bytes(), std::fs::read(&path).unwrap()), (5, b"12345".to_vec()));
        file.write(b"678").await.unwrap();
        assert_eq!(file.write(b"9").await.unwrap_err().kind, ErrorKind::LimitReached);
        assert_eq!((file.bytes(), std::fs::read(&path).unwrap()), (8, b"12345678".to_vec()));
    }
}
