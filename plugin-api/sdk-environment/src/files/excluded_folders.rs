//! Checks folders before they are moved, copied or deleted: the call's limits must not exclude any
//! entry.

use jaato_types::Result;
use jaato_types::files::FileKind;
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::folder::{ListedFolder, open_folder_in};
use super::limits::COPY_ENTRIES_MAX;
use super::path_target::PathTarget;
use crate::engine::{CallLimits, DEPTH_MAX, NameOrder, PathOperation, ResolvedPathPair};
use crate::errors::{self, FileOperationVerb};

/// A folder that is being checked.
struct FolderCheckLevel {
    folder: ListedFolder,
    from: ResolvedPathPair,
    /// Its path after the operation.
    to: Option<ResolvedPathPair>,
}

impl ConfinedFiles {
    /// Refuses a folder if the limits exclude an entry below it, at its current path or at its new
    /// path.
    pub(crate) fn check_entries_below(
        &self,
        place: &PathTarget,
        does: PathOperation,
        to: Option<&PathTarget>,
        verb: FileOperationVerb,
    ) -> Result<()> {
        let Some(limits) = &self.limits else { return Ok(()) };
        let from = self.roots.resolved_pair(place);
        let to = to.map(|place| self.roots.resolved_pair(place));
        let is_free = !limits.may_exclude_below(&from, does)
            && to.as_ref().is_none_or(|to| !limits.may_exclude_below(to, PathOperation::Write));
        let is_folder = place.metadata().is_ok_and(|facts| facts.kind == FileKind::Folder);
        if is_free || !is_folder {
            return Ok(());
        }
        let name = place.name.clone().unwrap_or_else(|| ".".into());
        let failed = |errno| errors::operation_error(verb, &place.shown, errno);
        let read = |dir: &rustix::fd::OwnedFd, name: &std::ffi::OsStr| {
            open_folder_in(dir, name).and_then(|it| ListedFolder::read_listed(it, NameOrder::No))
        };
        let folder = read(&place.dir, &name).map_err(failed)?;
        let (mut levels, mut count) = (vec![FolderCheckLevel { folder, from, to }], 0);
        while let Some(level) = levels.last_mut() {
            let Some((name, kind)) = level.folder.names.next() else {
                levels.pop();
                continue;
            };
            let name = name.to_owned();
            let (from, to) =
                (level.from.join_name(&name), level.to.as_ref().map(|to| to.join_name(&name)));
            check_entry(limits, (&from, does), to.as_ref(), (verb, place))?;
            count += 1;
            if count > COPY_ENTRIES_MAX || levels.len() >= DEPTH_MAX {
                let what = "the folder has too many entries to check against the rules";
                return Err(errors::too_large_error(verb, &place.shown, what));
            }
            if kind != FileKind::Folder {
                continue;
            }
            let Some(level) = levels.last() else { break };
            match read(&level.folder.handle, &name) {
                Ok(folder) => levels.push(FolderCheckLevel { folder, from, to }),
                // It is gone, or no longer a folder.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Ok(())
    }
}

fn check_entry(
    limits: &CallLimits,
    (from, does): (&ResolvedPathPair, PathOperation),
    to: Option<&ResolvedPathPair>,
    (verb, place): (FileOperationVerb, &PathTarget),
) -> Result<()> {
    limits.check_path(verb, &place.shown, from, does)?;
    to.map_or(Ok(()), |to| limits.check_path(verb, &place.shown, to, PathOperation::Write))
}
