//! Keeps what is too large for the model in files that it can read.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use jaato_session::OutputStore;
use jaato_types::{CallId, Error, ErrorKind};
use tempfile::TempDir;

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
}
