//! The changes that this crate makes on the disk. A test can watch each of them, and make it fail.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use jaato_places::{make_own_folder, open_own_file};

use crate::error::SessionStoreError;

/// One change on the disk, or one request to make changes durable.
#[derive(Debug)]
pub enum DiskStep<'a> {
    /// Creates a file, a folder or a link.
    Create(&'a Path),
    /// Writes bytes at the end of a file.
    Write {
        /// The file.
        file: &'a File,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Cuts a file.
    Cut {
        /// The file.
        file: &'a File,
        /// Its new length.
        length: u64,
    },
    /// Makes the content of a file or the names in a folder durable.
    Sync(&'a Path),
    /// Renames a file or a folder.
    Rename(&'a Path),
    /// Removes a file, or a folder with its content.
    Remove(&'a Path),
}

/// Watches the steps of a store, in a test.
pub trait DiskHook: Send + Sync + std::fmt::Debug {
    /// Called before a step. An error makes the step fail. To test a short write, write a part of
    /// the bytes and return an error.
    ///
    /// # Errors
    /// The error of the step.
    fn before_step(&self, step: &DiskStep<'_>) -> io::Result<()>;

    /// Called after a step that succeeded.
    fn after_step(&self, step: &DiskStep<'_>);
}

/// The disk of a store.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub(crate) hook: Option<Arc<dyn DiskHook>>,
}

impl Disk {
    /// Creates a private folder, if it is missing.
    pub fn make_folder(&self, folder: &Path) -> Result<(), SessionStoreError> {
        if folder.is_dir() {
            // The caller opens files there, which checks the folder.
            return Ok(());
        }
        let step = DiskStep::Create(folder);
        self.run_step(&step, || Ok(make_own_folder(folder)?))
            .map_err(SessionStoreError::from_io("create", folder))
    }

    /// Creates a private file, which must not exist, to append to it.
    pub fn create_new(&self, path: &Path) -> Result<File, SessionStoreError> {
        self.create_file(path, OpenOptions::new().append(true).create_new(true))
    }

    /// Creates a private file, or empties it, to append to it.
    pub fn create_empty(&self, path: &Path) -> Result<File, SessionStoreError> {
        let file = self.create_file(path, OpenOptions::new().append(true).create(true))?;
        self.truncate_file(&file, path, 0)?;
        Ok(file)
    }

    fn create_file(
        &self,
        path: &Path,
        options: &mut OpenOptions,
    ) -> Result<File, SessionStoreError> {
        let created = self.run_step(&DiskStep::Create(path), || Ok(open_own_file(path, options)?));
        created.map_err(SessionStoreError::from_io("create", path))
    }

    /// Writes bytes at the end of a file that was opened to append.
    pub fn append_bytes(
        &self,
        file: &File,
        path: &Path,
        bytes: &[u8],
    ) -> Result<(), SessionStoreError> {
        let mut writer = file;
        self.run_step(&DiskStep::Write { file, bytes }, || writer.write_all(bytes))
            .map_err(SessionStoreError::from_io("write", path))
    }

    /// Cuts a file.
    pub fn truncate_file(
        &self,
        file: &File,
        path: &Path,
        length: u64,
    ) -> Result<(), SessionStoreError> {
        self.run_step(&DiskStep::Cut { file, length }, || file.set_len(length))
            .map_err(SessionStoreError::from_io("write", path))
    }

    /// Makes the content of a file durable.
    pub fn sync_file(&self, file: &File, path: &Path) -> Result<(), SessionStoreError> {
        self.run_step(&DiskStep::Sync(path), || self.sync_if_real(|| file.sync_data()))
            .map_err(SessionStoreError::from_io("write", path))
    }

    /// Makes the names in a folder durable.
    pub fn sync_folder(&self, folder: &Path) -> Result<(), SessionStoreError> {
        let failed = |error| SessionStoreError::from_io("write", folder)(error);
        let file = File::open(folder).map_err(failed)?;
        let sync = || self.sync_if_real(|| file.sync_all());
        let synced = self.run_step(&DiskStep::Sync(folder), || match sync() {
            // Some file systems cannot sync a folder, and keep its names anyway.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced,
        });
        synced.map_err(failed)
    }

    /// A test with a hook knows on its own what is durable, and a thousand syncs take long.
    fn sync_if_real(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.hook.is_some() { Ok(()) } else { sync() }
    }

    /// Renames a file or a folder.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<(), SessionStoreError> {
        self.run_step(&DiskStep::Rename(from), || fs::rename(from, to))
            .map_err(SessionStoreError::from_io("rename", from))
    }

    /// Links a file to a second name. Copies it if the file system has no links.
    pub fn link_file(&self, from: &Path, to: &Path) -> Result<(), SessionStoreError> {
        let link = || fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop));
        self.run_step(&DiskStep::Create(to), link).map_err(SessionStoreError::from_io("copy", from))
    }

    /// Removes a file, if it exists.
    pub fn remove_file(&self, path: &Path) -> Result<(), SessionStoreError> {
        self.remove_path(path, |path| fs::remove_file(path))
    }

    /// Removes a folder with its content, if it exists.
    pub fn remove_folder(&self, path: &Path) -> Result<(), SessionStoreError> {
        self.remove_path(path, |path| fs::remove_dir_all(path))
    }

    fn remove_path(
        &self,
        path: &Path,
        work: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), SessionStoreError> {
        let result = self.run_step(&DiskStep::Remove(path), || match work(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        });
        result.map_err(SessionStoreError::from_io("delete", path))
    }

    fn run_step<T>(
        &self,
        step: &DiskStep<'_>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let Some(hook) = &self.hook else { return work() };
        hook.before_step(step)?;
        let done = work()?;
        hook.after_step(step);
        Ok(done)
    }
}
