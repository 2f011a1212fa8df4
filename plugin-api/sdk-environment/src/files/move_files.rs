//! Moves files and folders. Between file systems, copies and then deletes.

use jaato_types::Result;
use jaato_types::files::{FileKind, FilePair};
use rustix::fs::{AtFlags, readlinkat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::copy::{copy_to_target, existing_name_policy};
use super::draft::{ExistingNamePolicy, rename_if_free, unique_name};
use super::path_target::PathTarget;
use super::removal::delete_folder;
use super::steps::{FinalLinkPolicy, MissingFolderPolicy};
use crate::engine::PathOperation;
use crate::errors::{self, FileOperationVerb};

impl ConfinedFiles {
    /// Moves a file, a folder, or a link itself.
    pub fn move_to(&self, request: &FilePair) -> Result<()> {
        let from = self.requested_path(&request.from)?;
        let to = self.requested_path(&request.to)?;
        let source =
            self.roots.resolve_existing(&from, FinalLinkPolicy::Stay, FileOperationVerb::Move)?;
        self.roots.check_writable(FileOperationVerb::Move, &source)?;
        self.roots.check_holds_no_root(FileOperationVerb::Move, &source)?;
        let place = self.roots.resolve_new_name(
            &to,
            FinalLinkPolicy::Stay,
            MissingFolderPolicy::Fail,
            FileOperationVerb::Move,
        )?;
        self.check_entries_below(
            &source,
            PathOperation::Write,
            Some(&place),
            FileOperationVerb::Move,
        )?;
        let failed = |errno| errors::operation_error(FileOperationVerb::Move, &source.shown, errno);
        let (old, new) = (
            source.entry_name(FileOperationVerb::Move)?,
            place.entry_name(FileOperationVerb::Move)?,
        );
        let kind = source.metadata().map_err(failed)?.kind;
        if (from.wants_folder || to.wants_folder) && kind != FileKind::Folder {
            return Err(failed(Errno::NOTDIR));
        }
        // A folder never replaces anything, not even an empty folder, which the system would allow.
        let taken = if kind == FileKind::Folder {
            ExistingNamePolicy::Refused
        } else {
            existing_name_policy(request)
        };
        let moved = match taken {
            ExistingNamePolicy::Replaced => renameat(&*source.dir, old, &*place.dir, new),
            ExistingNamePolicy::Refused => rename_if_free(&*source.dir, old, &*place.dir, new),
        };
        match moved {
            Ok(()) => Ok(()),
            Err(Errno::XDEV) => move_by_copying(&source, &place, kind, taken),
            Err(Errno::INVAL) => {
                let reason = "a folder cannot be moved into itself";
                Err(errors::refused_error(FileOperationVerb::Move, &source.shown, reason))
            }
            Err(errno @ (Errno::EXIST | Errno::NOTEMPTY | Errno::ISDIR | Errno::NOTDIR)) => {
                Err(errors::operation_error(FileOperationVerb::Move, &place.shown, errno))
            }
            Err(Errno::NOENT) => Err(failed(Errno::NOENT)),
            Err(errno) => Err(failed(errno)),
        }
    }
}

fn move_by_copying(
    source: &PathTarget,
    place: &PathTarget,
    kind: FileKind,
    taken: ExistingNamePolicy,
) -> Result<()> {
    let failed = |errno| errors::operation_error(FileOperationVerb::Move, &source.shown, errno);
    let name = source.entry_name(FileOperationVerb::Move)?;
    if kind == FileKind::Link {
        copy_link(source, place, taken)?;
    } else {
        copy_to_target(source, place, kind, taken)?;
    }
    if kind == FileKind::Folder {
        return delete_folder(&*source.dir, name, &source.shown, FileOperationVerb::Move);
    }
    unlinkat(&*source.dir, name, AtFlags::empty()).map_err(failed)
}

fn copy_link(source: &PathTarget, place: &PathTarget, taken: ExistingNamePolicy) -> Result<()> {
    let failed = |errno| errors::operation_error(FileOperationVerb::Move, &place.shown, errno);
    let target = readlinkat(&*source.dir, source.entry_name(FileOperationVerb::Move)?, Vec::new())
        .map_err(failed)?;
    let (draft, name) =
        (unique_name().map_err(failed)?, place.entry_name(FileOperationVerb::Move)?);
    symlinkat(target, &*place.dir, &draft).map_err(failed)?;
    let placed = match taken {
        ExistingNamePolicy::Replaced => renameat(&*place.dir, &draft, &*place.dir, name),
        ExistingNamePolicy::Refused => rename_if_free(&*place.dir, &draft, &*place.dir, name),
    };
    placed.map_err(|errno| {
        // Report the first error, not one of the cleanup.
        let _ = unlinkat(&*place.dir, &draft, AtFlags::empty());
        failed(errno)
    })
}
