//! The names in a folder, read at once and kept in one piece of memory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use jaato_types::files::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::FOLDER_ENTRIES_MAX;
use super::roots::Handle;
use crate::platform::{Facts, kind_of, read_folder};

/// A folder that is read: its handle, and the names that were in it.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) handle: Handle,
    bytes: Vec<u8>,
    names: Vec<Name>,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Name {
    start: u32,
    length: u16,
    kind: FileKind,
}

/// In which order names come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sorted {
    Yes,
    No,
}

/// How a folder is opened to read its names, never through a link.
const TO_LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Opens a folder that is in another, never through a link.
pub(crate) fn open_in(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    openat(folder, name, TO_LIST, Mode::empty())
}

impl Folder {
    /// Reads all names of a folder that was opened to be listed.
    pub(crate) fn read(folder: OwnedFd, sorted: Sorted) -> rustix::io::Result<Self> {
        let (mut bytes, mut names) = (Vec::new(), Vec::new());
        read_folder(&folder, |name, kind| {
            let start = u32::try_from(bytes.len()).map_err(|_| Errno::OVERFLOW)?;
            let length = u16::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
            if names.len() == FOLDER_ENTRIES_MAX {
                return Err(Errno::OVERFLOW);
            }
            let kind = match kind {
                FileType::Unknown => unknown_kind(&folder, name),
                known => kind_of(known),
            };
            bytes.extend_from_slice(name);
            names.push(Name { start, length, kind });
            Ok(())
        })?;
        if sorted == Sorted::Yes {
            names.sort_unstable_by(|a, b| a.of(&bytes).cmp(b.of(&bytes)));
        }
        Ok(Self { handle: Arc::new(folder), bytes, names, next: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Goes past names.
    pub(crate) fn skip(&mut self, count: usize) {
        self.next = self.next.saturating_add(count).min(self.names.len());
    }

    /// Returns the next name and what it is.
    pub(crate) fn next(&mut self) -> Option<(&OsStr, FileKind)> {
        let name = self.names.get(self.next)?;
        self.next += 1;
        Some((OsStr::from_bytes(name.of(&self.bytes)), name.kind))
    }

    /// Looks at what has that name, and never through a link.
    pub(crate) fn facts(&self, name: &OsStr) -> rustix::io::Result<Facts> {
        statat(&*self.handle, name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| Facts::from(&stat))
    }

    /// Whether there is such a name.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.names.iter().any(|it| it.of(&self.bytes) == name)
    }
}

impl Name {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..usize::from(self.length)]
    }
}

/// Some file systems do not tell kinds with names.
fn unknown_kind(folder: &OwnedFd, name: &[u8]) -> FileKind {
    let stat = statat(folder, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
    stat.map_or(FileKind::Other, |stat| Facts::from(&stat).kind)
}
