//! The folder of saved states: finds the best one, reads it, adds one, and removes the oldest.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_plugin_sdk::types::{Error, ErrorKind, Result};

use super::file::{self, HEAD_BYTES, ModelDigest, StateFileHeader};

/// The size limit of all saved states together, which is enough for about twenty sets of tools of
/// the default model.
pub const BYTES_MAX: u64 = 512 * 1024 * 1024;

const EXTENSION: &str = "prefix";

/// The saved states of one model, in a folder that all models share.
#[derive(Debug, Clone)]
pub struct ModelStateStore {
    folder: PathBuf,
    model: ModelDigest,
    bytes_per_token: usize,
    bytes_max: u64,
}

/// A saved state with the same start as a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchingState {
    path: PathBuf,
    /// The number of tokens in the file.
    pub stored: usize,
    /// The number of its tokens that the prompt starts with.
    pub usable: usize,
}

impl ModelStateStore {
    /// Creates a store. Does not touch the folder.
    pub fn new(
        folder: PathBuf,
        model: ModelDigest,
        bytes_per_token: usize,
        bytes_max: u64,
    ) -> Self {
        Self { folder, model, bytes_per_token, bytes_max }
    }

    /// Returns the saved state that shares the longest prefix with `tokens`.
    ///
    /// Truncated or invalid files are removed, and `say` gets a line about each. Files of other
    /// models are left alone.
    pub fn find_longest_prefix(
        &self,
        tokens: &[u32],
        say: &mut dyn FnMut(String),
    ) -> Option<MatchingState> {
        let mut best: Option<MatchingState> = None;
        for path in self.list_state_files() {
            match self.match_file(&path, tokens) {
                Ok(StateFileMatch::Usable(found)) => {
                    if best.as_ref().is_none_or(|best| found.usable > best.usable) {
                        best = Some(found);
                    }
                }
                Ok(StateFileMatch::Other) => {}
                Ok(StateFileMatch::Damaged) => remove_damaged(&path, say),
                Err(error) => say(format!("cannot read `{}`: {error}", path.display())),
            }
        }
        best.filter(|found| found.usable > 0)
    }

    /// Returns the bytes of a state. If it is damaged, returns `None` and passes a line to `say`.
    pub fn read_state(
        &self,
        found: &MatchingState,
        say: &mut dyn FnMut(String),
    ) -> Option<Vec<u8>> {
        let bytes = match fs::read(&found.path) {
            Ok(bytes) => bytes,
            Err(error) => {
                say(format!("cannot read `{}`: {error}", found.path.display()));
                return None;
            }
        };
        match file::decode_file(bytes) {
            Some((head, state)) if head.model == self.model && head.tokens == found.stored => {
                mark_as_used(&found.path);
                Some(state)
            }
            _ => {
                remove_damaged(&found.path, say);
                None
            }
        }
    }

    /// Returns true if exactly these tokens are saved.
    pub fn has_state(&self, tokens: &[u32]) -> bool {
        self.state_path(tokens).exists()
    }

    /// Saves the state of these tokens, and removes the oldest files beyond the limit.
    ///
    /// # Errors
    /// Kind `io`, with the path.
    pub fn write_state(&self, tokens: &[u32], state: &[u8]) -> Result<()> {
        let bytes = file::encode_file(&self.model, tokens, state);
        if bytes.len() as u64 > self.bytes_max {
            return Ok(());
        }
        let path = self.state_path(tokens);
        self.write_file(&path, &bytes).map_err(|error| {
            Error::new(
                ErrorKind::Io,
                format!("cannot save the state of the prompt to `{}`: {error}", path.display()),
            )
        })?;
        self.remove_oldest_files(&path);
        Ok(())
    }

    fn state_path(&self, tokens: &[u32]) -> PathBuf {
        self.folder.join(file::state_file_name(&self.model, tokens))
    }

    /// Lists the states by name, so that ties are always decided the same way.
    fn list_state_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION))
            .collect();
        files.sort();
        files
    }

    fn match_file(&self, path: &Path, tokens: &[u32]) -> io::Result<StateFileMatch> {
        let mut file = File::open(path)?;
        let mut head = [0; HEAD_BYTES];
        if read_up_to(&mut file, &mut head)? < HEAD_BYTES {
            return Ok(StateFileMatch::Damaged);
        }
        let Some(head) = StateFileHeader::parse(&head) else { return Ok(StateFileMatch::Damaged) };
        if file.metadata()?.len() != head.file_bytes() {
            return Ok(StateFileMatch::Damaged);
        }
        if head.model != self.model || head.bytes_per_token != self.bytes_per_token {
            return Ok(StateFileMatch::Other);
        }
        let mut saved = vec![0; head.tokens * 4];
        file.read_exact(&mut saved)?;
        let usable = common_prefix_length(&file::parse_tokens(&saved), tokens);
        Ok(StateFileMatch::Usable(MatchingState {
            path: path.to_owned(),
            stored: head.tokens,
            usable,
        }))
    }

    /// Writes a temporary file and renames it, so that a reader never sees half a file.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // The folder is inside the plugin's cache folder, which only the user can access. This
        // folder has the same mode.
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let beside = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = private_file(&beside)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&beside, path));
        if written.is_err() {
            // The first error is the one to report. The next attempt overwrites a leftover file.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn remove_oldest_files(&self, keep: &Path) {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = self
            .list_state_files()
            .into_iter()
            .filter_map(|path| {
                let data = fs::metadata(&path).ok()?;
                Some((data.modified().unwrap_or(SystemTime::UNIX_EPOCH), data.len(), path))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.bytes_max {
                break;
            }
            // If a file cannot be removed, the next save tries again.
            if path != keep && fs::remove_file(&path).is_ok() {
                total -= bytes;
            }
        }
    }
}

