//! Copies files and folders.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsFd;

use jaato_types::Result;
use jaato_types::files::{FileKind, FilePair};
use rustix::fs::{Mode, OFlags, fchmod, fstat, mkdirat, openat, readlinkat, symlinkat};
use rustix::io::Errno;

use super::confined::ConfinedFiles;
use super::draft::{DraftFile, ExistingNamePolicy, errno_of, rename_if_free, unique_name};
use super::folder::{ListedFolder, open_folder_in};
use super::limits::{COPY_ENTRIES_MAX, RACES_MAX};
use super::path_target::PathTarget;
use super::removal::delete_folder;
use super::steps::{FinalLinkPolicy, MissingFolderPolicy};
use crate::engine::{DEPTH_MAX, NameOrder, PathOperation};
use crate::errors::{self, FileOperationVerb};
use crate::platform::FileMetadata;

impl ConfinedFiles {
    /// Copies a file, or a folder with its content, to a new name. The copy appears only when it is
    /// complete. Links inside a folder are copied as links. If the path itself is a link, it is
    /// followed.
    pub fn copy(&self, request: &FilePair) -> Result<()> {
        let from = self.requested_path(&request.from)?;
        let to = self.requested_path(&request.to)?;
        let mut source =
            self.roots.resolve_existing(&from, FinalLinkPolicy::Follow, FileOperationVerb::Copy)?;
        let place = self.roots.resolve_new_name(
            &to,
            FinalLinkPolicy::Stay,
            MissingFolderPolicy::Fail,
            FileOperationVerb::Copy,
        )?;
        for _ in 0..RACES_MAX {
            let facts = source.metadata().map_err(|errno| {
                errors::operation_error(FileOperationVerb::Copy, &source.shown, errno)
            })?;
            match facts.kind {
                FileKind::Link => {
                    source = self.roots.resolve_existing(
                        &from,
                        FinalLinkPolicy::Follow,
                        FileOperationVerb::Copy,
                    )?
                }
                _ if from.wants_folder && facts.kind != FileKind::Folder => {
                    return Err(errors::operation_error(
                        FileOperationVerb::Copy,
                        &source.shown,
                        Errno::NOTDIR,
                    ));
                }
                _ => {
                    self.check_entries_below(
                        &source,
                        PathOperation::Read,
                        Some(&place),
                        FileOperationVerb::Copy,
                    )?;
                    return copy_to_target(
                        &source,
                        &place,
                        facts.kind,
                        existing_name_policy(request),
                    );
                }
            }
        }
        Err(errors::keeps_changing_error(FileOperationVerb::Copy, &source.shown))
    }
}

pub(crate) fn existing_name_policy(request: &FilePair) -> ExistingNamePolicy {
    if request.overwrite { ExistingNamePolicy::Replaced } else { ExistingNamePolicy::Refused }
}

/// Copies a file or folder, but not a link, to another name.
pub(crate) fn copy_to_target(
    source: &PathTarget,
    place: &PathTarget,
    kind: FileKind,
    taken: ExistingNamePolicy,
) -> Result<()> {
    let name = place.entry_name(FileOperationVerb::Copy)?;
    if kind == FileKind::Folder {
        return copy_folder(source, place, name);
    }
    let failed = |errno| errors::operation_error(FileOperationVerb::Copy, &source.shown, errno);
    let failed_there =
        |errno| errors::operation_error(FileOperationVerb::Copy, &place.shown, errno);
    if taken == ExistingNamePolicy::Refused && place.metadata().is_ok() {
        return Err(failed_there(Errno::EXIST));
    }
    let mut draft = DraftFile::create_draft(&place.dir).map_err(failed_there)?;
    let from = source.entry_name(FileOperationVerb::Copy)?;
    copy_content(&*source.dir, from, &mut draft).map_err(|error| match error {
        CopyFailure::Errno(errno) => failed(errno),
        CopyFailure::NoFile(kind) => {
            errors::not_a_file_error(FileOperationVerb::Copy, &source.shown, kind)
        }
    })?;
    draft.rename_into_place(name, taken).map_err(failed_there)
}

enum CopyFailure {
    Errno(Errno),
    NoFile(FileKind),
}

impl From<Errno> for CopyFailure {
    fn from(errno: Errno) -> Self {
        Self::Errno(errno)
    }
}

/// Copies the bytes and the permission bits.
fn copy_content(folder: impl AsFd, name: &OsStr, draft: &mut DraftFile) -> Result<(), CopyFailure> {
    let (mut file, facts) = open_source(folder, name)?;
    std::io::copy(&mut file, &mut draft.file).map_err(|error| errno_of(&error))?;
    fchmod(&draft.file, Mode::from_raw_mode((facts.mode & 0o777) as _))?;
    Ok(())
}

fn open_source(folder: impl AsFd, name: &OsStr) -> Result<(File, FileMetadata), CopyFailure> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NXIO) => return Err(CopyFailure::NoFile(FileKind::Other)),
        other => other?,
    };
    let facts = FileMetadata::from(&fstat(&file)?);
    if facts.kind != FileKind::File {
        return Err(CopyFailure::NoFile(facts.kind));
    }
    Ok((file.into(), facts))
}

