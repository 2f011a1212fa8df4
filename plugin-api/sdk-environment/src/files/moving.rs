//! Moves files and folders. Between file systems, copies and then deletes.

use jaato_types::Result;
use jaato_types::files::{FileKind, FilePair};
use rustix::fs::{AtFlags, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::confined::Confined;
use super::copy::{copy_to, taken};
use super::draft::{Taken, rename_new, unique_name};
use super::place::Place;
use super::removal::delete_folder;
use super::steps::{Last, Missing};
use crate::engine::Does;
use crate::errors::{self, Verb};

impl Confined {
    /// Moves a file, a folder, or a link itself.
    pub fn move_to(&self, request: &FilePair) -> Result<()> {
        let from = self.asked(&request.from)?;
        let to = self.asked(&request.to)?;
        let source = self.roots.find(&from, Last::Stay, Verb::Move)?;
        self.roots.check_writable(Verb::Move, &source)?;
        self.roots.check_holds_no_root(Verb::Move, &source)?;
        let place = self.roots.find_name(&to, Last::Stay, Missing::Fail, Verb::Move)?;
        self.check_below(&source, Does::Write, Some(&place), Verb::Move)?;
        let failed = |errno| errors::failed(Verb::Move, &source.shown, errno);
        let (old, new) = (source.name(Verb::Move)?, place.name(Verb::Move)?);
        let kind = source.facts().map_err(failed)?.kind;
        if (from.wants_folder || to.wants_folder) && kind != FileKind::Folder {
            return Err(failed(Errno::NOTDIR));
        }
        // A folder never replaces anything, not even an empty folder, which the system would allow.
        let taken = if kind == FileKind::Folder { Taken::Refused } else { taken(request) };
        let moved = match taken {
            Taken::Replaced => renameat(&*source.dir, old, &*place.dir, new),
            Taken::Refused => rename_new(&*source.dir, old, &*place.dir, new),
        };
        match moved {
            Ok(()) => Ok(()),
            Err(Errno::XDEV) => move_by_copying(&source, &place, kind, taken),
            Err(Errno::INVAL) => {
                let reason = "a folder cannot be moved into itself";
                Err(errors::refused(Verb::Move, &source.shown, reason))
            }
            Err(errno @ (Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR)) => {
                Err(errors::failed(Verb::Move, &place.shown, errno))
            }
            Err(Errno::NOENT) => Err(failed(Errno::NOENT)),
            Err(errno) => Err(failed(errno)),
        }
    }
}

fn move_by_copying(source: &Place, place: &Place, kind: FileKind, taken: Taken) -> Result<()> {
    let failed = |errno| errors::failed(Verb::Move, &source.shown, errno);
    let name = source.name(Verb::Move)?;
    if kind == FileKind::Link {
        copy_link(source, place, taken)?;
    } else {
        copy_to(source, place, kind, taken)?;
    }
    if kind == FileKind::Folder {
        return delete_folder(&*source.dir, name, &source.shown, Verb::Move);
    }
    unlinkat(&*source.dir, name, AtFlags::empty()).map_err(failed)
}

fn copy_link(source: &Place, place: &Place, taken: Taken) -> Result<()> {
    let failed = |errno| errors::failed(Verb::Move, &place.shown, errno);
    let target = readlinkat(&*source.dir, source.name(Verb::Move)?, Vec::new()).map_err(failed)?;
    let (draft, name) = (unique_name().map_err(failed)?, place.name(Verb::Move)?);
    symlinkat(target, &*place.dir, &draft).map_err(failed)?;
    let placed = match taken {
        Taken::Replaced => renameat(&*place.dir, &draft, &*place.dir, name),
        Taken::Refused => rename_new(&*place.dir, &draft, &*place.dir, name),
    };
    placed.map_err(|errno| {
        // Report the first error, not one of the cleanup.
        let _ = unlinkat(&*place.dir, &draft, AtFlags::empty());
        failed(errno)
    })
}