enum StateFileMatch {
    Usable(MatchingState),
    Other,
    Damaged,
}

/// Counts the tokens of the common prefix.
pub fn common_prefix_length(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut bytes = Vec::with_capacity(buffer.len());
    Read::by_ref(file).take(buffer.len() as u64).read_to_end(&mut bytes)?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

fn remove_damaged(path: &Path, say: &mut dyn FnMut(String)) {
    let what = match fs::remove_file(path) {
        Ok(()) => "removed".to_owned(),
        Err(error) => format!("and cannot be removed: {error}"),
    };
    say(format!("the saved state `{}` is damaged; {what}", path.display()));
}

/// Marks a file as just used, for [`ModelStateStore::remove_oldest_files`]. If that fails, the file
/// only counts as older.
fn mark_as_used(path: &Path) {
    let file = OpenOptions::new().append(true).open(path);
    if let Ok(file) = file {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // The mode only applies to a file that is created here, so remove an existing one first.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: ModelDigest = [7; 32];

    fn open_store(folder: &Path) -> ModelStateStore {
        ModelStateStore::new(folder.to_owned(), MODEL, 8, BYTES_MAX)
    }

    fn state_bytes(tokens: &[u32]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| [token as u8; 8]).collect()
    }

    #[track_caller]
    fn refuse_report(text: String) {
        panic!("said `{text}`");
    }

    #[test]
    fn state_with_the_longest_common_prefix_is_found_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(folder.path());
        for tokens in [&[1, 2, 3][..], &[1, 2, 9, 9], &[5]] {
            store.write_state(tokens, &state_bytes(tokens)).unwrap();
        }
        let found = store.find_longest_prefix(&[1, 2, 3, 4], &mut refuse_report).unwrap();
        assert_eq!((found.stored, found.usable), (3, 3));
        assert_eq!(store.read_state(&found, &mut refuse_report), Some(state_bytes(&[1, 2, 3])));
        let found = store.find_longest_prefix(&[1, 2, 9, 1], &mut refuse_report).unwrap();
        assert_eq!((found.stored, found.usable), (4, 3));
        assert_eq!(store.find_longest_prefix(&[8, 8], &mut refuse_report), None);
        assert!(store.has_state(&[5]) && !store.has_state(&[1, 2]));
    }

    #[test]
    fn states_of_other_models_are_neither_used_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let other = ModelStateStore::new(folder.path().to_owned(), [8; 32], 8, BYTES_MAX);
        other.write_state(&[1, 2], &state_bytes(&[1, 2])).unwrap();
        assert_eq!(
            open_store(folder.path()).find_longest_prefix(&[1, 2], &mut refuse_report),
            None
        );
        assert!(other.find_longest_prefix(&[1, 2], &mut refuse_report).is_some());
    }

    #[test]
    fn damaged_state_file_is_removed_and_reported() {
        for damage in [
            |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() - 1),
            |bytes: &mut Vec<u8>| bytes.truncate(10),
            |bytes: &mut Vec<u8>| bytes[0] ^= 1,
            |bytes: &mut Vec<u8>| bytes[HEAD_BYTES + 9] ^= 1,
        ] {
            let folder = tempfile::tempdir().unwrap();
            let store = open_store(folder.path());
            store.write_state(&[1, 2], &state_bytes(&[1, 2])).unwrap();
            let path = store.list_state_files().remove(0);
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
            let mut said = Vec::new();
            let mut say = |text| said.push(text);
            let found = store.find_longest_prefix(&[1, 2], &mut say);
            let read = found.and_then(|found| store.read_state(&found, &mut say));
            assert_eq!(read, None);
            assert!(!path.exists());
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains("is damaged; removed"), "{said:?}");
        }
    }

    #[test]
    fn least_recently_used_state_is_removed_above_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let one = StateFileHeader { model: MODEL, tokens: 1, bytes_per_token: 8 }.file_bytes();
        let store = ModelStateStore::new(folder.path().to_owned(), MODEL, 8, 2 * one);
        for (age, token) in [(300, 1), (200, 2)] {
            store.write_state(&[token], &state_bytes(&[token])).unwrap();
            let file = File::options().append(true).open(store.state_path(&[token])).unwrap();
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        let found = store.find_longest_prefix(&[1], &mut refuse_report).unwrap();
        assert!(store.read_state(&found, &mut refuse_report).is_some(), "reading renews the state");
        store.write_state(&[3], &state_bytes(&[3])).unwrap();
        assert_eq!([1, 2, 3].map(|token| store.has_state(&[token])), [true, false, true]);
    }

    #[test]
    fn a_state_larger_than_the_limit_is_not_saved() {
        let folder = tempfile::tempdir().unwrap();
        let store = ModelStateStore::new(folder.path().to_owned(), MODEL, 8, 20);
        store.write_state(&[1], &state_bytes(&[1])).unwrap();
        assert!(store.list_state_files().is_empty());
    }

    #[test]
    fn only_the_owner_can_read_a_state() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = open_store(folder.path());
        store.write_state(&[1], &state_bytes(&[1])).unwrap();
        let mode = fs::metadata(store.state_path(&[1])).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
