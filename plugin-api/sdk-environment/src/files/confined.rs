//! The files of an execution environment: the state that all operations share.

use std::path::Path;
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::{FileResolve, FileResolveAnswer, RESOLVE_PATHS_MAX};
use parking_lot::Mutex;

use super::limits::WRITE_LOCKS;
use super::requested_path::RequestedPath;
use super::roots::OpenRoots;
use super::settings::{AllowedFolder, ConfinedFilesSettings};
use super::temporary::SelfRemovingFolder;
use crate::engine::CallLimits;
use crate::errors::FileOperationVerb;

/// The files of an execution environment.
///
/// All methods block, and several threads may call them at once. Requests, answers and errors
/// contain paths as the environment shows them. Clones share the same files.
#[derive(Debug, Clone)]
pub struct ConfinedFiles {
    pub(crate) roots: Arc<OpenRoots>,
    /// All files of this machine, if the environment shows paths under this machine's own names.
    machine: Option<Arc<OpenRoots>>,
    temporary: Option<Arc<SelfRemovingFolder>>,
    writes: Arc<[Mutex<()>; WRITE_LOCKS]>,
    /// The limits of the call that uses the files.
    pub(crate) limits: Option<Arc<CallLimits>>,
}

impl ConfinedFiles {
    /// Opens the allowed folders, creates the temporary folder, and removes temporary folders that
    /// killed hosts left behind.
    pub fn open(settings: &ConfinedFilesSettings) -> Result<Self> {
        let temporary =
            settings.temporary.as_ref().map(SelfRemovingFolder::create_folder).transpose()?;
        let mut roots = settings.roots.clone();
        let is_machine = roots.iter().all(|root| root.host == root.shown);
        roots.extend(temporary.as_ref().map(SelfRemovingFolder::as_allowed_folder));
        let default = &settings.default_folder;
        let machine = is_machine
            .then(|| OpenRoots::open(&[AllowedFolder::local("/")], default))
            .transpose()?;
        let roots = OpenRoots::open(&roots, default)?;
        let default = RequestedPath::new(&default.to_string_lossy(), default)?;
        roots.resolve_folder(&default, FileOperationVerb::Open)?;
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
    pub fn with_limits(&self, limits: &Arc<CallLimits>) -> Self {
        Self { limits: Some(Arc::clone(limits)), ..self.clone() }
    }

    /// Parses a path.
    pub(crate) fn requested_path(&self, path: &str) -> Result<RequestedPath> {
        let asked = RequestedPath::new(path, self.roots.default_folder())?;
        Ok(RequestedPath { limits: self.limits.clone(), ..asked })
    }

    /// Parses the path of a folder. An empty path is the default folder.
    pub(crate) fn parse_folder_path(&self, path: &str) -> Result<RequestedPath> {
        let asked = self.requested_path(if path.is_empty() { "." } else { path })?;
        Ok(RequestedPath { wants_folder: true, ..asked })
    }

    /// Returns the folder in which relative paths start, as the environment shows it.
    pub fn default_folder(&self) -> &Path {
        self.roots.default_folder()
    }

    /// Returns the temporary folder's path on this machine, and its path in the environment.
    pub fn temporary_folder(&self) -> Option<(&Path, &Path)> {
        self.temporary.as_ref().map(|it| (it.host_path(), it.display_path()))
    }

    /// Returns the allowed folders as the environment shows them, with the temporary folder last.
    pub fn allowed_folders(&self) -> impl Iterator<Item = &Path> {
        self.roots.display_paths()
    }

    /// Returns the path of a folder on this machine and its path in the environment, to run a
    /// program there. Another process may replace the folder afterwards, and programs are not
    /// confined.
    pub fn folder_paths(&self, path: &str) -> Result<(std::path::PathBuf, std::path::PathBuf)> {
        let asked = self.parse_folder_path(path)?;
        let place = self.roots.resolve_folder(&asked, FileOperationVerb::Open)?;
        Ok((self.roots.host_path(&place), self.roots.resolved_path(&place)))
    }

    /// Resolves paths name by name, like the operations. If the environment shows this machine's
    /// own paths, it also resolves paths outside the allowed folders.
    pub fn resolve(&self, request: &FileResolve) -> FileResolveAnswer {
        let roots = self.machine.as_ref().unwrap_or(&self.roots);
        let paths = request.paths.iter().take(RESOLVE_PATHS_MAX);
        let resolved = paths.map(|path| roots.resolve(&self.requested_path(path).ok()?));
        FileResolveAnswer { paths: resolved.collect(), ..FileResolveAnswer::default() }
    }

    /// Removes the temporary folder, and returns an error if that fails. Dropping removes it too.
    pub fn close(&self) -> Result<()> {
        self.temporary.as_ref().map_or(Ok(()), |it| it.remove_folder())
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
