//! The target of a path: an open folder and a name in it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};

use crate::errors::{self, FileOperationVerb};
use crate::platform::FileMetadata;

/// An open folder. The last owner closes it.
pub(crate) type FolderHandle = Arc<OwnedFd>;

/// The target of a path.
#[derive(Debug, Clone)]
pub(crate) struct PathTarget {
    /// The index of the allowed folder.
    pub(crate) root: usize,
    /// The folder that contains the target.
    pub(crate) dir: FolderHandle,
    /// The name in that folder. `None` if the path ended at a folder that is already open as `dir`.
    pub(crate) name: Option<OsString>,
    /// The folders on the way. Empty if the kernel resolved the path.
    pub(crate) above: Vec<AncestorFolder>,
    /// The path as users see it.
    pub(crate) shown: PathBuf,
}

/// A folder on the way.
#[derive(Debug, Clone)]
pub(crate) struct AncestorFolder {
    pub(crate) folder: FolderHandle,
    pub(crate) name: OsString,
}

impl PathTarget {
    pub(crate) fn path_below_top(&self, top: &Path) -> PathBuf {
        let mut path = top.to_owned();
        path.extend(self.above.iter().map(|it| &it.name));
        path.extend(&self.name);
        path
    }

    /// Returns the name, or an error if the path does not name an entry to create, remove or
    /// replace.
    pub(crate) fn entry_name(&self, verb: FileOperationVerb) -> Result<&OsString> {
        let reason = "the path ends at a folder without naming it";
        self.name.as_ref().ok_or_else(|| errors::refused_error(verb, &self.shown, reason))
    }

    /// Returns the metadata without following a link.
    pub(crate) fn metadata(&self) -> rustix::io::Result<FileMetadata> {
        match &self.name {
            Some(name) => statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW),
            None => fstat(&*self.dir),
        }
        .map(|stat| FileMetadata::from(&stat))
    }

    /// Opens the target without following a link.
    pub(crate) fn open_target(&self, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let name = self.name.as_deref().unwrap_or(".".as_ref());
        openat(&*self.dir, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }
}
