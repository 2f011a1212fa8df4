//! Files of an execution environment, confined to its allowed folders.
//!
//! Everything is reached from handles of the allowed folders, one name after the other or by one
//! call of the kernel that does so; no path is checked and then used. `..`, symbolic links, and
//! whoever renames meanwhile, therefore lead nowhere else. A link whose target is absolute goes on
//! in the allowed folder that the target names, as the environment shows it. Hard links are files
//! like others: who may make one to a file outside has its content already.
//!
//! Only files are confined here, not programs.

mod asked;
mod copy;
mod delete;
mod draft;
mod edit;
mod errors;
mod facts;
mod find;
mod folder;
mod glob;
mod ignored;
mod list;
mod moving;
mod place;
mod read;
mod roots;
mod search;
mod settings;
mod steps;
mod stream;
mod temporary;
mod text;
mod walk;
mod write;

use std::path::Path;

use jaato_types::Result;
use parking_lot::Mutex;

use self::errors::Verb;
pub use self::find::Find;
use self::roots::Roots;
pub use self::search::{Cancel, Search};
pub use self::settings::{Access, Root, Settings, TemporarySettings};
pub use self::stream::{PIECE_BYTES, Pieces, Writer};
use self::temporary::Temporary;
pub use self::walk::Walk;

/// Symbolic links that a path may lead through, as in Linux.
pub const LINKS_MAX: u32 = 40;
/// Bytes of a path, as in Linux.
pub const PATH_BYTES_MAX: usize = 4096;
/// Folders deep that a tree is gone through, deleted or copied; each holds a descriptor open
/// meanwhile.
pub const DEPTH_MAX: usize = 256;
/// Entries of one folder that are looked at.
pub const FOLDER_ENTRIES_MAX: usize = 1_000_000;
/// Files and folders that one copy takes with it.
pub const COPY_ENTRIES_MAX: u64 = 200_000;
/// Bytes of a text that is edited, before and after it.
pub const EDIT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of a file in which characters or lines are counted.
pub const TEXT_SCAN_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// How often something is looked up again that is exchanged while we look at it.
const RACES_MAX: u32 = 64;
/// Writes to different names go on beside each other; those to one name wait for each other. So
/// many locks are spread over the names.
const WRITE_LOCKS: usize = 16;

/// The files of an execution environment.
///
/// All methods block. They may be called from several threads at once. Paths in requests, answers
/// and errors are those that the environment shows.
#[derive(Debug)]
pub struct Confined {
    roots: Roots,
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
        Ok(Self {
            roots: Roots::open(&roots, &settings.default_folder)?,
            temporary,
            writes: Default::default(),
        })
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
    fn write_lock(&self, name: &std::ffi::OsStr) -> parking_lot::MutexGuard<'_, ()> {
        use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(name);
        let lock = &self.writes[usize::try_from(hash % WRITE_LOCKS as u64).unwrap_or(0)];
        // Nothing is kept under the lock that a panic could leave half done.
        lock.lock()
    }
}
