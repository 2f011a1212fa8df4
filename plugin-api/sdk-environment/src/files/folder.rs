//! Reads a folder of this machine through its handle.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use jaato_types::files::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::path_target::FolderHandle;
use crate::engine::{FolderNames, NameOrder, SearchableFolder, SearchedFileFacts};
use crate::platform::{FileMetadata, read_folder, to_file_kind};

/// Flags that open a folder to read its names, without following a link.
const TO_LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Flags that open a file in a folder, without following a link or waiting for a pipe.
const TO_SEARCH: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::NOFOLLOW);

/// Opens a subfolder without following a link.
pub(crate) fn open_folder_in(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, TO_LIST, Mode::empty())
}

fn read_names(folder: impl AsFd, sorted: NameOrder) -> rustix::io::Result<FolderNames> {
    let (folder, mut names) = (folder.as_fd(), FolderNames::default());
    read_folder(folder, |name, kind| {
        let kind = match kind {
            // Some file systems do not report types with names.
            FileType::Unknown => entry_metadata(folder, OsStr::from_bytes(name))
                .map_or(FileKind::Other, |facts| facts.kind),
            known => to_file_kind(known),
        };
        if names.add_name(name, kind) { Ok(()) } else { Err(Errno::OVERFLOW) }
    })?;
    if sorted == NameOrder::Yes {
        names.sort();
    }
    Ok(names)
}

/// Returns the metadata of an entry without following a link.
pub(crate) fn entry_metadata(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<FileMetadata> {
    statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileMetadata::from(&stat))
}

/// An open folder and the names that were in it.
#[derive(Debug)]
pub(crate) struct ListedFolder {
    pub(crate) handle: OwnedFd,
    pub(crate) names: FolderNames,
}

impl ListedFolder {
    /// Reads all names of a folder that was opened to list it.
    pub(crate) fn read_listed(handle: OwnedFd, sorted: NameOrder) -> rustix::io::Result<Self> {
        let names = read_names(&handle, sorted)?;
        Ok(Self { handle, names })
    }
}

impl SearchableFolder for FolderHandle {
    type File = File;

    fn read_names(&self, sorted: NameOrder) -> io::Result<FolderNames> {
        Ok(read_names(self, sorted)?)
    }

    fn open_subfolder(&self, name: &OsStr) -> io::Result<Option<Self>> {
        match open_folder_in(self, name) {
            Ok(folder) => Ok(Some(Arc::new(folder))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn open_child(&self, name: &OsStr, _bytes_max: u64) -> io::Result<Option<(File, u64)>> {
        let file = match openat(self, name, TO_SEARCH, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let facts = FileMetadata::from(&fstat(&file)?);
        Ok((facts.kind == FileKind::File).then(|| (file.into(), facts.size)))
    }

    fn entry_facts(&self, name: &OsStr) -> io::Result<SearchedFileFacts> {
        Ok(entry_metadata(self, name)?.into())
    }

    fn is_same_folder(&self, other: &Self) -> bool {
        Arc::ptr_eq(self, other)
    }
}

impl From<FileMetadata> for SearchedFileFacts {
    fn from(FileMetadata { kind, size, modified, .. }: FileMetadata) -> Self {
        Self { kind, size, modified, protected: false }
    }
}
