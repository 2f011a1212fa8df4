//! Deletes files, folders and links, and never the target of a link.

use jaato_types::files::{FileDelete, FileKind, is_draft_name};
use jaato_types::{Error, ErrorKind, Result};
use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, unlinkat};
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::path_target::PathTarget;
use super::removal::delete_folder;
use super::steps::FinalLinkPolicy;
use crate::engine::PathOperation;
use crate::errors::{self, FileOperationVerb};

impl ConfinedFiles {
    /// Deletes a file, a link, or a folder. If a part of a folder cannot be deleted, that part
    /// remains.
    pub fn delete(&self, request: &FileDelete) -> Result<()> {
        let asked = self.requested_path(&request.path)?;
        let place = self.roots.resolve_existing(
            &asked,
            FinalLinkPolicy::Stay,
            FileOperationVerb::Delete,
        )?;
        self.roots.check_writable(FileOperationVerb::Delete, &place)?;
        self.roots.check_holds_no_root(FileOperationVerb::Delete, &place)?;
        let failed =
            |errno| errors::operation_error(FileOperationVerb::Delete, &place.shown, errno);
        let name = place.entry_name(FileOperationVerb::Delete)?;
        let facts = place.metadata().map_err(failed)?;
        if facts.kind != FileKind::Folder {
            if asked.wants_folder {
                return Err(failed(Errno::NOTDIR));
            }
            if name.to_str().is_some_and(is_draft_name) && is_being_written(&place) {
                let reason = "another process is writing it";
                let error = errors::refused_error(FileOperationVerb::Delete, &place.shown, reason);
                return Err(Error { kind: ErrorKind::Conflict, ..error });
            }
            return unlinkat(&*place.dir, name, AtFlags::empty()).map_err(failed);
        }
        self.check_entries_below(&place, PathOperation::Write, None, FileOperationVerb::Delete)?;
        if request.recursive {
            return delete_folder(&*place.dir, name, &place.shown, FileOperationVerb::Delete);
        }
        // Some systems report EXIST for a folder that is not empty.
        unlinkat(&*place.dir, name, AtFlags::REMOVEDIR)
            .map_err(|errno| failed(if errno == Errno::EXIST { Errno::NOTEMPTY } else { errno }))
    }
}

/// Returns true if the process that writes the draft is still alive.
fn is_being_written(place: &PathTarget) -> bool {
    let Ok(file) = place.open_target(OFlags::RDONLY | OFlags::NONBLOCK) else { return false };
    flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::AGAIN)
}
