//! The files of an execution environment: the state that all operations share.

use std::path::Path;
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::{FileResolve, FilesResolved, RESOLVE_PATHS_MAX};
use parking_lot::Mutex;

use super::asked::Asked;
use super::limits::WRITE_LOCKS;
use super::roots::Roots;
use super::settings::{Root, Settings};
use super::temporary::Temporary;
use crate::engine::CallLimits;
use crate::errors::Verb;

/// The files of an execution environment.
///
/// All methods block, and several threads may call them at once. Requests, answers and errors
/// contain paths as the environment shows them. Clones share the same files.
#[derive(Debug, Clone)]
pub struct Confined {
    pub(crate) roots: Arc<Roots>,
    /// All files of this machine, if the environment shows paths under this machine's own names.
    machine: Option<Arc<Roots>>,
    temporary: Option<Arc<Temporary>>,
    writes: Arc<[Mutex<()>; WRITE_LOCKS]>,
    /// The limits of the call that uses the files.
    pub(crate) limits: Option<Arc<CallLimits>>,
}

impl Confined {
    /// Opens the allowed folders, creates the temporary folder, and removes temporary folders that
    /// killed hosts left behind.
    pub fn open(settings: &Settings) -> Result<Self> {
        let temporary = settings.temporary.as_ref().map(Temporary::make).transpose()?;
        let mut roots = settings.roots.clone();
        let is_machine = roots.iter().all(|root| root.host == root.shown);
        roots.extend(temporary.as_ref().map(Temporary::root));
        let default = &settings.default_folder;
        let machine = is_machine.then(|| Roots::open(&[Root::local("/")], default)).transpose()?;
        let roots = Roots::open(&roots, default)?;
        let default = Asked::new(&default.to_string_lossy(), default)?;
        roots.open_folder_place(&default, Verb::Open)?;
        Ok(Self {
            roots: Arc::new(roots),
            machine: machine.map(Arc::new),
            temporary: temporary.map(Arc::new),
            writes: Arc::default(),
            limits: None,
        })
    }

    /// Returns the same files with the limits of a call.
    #[must_use]
    pub fn limited(&self, limits: &Arc<CallLimits>) -> Self {
        Self { limits: Some(Arc::clone(limits)), ..self.clone() }
    }

    /// Parses a path.
    pub(crate) fn asked(&self, path: &str) -> Result<Asked> {
        let asked = Asked::new(path, self.roots.default_folder())?;
        Ok(Asked { limits: self.limits.clone(), ..asked })
    }

    /// Parses the path of a folder. An empty path is the default folder.
    pub(crate) fn asked_folder(&self, path: &str) -> Result<Asked> {
        let asked = self.asked(if path.is_empty() { "." } else { path })?;
        Ok(Asked { wants_folder: true, ..asked })
    }

    /// Returns the folder in which relative paths start, as the environment shows it.
    pub fn default_folder(&self) -> &Path {
        self.roots.default_folder()
    }

    /// Returns the temporary folder's path on this machine, and its path in the environment.
    pub fn temporary_folder(&self) -> Option<(&Path, &Path)> {
        self.temporary.as_ref().map(|it| (it.host(), it.shown()))
    }

    /// Returns the allowed folders as the environment shows them, with the temporary folder last.
    pub fn allowed_folders(&self) -> impl Iterator<Item = &Path> {
        self.roots.shown()
    }

    /// Returns the path of a folder on this machine and its path in the environment, to run a
    /// program there. Another process may replace the folder afterwards, and programs are not
    /// confined.
    pub fn folder(&self, path: &str) -> Result<(std::path::PathBuf, std::path::PathBuf)> {
        let asked = self.asked_folder(path)?;
        let place = self.roots.open_folder_place(&asked, Verb::Open)?;
        Ok((self.roots.host_path(&place), self.roots.true_path(&place)))
    }

    /// Resolves paths name by name, like the operations. If the environment shows this machine's
    /// own paths, it also resolves paths outside the allowed folders.
    pub fn resolve(&self, request: &FileResolve) -> FilesResolved {
        let roots = self.machine.as_ref().unwrap_or(&self.roots);
        let paths = request.paths.iter().take(RESOLVE_PATHS_MAX);
        let resolved = paths.map(|path| roots.resolve(&self.asked(path).ok()?));
        FilesResolved { paths: resolved.collect(), ..FilesResolved::default() }
    }

    /// Removes the temporary folder, and returns an error if that fails. Dropping removes it too.
    pub fn close(&self) -> Result<()> {
        self.temporary.as_ref().map_or(Ok(()), |it| it.remove())
    }

    /// Waits for other writes to the same name.
    pub(crate) fn write_lock(&self, name: &std::ffi::OsStr) -> parking_lot::MutexGuard<'_, ()> {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let lock = &self.writes[usize::try_from(hash % WRITE_LOCKS as u64).unwrap_or(0)];
        // The lock protects no data that a panic could leave half-finished.
        lock.lock()
    }
}
