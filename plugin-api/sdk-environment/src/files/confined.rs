//! The files of an execution environment: what all operations share.

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
/// All methods block. They may be called from several threads at once. Paths in requests, answers
/// and errors are those that the environment shows. Clones are the same files.
#[derive(Debug, Clone)]
pub struct Confined {
    pub(crate) roots: Arc<Roots>,
    /// All that this machine has, if the environment shows paths as this machine calls them.
    machine: Option<Arc<Roots>>,
    temporary: Option<Arc<Temporary>>,
    writes: Arc<[Mutex<()>; WRITE_LOCKS]>,
    /// The limits of the call for which they are used.
    pub(crate) limits: Option<Arc<CallLimits>>,
}

impl Confined {
    /// Opens the allowed folders, makes the temporary folder, and removes those that hosts left
    /// behind which were killed.
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

    /// The same files with the limits of a call.
    #[must_use]
    pub fn limited(&self, limits: &Arc<CallLimits>) -> Self {
        Self { limits: Some(Arc::clone(limits)), ..self.clone() }
    }

    /// Takes a path apart.
    pub(crate) fn asked(&self, path: &str) -> Result<Asked> {
        let asked = Asked::new(path, self.roots.default_folder())?;
        Ok(Asked { limits: self.limits.clone(), ..asked })
    }

    /// Takes the path of a folder apart; the default one where it is empty.
    pub(crate) fn asked_folder(&self, path: &str) -> Result<Asked> {
        let asked = self.asked(if path.is_empty() { "." } else { path })?;
        Ok(Asked { wants_folder: true, ..asked })
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
        let asked = self.asked_folder(path)?;
        let place = self.roots.open_folder_place(&asked, Verb::Open)?;
        Ok((self.roots.host_path(&place), self.roots.true_path(&place)))
    }

    /// Tells where paths lead, name by name as the operations go. Where this machine's own paths
    /// are shown, it goes beyond the allowed folders too.
    pub fn resolve(&self, request: &FileResolve) -> FilesResolved {
        let roots = self.machine.as_ref().unwrap_or(&self.roots);
        let paths = request.paths.iter().take(RESOLVE_PATHS_MAX);
        let resolved = paths.map(|path| roots.resolve(&self.asked(path).ok()?));
        FilesResolved { paths: resolved.collect(), ..FilesResolved::default() }
    }

    /// Removes the temporary folder, and tells where that failed. Dropping does so too.
    pub fn close(&self) -> Result<()> {
        self.temporary.as_ref().map_or(Ok(()), |it| it.remove())
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
