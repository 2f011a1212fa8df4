//! Private copies of plugin files, which are opened instead of the originals while plugins are
//! watched.
//!
//! If a file is overwritten in place while it is mapped, the process crashes. So the file is
//! copied, and the copy opened and unlinked at once. No one can change the copy, and nothing is
//! left behind. It stays open as long as another instance may be created from it. Each copy has its
//! own name, because a linker treats two files of the same name as one.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jaato_catalog::{Edition, file_sha256};
use jaato_loader::PluginFileStamp;
use jaato_types::PluginName;
use parking_lot::Mutex;
use tempfile::TempPath;

/// How old a leftover copy must be before it is removed. Opening a copy takes milliseconds.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// Creates and holds copies.
pub struct PluginCopies {
    folder: PathBuf,
    held: Mutex<HashMap<(PluginName, u64), Weak<PluginCopy>>>,
}

/// A copy without a name.
#[derive(Debug)]
pub struct PluginCopy(Mutex<File>);

/// A copy that has a name while it is being opened.
pub struct NamedPluginCopy {
    /// The file to open.
    pub path: TempPath,
    /// The copy, to be kept with the instance.
    pub copy: Arc<PluginCopy>,
}

/// Why the copy could not be made.
#[derive(Debug)]
pub enum CopyProblem {
    /// The file has changed since it was found.
    Changed,
    /// Reading or writing failed.
    Io(io::Error),
}

impl From<io::Error> for CopyProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl PluginCopies {
    /// Creates copies in a private folder below this one. Removes copies that a killed host has
    /// left there.
    pub fn in_folder(parent: &Path) -> Self {
        let folder = parent.join("opened");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > LEFT_BEHIND) {
                // Best effort: if this fails, more important things fail too.
                let _ = fs::remove_file(entry.path());
            }
        }
        Self { folder, held: Mutex::default() }
    }

    /// Returns a copy of an edition: an existing one, or a new one of its file. Blocks.
    ///
    /// # Errors
    /// [`CopyProblem::Changed`] if the file has changed.
    pub fn open(
        &self,
        plugin: &PluginName,
        edition: &Edition,
        file: &Path,
        digest: Option<&str>,
    ) -> Result<NamedPluginCopy, CopyProblem> {
        let key = (plugin.clone(), edition.content);
        let held = self.held.lock();
        let copy = held.get(&key).and_then(Weak::upgrade);
        drop(held);
        if let Some(copy) = copy {
            return self.reopen(plugin, copy);
        }
        let mut from = File::open(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CopyProblem::Changed,
            _ => CopyProblem::Io(error),
        })?;
        let path = self.create_copy(plugin, &mut from)?;
        let is_it = match digest {
            Some(digest) => file_sha256(&path)? == digest,
            None => {
                edition.stamp.is_none() || PluginFileStamp::read_stamp(file).ok() == edition.stamp
            }
        };
        if !is_it {
            return Err(CopyProblem::Changed);
        }
        let copy = Arc::new(PluginCopy(File::open(&path)?.into()));
        let mut held = self.held.lock();
        held.retain(|_, copy| copy.strong_count() > 0);
        held.insert(key, Arc::downgrade(&copy));
        Ok(NamedPluginCopy { path, copy })
    }

    /// Gives a copy a name again. Blocks.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn reopen(
        &self,
        plugin: &PluginName,
        copy: Arc<PluginCopy>,
    ) -> Result<NamedPluginCopy, CopyProblem> {
        let path = {
            let mut from = copy.0.lock();
            from.seek(SeekFrom::Start(0))?;
            self.create_copy(plugin, &mut from)?
        };
        Ok(NamedPluginCopy { path, copy })
    }

    fn create_copy(&self, plugin: &PluginName, from: &mut File) -> io::Result<TempPath> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        jaato_places::make_own_folder(&self.folder)?;
        let number = COUNT.fetch_add(1, Relaxed);
        let mut file = tempfile::Builder::new()
            .prefix(&format!("{plugin}-{}-{number}-", std::process::id()))
            .suffix(std::env::consts::DLL_SUFFIX)
            .tempfile_in(&self.folder)?;
        io::copy(from, file.as_file_mut())?;
        Ok(file.into_temp_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_edition(file: &Path) -> Edition {
        Edition { number: 1, content: 1, stamp: PluginFileStamp::read_stamp(file).ok() }
    }

    fn count_files(folder: &Path) -> usize {
        fs::read_dir(folder.join("opened")).unwrap().count()
    }

    #[test]
    fn plugin_copy_keeps_its_content_when_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (copies, file) =
            (PluginCopies::in_folder(folder.path()), folder.path().join("moon.so"));
        let moon = PluginName::from("tool-moon");
        fs::write(&file, "old").unwrap();
        let edition = test_edition(&file);
        let opening = copies.open(&moon, &edition, &file, None).unwrap();
        fs::write(&file, "new, written in place").unwrap();
        assert_eq!(fs::read(&opening.path).unwrap(), b"old");
        let NamedPluginCopy { path, copy } = opening;
        let first = path.to_path_buf();
        path.close().unwrap();
        assert_eq!(count_files(folder.path()), 0);

        // The copy still serves further instances, under another name.
        let again = copies.open(&moon, &edition, &file, None).unwrap();
        assert_eq!(fs::read(&again.path).unwrap(), b"old");
        assert_ne!(again.path.to_path_buf(), first);
        drop((again, copy));
        assert_eq!(count_files(folder.path()), 0);
        let gone = copies.open(&moon, &edition, &file, None);
        assert!(matches!(gone, Err(CopyProblem::Changed)));
    }

    #[test]
    fn plugin_file_with_another_digest_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (copies, file) =
            (PluginCopies::in_folder(folder.path()), folder.path().join("moon.so"));
        fs::write(&file, "old").unwrap();
        let digest = file_sha256(&file).unwrap();
        let (moon, edition) = (PluginName::from("tool-moon"), test_edition(&file));
        fs::write(&file, "new").unwrap();
        let opened = copies.open(&moon, &edition, &file, Some(&digest));
        assert!(matches!(opened, Err(CopyProblem::Changed)));
        fs::write(&file, "old").unwrap();
        copies.open(&moon, &edition, &file, Some(&digest)).unwrap();
        assert_eq!(count_files(folder.path()), 0);
    }
}
