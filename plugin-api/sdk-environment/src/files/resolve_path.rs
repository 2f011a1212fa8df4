//! Resolves paths: with one system call if possible, or step by step.

use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use jaato_types::files::{FileIdentity, FileKind, ResolvedPath};
use rustix::fs::{OFlags, fstat};
use rustix::io::Errno;

use super::limits::RACES_MAX;
use super::path_target::PathTarget;
use super::requested_path::RequestedPath;
use super::roots::OpenRoots;
use super::steps::{FinalLinkPolicy, MissingFolderPolicy, PathResolution};
use crate::engine::{PathOperation, ResolvedPathPair};
use crate::errors::{self, FileOperationVerb};
use crate::platform::{DiskWait, FileMetadata, PASS_THROUGH, open_beneath};

/// Flags that open a file for reading, without waiting for a pipe or acquiring a terminal.
const TO_READ: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl OpenRoots {
    /// Opens a file for reading and returns its metadata. Fails unless it is a regular file.
    pub(crate) fn open_file(
        &self,
        asked: &RequestedPath,
        verb: FileOperationVerb,
    ) -> Result<(OwnedFd, FileMetadata)> {
        let flags = if asked.wants_folder { TO_READ | OFlags::DIRECTORY } else { TO_READ };
        let file = self.open_requested(asked, flags, verb)?;
        let stat = fstat(&file)
            .map_err(|errno| errors::operation_error(verb, &asked.display_path(), errno))?;
        let facts = FileMetadata::from(&stat);
        if facts.kind != FileKind::File {
            return Err(errors::not_a_file_error(verb, &asked.display_path(), facts.kind));
        }
        Ok((file, facts))
    }

    /// Opens a file if that does not need to wait.
    pub(crate) fn open_file_without_waiting(
        &self,
        asked: &RequestedPath,
    ) -> Option<(OwnedFd, FileMetadata)> {
        let file = self.open_without_waiting(asked, TO_READ)?;
        let facts = FileMetadata::from(&fstat(&file).ok()?);
        (facts.kind == FileKind::File).then_some((file, facts))
    }

    /// Returns the metadata of a file or folder if that does not need to wait.
    pub(crate) fn cached_metadata(&self, asked: &RequestedPath) -> Option<FileMetadata> {
        let file =
            self.open_without_waiting(asked, PASS_THROUGH - OFlags::DIRECTORY - OFlags::NOFOLLOW)?;
        Some(FileMetadata::from(&fstat(&file).ok()?))
    }

    fn open_without_waiting(&self, asked: &RequestedPath, flags: OFlags) -> Option<OwnedFd> {
        let (root, used) = self.innermost_root(asked).filter(|_| !asked.wants_folder)?;
        let rest = remaining_path(asked, used);
        let file =
            open_beneath(&*self.root_at(root).handle, &rest, flags, DiskWait::MustNot)?.ok()?;
        is_expected_file(asked, &file)?.then_some(file)
    }

    /// Returns the metadata of a file or folder, following links.
    pub(crate) fn metadata_of(
        &self,
        asked: &RequestedPath,
        verb: FileOperationVerb,
    ) -> Result<FileMetadata> {
        let failed = |errno| errors::operation_error(verb, &asked.display_path(), errno);
        let flags = PASS_THROUGH - OFlags::NOFOLLOW;
        let flags = if asked.wants_folder { flags } else { flags - OFlags::DIRECTORY };
        if let Some(opened) = self.open_in_one_call(asked, flags, verb) {
            return Ok(FileMetadata::from(&fstat(&opened?).map_err(failed)?));
        }
        for _ in 0..RACES_MAX {
            let place = self.resolve_existing(asked, FinalLinkPolicy::Follow, verb)?;
            let facts = place.metadata().map_err(failed)?;
            if facts.kind == FileKind::Link {
                continue;
            }
            if asked.wants_folder && facts.kind != FileKind::Folder {
                return Err(failed(Errno::NOTDIR));
            }
            return Ok(facts);
        }
        Err(errors::keeps_changing_error(verb, &asked.display_path()))
    }

    /// Resolves a path step by step.
    pub(crate) fn resolve_existing(
        &self,
        asked: &RequestedPath,
        last: FinalLinkPolicy,
        verb: FileOperationVerb,
    ) -> Result<PathTarget> {
        let place = PathResolution::new(self, asked, verb, MissingFolderPolicy::Fail)
            .resolve_target(last)?;
        let does = if matches!(verb, FileOperationVerb::Delete | FileOperationVerb::Move) {
            PathOperation::Write
        } else {
            PathOperation::Read
        };
        self.check_limits(asked, &place, does, verb)?;
        Ok(place)
    }

    /// Refuses a place that the limits exclude, or that differs from the place to which the path
    /// led when the call was checked.
    fn check_limits(
        &self,
        asked: &RequestedPath,
        place: &PathTarget,
        does: PathOperation,
        verb: FileOperationVerb,
    ) -> Result<()> {
        let Some(limits) = &asked.limits else { return Ok(()) };
        limits.check_path(verb, &place.shown, &self.resolved_pair(place), does)?;
        let expected = limits.expected_path(&asked.display_path());
        if expected.is_some_and(|expected| !self.is_expected(place, expected)) {
            return Err(errors::changed_path_error(verb, &place.shown));
        }
        Ok(())
    }

    fn is_expected(&self, place: &PathTarget, expected: &ResolvedPath) -> bool {
        let names = self.resolved_pair(place);
        let is_there = |path: &str| names.both_paths().any(|name| name == Path::new(path));
        if is_there(&expected.path) {
            return expected
                .identity
                .is_none_or(|identity| self.identity_at(place, &expected.found) == Some(identity));
        }
        // The place is a link itself, or a link that is still to be followed.
        is_there(&expected.entry)
    }

    /// Returns the identity of the entry at a path, on the way to a place.
    fn identity_at(&self, place: &PathTarget, path: &str) -> Option<FileIdentity> {
        let path = Path::new(path);
        let is_at =
            |place: &PathTarget| self.resolved_pair(place).both_paths().any(|name| name == path);
        if is_at(place) {
            return place.metadata().ok().map(|facts| facts.identity());
        }
        let root = self.root_at(place.root);
        (0..=place.above.len()).find_map(|count| {
            let above = place.above[..count].to_vec();
            let dir = above.last().map_or(&root.handle, |it| &it.folder).clone();
            let folder = PathTarget { name: None, dir, above, ..place.clone() };
            is_at(&folder).then(|| folder.metadata().ok().map(|facts| facts.identity()))?
        })
    }

    /// Returns where a path leads, as far as it exists.
    pub(crate) fn resolve(&self, asked: &RequestedPath) -> Option<ResolvedPath> {
        let go = |last| {
            let steps = PathResolution::new(
                self,
                asked,
                FileOperationVerb::Find,
                MissingFolderPolicy::Stop,
            );
            steps.resolve_existing_part(last).ok()
        };
        let (entry, rest) = go(FinalLinkPolicy::Stay)?;
        let is_link = rest.is_empty() && is_link(&entry);
        let entry_path = append_names(&self.resolved_path(&entry), &rest);
        let (place, rest) = if is_link { go(FinalLinkPolicy::Follow)? } else { (entry, rest) };
        let facts = place.metadata().ok().filter(|_| rest.is_empty());
        let path = append_names(&self.resolved_path(&place), &rest);
        let (found, identity) = match &facts {
            Some(facts) => (path.clone(), Some(facts.identity())),
            None => {
                let identity =
                    fstat(&*place.dir).ok().map(|stat| FileMetadata::from(&stat).identity());
                (self.resolved_path(&PathTarget { name: None, ..place }), identity)
            }
        };
        let told = |path: PathBuf| path.to_string_lossy().into_owned();
        Some(ResolvedPath {
            asked: told(asked.display_path()),
            path: told(path),
            entry: told(entry_path),
            kind: facts.map(|facts| facts.kind),
            found: told(found),
            identity,
            ..ResolvedPath::default()
        })
    }

    /// Applies the checks of [`Self::check_limits`] before any folders are created on the way.
    fn check_missing_folders(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        verb: FileOperationVerb,
    ) -> Result<()> {
        let Some(limits) = asked.limits.as_ref().filter(|_| missing == MissingFolderPolicy::Make)
        else {
            return Ok(());
        };
        let steps = PathResolution::new(self, asked, verb, MissingFolderPolicy::Stop);
        let (place, rest) = steps.resolve_existing_part(FinalLinkPolicy::Follow)?;
        let shown = append_names(&self.resolved_path(&place), &rest);
        let whole = ResolvedPathPair::new(shown, append_names(&self.host_path(&place), &rest));
        limits.check_path(verb, &place.shown, &whole, PathOperation::Write)?;
        let Some(expected) = limits.expected_path(&asked.display_path()) else { return Ok(()) };
        match whole.both_paths().any(|name| name == Path::new(&expected.path)) {
            true => Ok(()),
            false => Err(errors::changed_path_error(verb, &place.shown)),
        }
    }

    /// Resolves a name to create or replace. Even with [`FinalLinkPolicy::Follow`], the first
    /// look-up may return a link. A caller that opens the place without following links notices
    /// this, and then calls [`Self::resolve_for_write`].
    pub(crate) fn resolve_new_name(
        &self,
        asked: &RequestedPath,
        last: FinalLinkPolicy,
        missing: MissingFolderPolicy,
        verb: FileOperationVerb,
    ) -> Result<PathTarget> {
        self.check_missing_folders(asked, missing, verb)?;
        let place = match self.resolve_in_one_call(asked, verb) {
            Some(place) => place?,
            None => PathResolution::new(self, asked, verb, missing).resolve_target(last)?,
        };
        self.check_limits(asked, &place, PathOperation::Write, verb)?;
        self.check_writable(verb, &place)?;
        Ok(place)
    }

    /// Resolves a path for writing, following links.
    pub(crate) fn resolve_for_write(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        verb: FileOperationVerb,
    ) -> Result<PathTarget> {
        self.check_missing_folders(asked, missing, verb)?;
        let place = PathResolution::new(self, asked, verb, missing)
            .resolve_target(FinalLinkPolicy::Follow)?;
        self.check_limits(asked, &place, PathOperation::Write, verb)?;
        self.check_writable(verb, &place)?;
        Ok(place)
    }

    /// Resolves a path in one system call. The last name may still be a link. Returns `None` if
    /// steps are needed.
    fn resolve_in_one_call(
        &self,
        asked: &RequestedPath,
        verb: FileOperationVerb,
    ) -> Option<Result<PathTarget>> {
        if asked.limits.is_some() {
            return None;
        }
        let (root, used) = self.innermost_root(asked)?;
        let (name, folders) = asked.parts[used..].split_last()?;
        let handle = &self.root_at(root).handle;
        let place = |dir| PathTarget {
            root,
            dir,
            name: Some(name.clone()),
            above: Vec::new(),
            shown: asked.display_path(),
        };
        if folders.is_empty() {
            return Some(Ok(place(Arc::clone(handle))));
        }
        let folders: PathBuf = folders.iter().collect();
        match open_beneath(&**handle, &folders, PASS_THROUGH - OFlags::NOFOLLOW, DiskWait::May)? {
            Ok(dir) => Some(Ok(place(Arc::new(dir)))),
            // Steps may create the folder, or report a better error.
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(errno) => Some(Err(errors::operation_error(verb, &asked.display_path(), errno))),
        }
    }

    /// Resolves a folder step by step, following links. In the returned place, `dir` is the folder
    /// itself, opened only to pass through it.
    pub(crate) fn resolve_folder(
        &self,
        asked: &RequestedPath,
        verb: FileOperationVerb,
    ) -> Result<PathTarget> {
        let mut inside = asked.clone();
        // With one more name, the last folder becomes a folder on the way.
        inside.parts.push(".".into());
        let place = PathResolution::new(self, &inside, verb, MissingFolderPolicy::Fail)
            .resolve_target(FinalLinkPolicy::Stay)?;
        let place = PathTarget { name: None, shown: asked.display_path(), ..place };
        self.check_limits(asked, &place, PathOperation::Read, verb)?;
        Ok(place)
    }

    /// Opens a folder to list it.
    pub(crate) fn open_folder(
        &self,
        asked: &RequestedPath,
        verb: FileOperationVerb,
    ) -> Result<OwnedFd> {
        self.open_requested(asked, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK, verb)
    }

    fn open_requested(
        &self,
        asked: &RequestedPath,
        flags: OFlags,
        verb: FileOperationVerb,
    ) -> Result<OwnedFd> {
        let failed = |errno| errors::operation_error(verb, &asked.display_path(), errno);
        if let Some(opened) = self.open_in_one_call(asked, flags, verb) {
            return opened;
        }
        for _ in 0..RACES_MAX {
            let place = self.resolve_existing(asked, FinalLinkPolicy::Follow, verb)?;
            match place.open_target(flags) {
                Err(Errno::LOOP | Errno::NOTDIR) if is_link(&place) => {}
                other => return other.map_err(failed),
            }
        }
        Err(errors::keeps_changing_error(verb, &asked.display_path()))
    }

    /// Opens a path with one system call. Returns `None` if steps are needed.
    fn open_in_one_call(
        &self,
        asked: &RequestedPath,
        flags: OFlags,
        verb: FileOperationVerb,
    ) -> Option<Result<OwnedFd>> {
        let (root, used) = self.innermost_root(asked)?;
        let rest = remaining_path(asked, used);
        let file = match open_beneath(&*self.root_at(root).handle, &rest, flags, DiskWait::May)? {
            Ok(file) => file,
            Err(errno) => {
                return Some(Err(errors::operation_error(verb, &asked.display_path(), errno)));
            }
        };
        Some(match is_expected_file(asked, &file)? {
            true => Ok(file),
            false => Err(errors::changed_path_error(verb, &asked.display_path())),
        })
    }
}

/// Returns true if a file is the one that the path led to when the call was checked, and `None` if
/// that must be checked by path.
fn is_expected_file(asked: &RequestedPath, file: impl AsFd) -> Option<bool> {
    let expected =
        asked.limits.as_ref().and_then(|limits| limits.expected_path(&asked.display_path()));
    let Some(expected) = expected else { return Some(true) };
    let identity = expected.identity.filter(|_| expected.kind.is_some())?;
    Some(FileMetadata::from(&fstat(file).ok()?).identity() == identity)
}

/// Appends names that do not exist to a path.
fn append_names(path: &Path, ahead: &[OsString]) -> PathBuf {
    let mut path = path.to_owned();
    for name in ahead.iter().rev() {
        if name == ".." {
            path.pop();
        } else {
            path.push(name);
        }
    }
    path
}

fn is_link(place: &PathTarget) -> bool {
    place.metadata().is_ok_and(|facts| facts.kind == FileKind::Link)
}

fn remaining_path(asked: &RequestedPath, used: usize) -> PathBuf {
    let rest: PathBuf = asked.parts[used..].iter().collect();
    if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest }
}
