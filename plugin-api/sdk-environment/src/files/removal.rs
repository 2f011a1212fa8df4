//! Deletes a folder with its content, through handles.

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::path::Path;

use jaato_types::Result;
use jaato_types::files::FileKind;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::folder::{ListedFolder, open_folder_in};
use crate::engine::{DEPTH_MAX, NameOrder};
use crate::errors::{self, FileOperationVerb};

/// A folder that is being emptied.
struct FolderRemovalLevel {
    folder: ListedFolder,
    /// Its name in the parent folder.
    name: OsString,
}

/// Deletes a folder with its content, through handles.
pub(crate) fn delete_folder(
    above: impl AsFd,
    name: &OsStr,
    shown: &Path,
    verb: FileOperationVerb,
) -> Result<()> {
    let failed = |errno| errors::operation_error(verb, shown, errno);
    let open = |above: rustix::fd::BorrowedFd<'_>, name: &OsStr| {
        let folder =
            open_folder_in(above, name).and_then(|it| ListedFolder::read_listed(it, NameOrder::No));
        folder.map(|folder| FolderRemovalLevel { folder, name: name.to_owned() })
    };
    let mut levels = vec![open(above.as_fd(), name).map_err(failed)?];
    loop {
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { break };
        let Some((name, kind)) = level.folder.names.next() else {
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
                return Err(errors::too_large_error(verb, shown, &what));
            }
            Err(Errno::NOENT) => {}
            // Another process replaced it after its name was read.
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
