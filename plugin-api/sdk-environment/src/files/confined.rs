//! The files of an execution environment: what all operations share.

use std::path::Path;

use jaato_types::Result;
use parking_lot::Mutex;

use super::limits::WRITE_LOCKS;
use super::roots::Roots;
use super::settings::Settings;
use super::temporary::Temporary;
use crate::errors::Verb;

/// The files of an execution environment.
///
/// All methods block. They may be called from several threads at once. Paths in requests, answers
/// and errors are those that the environment shows.
#[derive(Debug)]
pub struct Confined {
    pub(crate) roots: Roots,
    temporary: Option<Temporary>,
    writes: [Mutex<()>; WRITE_LOCKS],
}

impl Confined {
    /// Opens the allowed folders, makes the temporary folder, and removes those that hosts left
    /// behind which were killed.
    pub fn open(settings: &Settings) -> Result<Self> {
        let temporary = settings.temporary.as_ref().map(Temporary::make).transpose()?;
        let mut roots = settings.roots.clone();
        roots.extend(temporary.as_ref().map(Temporary::root));
        let roots = Roots::open(&roots, &settings.default_folder)?;
        let default = roots.asked(&settings.default_folder.to_string_lossy())?;
        roots.open_folder_place(&default, Verb::Open)?;
        Ok(Self { roots, temporary, writes: Default::default() })
    }

    /// Where relative paths start, as it is shown.
    pub fn default_folder(&self) -> &Path {
        self.roots.default_folder()
    }

    /// The temporary folder: where it is on this machine, and how it is shown.
    pub fn temporary_folder(&self) -> Option<(&Path, &Path)> {
        self.temporary.as_ref().map(|it| (it.host(), it.shown()))
    }

    /// The allowed folders as they are shown, the temporary one last.
    pub fn allowed_folders(&self) -> impl Iterator<Item = &Path> {
        self.roots.shown()
    }

    /// Finds a folder, to run a program in it: where it is on this machine, and how it is shown.
    /// The names on the machine may be exchanged after that; what stands on them is not confined.
    pub fn folder(&self, path: &str) -> Result<(std::path::PathBuf, std::path::PathBuf)> {
        let asked = self.roots.asked_folder(path)?;
        let place = self.roots.open_folder_place(&asked, Verb::Open)?;
        Ok((self.roots.host_path(&place), self.roots.true_path(&place)))
    }

    /// Removes the temporary folder, and tells where that failed. Dropping does so too.
    pub fn close(&self) -> Result<()> {
        self.temporary.as_ref().map_or(Ok(()), Temporary::remove)
    }

    /// Waits for other writes to that name.
    pub(crate) fn write_lock(&self, name: &std::ffi::OsStr) -> parking_lot::MutexGuard<'_, ()> {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let lock = &self.writes[usize::try_from(hash % WRITE_LOCKS as u64).unwrap_or(0)];
        // Nothing is kept under the lock that a panic could leave half done.
        lock.lock()
    }
}
