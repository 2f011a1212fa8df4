//! Deleting: a link itself and never what it leads to.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;

use jaato_types::Result;
use jaato_types::files::{FileDelete, FileKind};
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::errors::{self, Verb};
use super::folder::{Folder, Sorted, open_in};
use super::steps::Last;
use super::{Confined, DEPTH_MAX};

impl Confined {
    /// Deletes a file, a link itself, or a folder. Where not all of a folder can be deleted, the
    /// rest stays.
    pub fn delete(&self, request: &FileDelete) -> Result<()> {
        let asked = self.roots.asked(&request.path)?;
        let place = self.roots.find(&asked, Last::Stay, Verb::Delete)?;
        self.roots.check_writable(Verb::Delete, &place)?;
        self.roots.check_holds_no_root(Verb::Delete, &place)?;
        let failed = |errno| errors::failed(Verb::Delete, &place.shown, errno);
        let name = place.name(Verb::Delete)?;
        let facts = place.facts().map_err(failed)?;
        if facts.kind != FileKind::Folder {
            if asked.wants_folder {
                return Err(failed(Errno::NOTDIR));
            }
            return unlinkat(&*place.dir, name, AtFlags::empty()).map_err(failed);
        }
        if request.recursive {
            return delete_folder(&*place.dir, name, &place.shown, Verb::Delete);
        }
        // Some systems say that it exists where they mean that something is in it.
        unlinkat(&*place.dir, name, AtFlags::REMOVEDIR)
            .map_err(|errno| failed(if errno == Errno::EXIST { Errno::NOTEMPTY } else { errno }))
    }
}

/// A folder that is being emptied.
struct Level {
    folder: Folder,
    /// Its name in the one above.
    name: OsString,
}

/// Deletes a folder with all that is in it, from handle to handle.
pub(crate) fn delete_folder(
    above: impl AsFd,
    name: &OsStr,
    shown: &Path,
    verb: Verb,
) -> Result<()> {
    let failed = |errno| errors::failed(verb, shown, errno);
    let open = |above: rustix::fd::BorrowedFd<'_>, name: &OsStr| {
        let folder = open_in(above, name).and_then(|it| Folder::read(it, Sorted::No));
        folder.map(|folder| Level { folder, name: name.to_owned() })
    };
    let mut levels = vec![open(above.as_fd(), name).map_err(failed)?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let Some((name, kind)) = level.folder.next() else {
            let Some(done) = levels.pop() else { break };
            let holder = levels.last().map_or(above.as_fd(), |it| it.folder.handle.as_fd());
            ignore_missing(unlinkat(holder, &done.name, AtFlags::REMOVEDIR)).map_err(failed)?;
            continue;
        };
        let name = name.to_owned();
        let handle = level.folder.handle.as_fd();
        if kind != FileKind::Folder {
            ignore_missing(unlinkat(handle, &name, AtFlags::empty())).map_err(failed)?;
            continue;
        }
        match open(handle, &name) {
            Ok(below) if depth < DEPTH_MAX => levels.push(below),
            Ok(_) => {
                let what = format!("it is more than {DEPTH_MAX} folders deep");
                return Err(errors::too_large(verb, shown, &what));
            }
            Err(Errno::NOENT) => {}
            // It was exchanged since its name was read.
            Err(Errno::LOOP | Errno::NOTDIR) => {
                ignore_missing(unlinkat(handle, &name, AtFlags::empty())).map_err(failed)?;
            }
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(())
}

fn ignore_missing(done: rustix::io::Result<()>) -> rustix::io::Result<()> {
    if done == Err(Errno::NOENT) { Ok(()) } else { done }
}