/// Copies a folder under a unique name, and renames it when it is complete.
fn copy_folder(source: &PathTarget, place: &PathTarget, name: &OsStr) -> Result<()> {
    let failed = |errno| errors::operation_error(FileOperationVerb::Copy, &place.shown, errno);
    if place.metadata().is_ok() {
        return Err(failed(Errno::EXIST));
    }
    let draft = unique_name().map_err(failed)?;
    mkdirat(&*place.dir, &draft, Mode::from_raw_mode(0o700)).map_err(failed)?;
    let copied = copy_into_draft(source, place, &draft)
        .and_then(|()| rename_if_free(&*place.dir, &draft, &*place.dir, name).map_err(failed));
    if copied.is_err() {
        // Report the first error, not one of the cleanup.
        let _ = delete_folder(&*place.dir, &draft, &place.shown, FileOperationVerb::Copy);
    }
    copied
}

/// A folder that is being copied, and its copy.
struct CopyFolderLevel {
    from: ListedFolder,
    to: rustix::fd::OwnedFd,
    mode: u32,
}

fn copy_into_draft(source: &PathTarget, place: &PathTarget, draft: &OsStr) -> Result<()> {
    let failed = |errno| errors::operation_error(FileOperationVerb::Copy, &source.shown, errno);
    let failed_there =
        |errno| errors::operation_error(FileOperationVerb::Copy, &place.shown, errno);
    let name = source.name.clone().unwrap_or_else(|| ".".into());
    let top = open_folder_in(&*place.dir, draft).map_err(failed_there)?;
    let copy = FileMetadata::from(&fstat(&top).map_err(failed_there)?).identity;
    let mut levels = vec![CopyFolderLevel::open(&*source.dir, &name, top).map_err(failed)?];
    let mut count = 0;
    while let Some(level) = levels.last_mut() {
        let Some((name, kind)) = level.from.names.next() else {
            let mode = Mode::from_raw_mode((level.mode & 0o777) as _);
            fchmod(&level.to, mode).map_err(failed_there)?;
            levels.pop();
            continue;
        };
        let name = name.to_owned();
        count += 1;
        if count > COPY_ENTRIES_MAX {
            let what = format!("it contains more than {COPY_ENTRIES_MAX} files and folders");
            return Err(errors::too_large_error(FileOperationVerb::Copy, &source.shown, &what));
        }
        if let Some(below) = level.copy_entry(&name, kind, source)? {
            if FileMetadata::from(&fstat(&below.from.handle).map_err(failed)?).identity == copy {
                let reason = "a folder cannot be copied into itself";
                return Err(errors::refused_error(FileOperationVerb::Copy, &source.shown, reason));
            }
            levels.push(below);
        }
        if levels.len() > DEPTH_MAX {
            let what = format!("it is more than {DEPTH_MAX} folders deep");
            return Err(errors::too_large_error(FileOperationVerb::Copy, &source.shown, &what));
        }
    }
    Ok(())
}

impl CopyFolderLevel {
    fn open(above: impl AsFd, name: &OsStr, to: rustix::fd::OwnedFd) -> rustix::io::Result<Self> {
        let from = open_folder_in(above, name)?;
        let mode = FileMetadata::from(&fstat(&from)?).mode;
        Ok(Self { from: ListedFolder::read_listed(from, NameOrder::Yes)?, to, mode })
    }

    /// Copies an entry. If the entry is a folder, creates it and returns the level to copy next.
    fn copy_entry(
        &self,
        name: &OsString,
        kind: FileKind,
        top: &PathTarget,
    ) -> Result<Option<Self>> {
        let from = self.from.handle.as_fd();
        let shown = top.shown.join(name);
        let failed = |errno| errors::operation_error(FileOperationVerb::Copy, &shown, errno);
        match kind {
            FileKind::Folder => {
                mkdirat(&self.to, name, Mode::from_raw_mode(0o700)).map_err(failed)?;
                let to = open_folder_in(&self.to, name).map_err(failed)?;
                Ok(Some(Self::open(from, name, to).map_err(failed)?))
            }
            FileKind::Link => {
                let target = readlinkat(from, name, Vec::new()).map_err(failed)?;
                symlinkat(target, &self.to, name).map_err(failed)?;
                Ok(None)
            }
            FileKind::File | FileKind::Other => {
                let copied = open_source(from, name).and_then(|(mut file, facts)| {
                    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                    let copy = openat(&self.to, name, flags, Mode::from_raw_mode(0o600))?;
                    let mut copy = File::from(copy);
                    std::io::copy(&mut file, &mut copy).map_err(|error| errno_of(&error))?;
                    fchmod(&copy, Mode::from_raw_mode((facts.mode & 0o777) as _))?;
                    Ok(None)
                });
                copied.map_err(|error| match error {
                    CopyFailure::Errno(errno) => failed(errno),
                    CopyFailure::NoFile(kind) => {
                        errors::not_a_file_error(FileOperationVerb::Copy, &shown, kind)
                    }
                })
            }
        }
    }
}
