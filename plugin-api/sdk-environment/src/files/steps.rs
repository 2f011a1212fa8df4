//! Resolves a path name by name, from the handle of one folder to the next.
//!
//! If possible, the kernel resolves a path in one call ([`crate::platform::open_beneath`]). Steps
//! handle everything else: links with an absolute target, `..` that leaves one allowed folder and
//! enters another, folders that are created on the way, and systems without such a call. `..`
//! returns to the handle of the previous folder, so concurrent renames cannot redirect it. Above
//! the allowed folders, paths are only names, and nothing is opened.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::limits::{LINKS_MAX, RACES_MAX};
use super::path_target::{AncestorFolder, FolderHandle, PathTarget};
use super::requested_path::{RequestedPath, push_parts};
use super::roots::OpenRoots;
use crate::engine::{CallLimits, PATH_BYTES_MAX, PathOperation, ResolvedPathPair};
use crate::errors::{self, FileOperationVerb};
use crate::platform::PASS_THROUGH;

/// What to do with a link at the end of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinalLinkPolicy {
    Follow,
    Stay,
}

/// What to do if folders on the way are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MissingFolderPolicy {
    Fail,
    Make,
    /// Stop before the first missing folder.
    Stop,
}

/// The state of a path's resolution.
pub(crate) struct PathResolution<'a> {
    roots: &'a OpenRoots,
    verb: FileOperationVerb,
    shown: PathBuf,
    missing: MissingFolderPolicy,
    /// The names ahead, in reverse order.
    ahead: Vec<OsString>,
    links: u32,
    steps: usize,
    at: PathPosition,
    limits: Option<Arc<CallLimits>>,
}

/// The current position.
enum PathPosition {
    /// Outside the allowed folders, where only names are tracked.
    Outside(Vec<OsString>),
    /// In an allowed folder.
    Inside { root: usize, below: Vec<AncestorFolder> },
}

/// The maximum number of names in one resolution, including the targets of links.
const STEPS_MAX: usize = PATH_BYTES_MAX * 4;

impl<'a> PathResolution<'a> {
    pub(crate) fn new(
        roots: &'a OpenRoots,
        asked: &RequestedPath,
        verb: FileOperationVerb,
        missing: MissingFolderPolicy,
    ) -> Self {
        let mut steps = Self {
            roots,
            verb,
            shown: asked.display_path(),
            missing,
            ahead: asked.parts.iter().rev().cloned().collect(),
            links: 0,
            steps: 0,
            at: PathPosition::Outside(Vec::new()),
            limits: asked.limits.clone(),
        };
        steps.enter_matching_root();
        steps
    }

    /// Resolves the path to the folder that contains the last name.
    pub(crate) fn resolve_target(self, last: FinalLinkPolicy) -> Result<PathTarget> {
        self.resolve_existing_part(last).map(|(place, _)| place)
    }

    /// Resolves as much of the path as exists. Also returns the names that remain.
    pub(crate) fn resolve_existing_part(
        mut self,
        last: FinalLinkPolicy,
    ) -> Result<(PathTarget, Vec<OsString>)> {
        while let Some(part) = self.ahead.pop() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(self.step_error(Errno::LOOP));
            }
            if part == ".." {
                self.enter_parent();
                continue;
            }
            if let PathPosition::Outside(names) = &mut self.at {
                names.push(part);
                self.enter_matching_root();
                continue;
            }
            if self.try_enter_root(&part) {
                continue;
            }
            self.check_name(&part)?;
            if !self.ahead.is_empty() {
                if let Some(missing) = self.descend_into(part)? {
                    return self.into_target(Some(missing));
                }
            } else if last == FinalLinkPolicy::Stay || !self.follow_link(&part)? {
                return self.into_target(Some(part));
            }
        }
        self.into_target(None)
    }

    /// Refuses a name that the limits exclude.
    fn check_name(&self, part: &OsStr) -> Result<()> {
        let (Some(limits), PathPosition::Inside { root, below }) = (&self.limits, &self.at) else {
            return Ok(());
        };
        // Only a path whose last folder is to be entered contains this name.
        if part == "." {
            return Ok(());
        }
        let root = self.roots.root_at(*root);
        let whole = |top: &Path| {
            let mut path = top.to_owned();
            path.extend(below.iter().map(|it| &*it.name).chain([part]));
            path
        };
        let path = ResolvedPathPair::new(whole(root.display_path()), whole(root.host_path()));
        limits.check_path(self.verb, &self.shown, &path, PathOperation::Read)
    }

    fn into_target(self, name: Option<OsString>) -> Result<(PathTarget, Vec<OsString>)> {
        let PathPosition::Inside { root, below } = self.at else {
            let shown = self.shown.display();
            let verb = if self.links == 0 { "is" } else { "leads" };
            return Err(self.roots.outside_error(&format!("`{shown}` {verb}")));
        };
        let dir = below.last().map_or(&self.roots.root_at(root).handle, |it| &it.folder);
        let dir = Arc::clone(dir);
        Ok((PathTarget { root, dir, name, above: below, shown: self.shown }, self.ahead))
    }

    /// Enters an allowed folder if the names so far are its path.
    fn enter_matching_root(&mut self) {
        let PathPosition::Outside(names) = &self.at else { return };
        if let Some(root) = self.roots.root_index(names) {
            self.at = PathPosition::Inside { root, below: Vec::new() };
        }
    }

    /// Enters an allowed folder that is below another one, whatever the outer folder contains
    /// there.
    fn try_enter_root(&mut self, part: &OsStr) -> bool {
        let PathPosition::Inside { root, below } = &self.at else { return false };
        let root = self.roots.root_at(*root);
        if !root.has_roots_below() {
            return false;
        }
        let mut names = root.path_parts().to_vec();
        names.extend(below.iter().map(|it| it.name.clone()));
        names.push(part.to_owned());
        let Some(root) = self.roots.root_index(&names) else { return false };
        self.at = PathPosition::Inside { root, below: Vec::new() };
        true
    }

    fn enter_parent(&mut self) {
        match &mut self.at {
            PathPosition::Outside(names) => {
                names.pop();
                self.enter_matching_root();
            }
            PathPosition::Inside { root, below } => {
                if below.pop().is_some() {
                    return;
                }
                // Start again at the root, because another allowed folder may be above.
                let parts = self.roots.root_at(*root).path_parts();
                let above = &parts[..parts.len().saturating_sub(1)];
                self.ahead.extend(above.iter().rev().cloned());
                self.at = PathPosition::Outside(Vec::new());
                self.enter_matching_root();
            }
        }
    }

    fn current_folder(&self) -> FolderHandle {
        match &self.at {
            PathPosition::Inside { root, below } => {
                Arc::clone(below.last().map_or(&self.roots.root_at(*root).handle, |it| &it.folder))
            }
            PathPosition::Outside(_) => unreachable!("asked only inside"),
        }
    }

    /// Enters a folder or follows a link. Returns the name if the folder is missing and the
    /// resolution stops there.
    fn descend_into(&mut self, part: OsString) -> Result<Option<OsString>> {
        let folder = self.current_folder();
        for _ in 0..RACES_MAX {
            match openat(&*folder, &part, PASS_THROUGH, Mode::empty()) {
                Ok(handle) => {
                    if let PathPosition::Inside { below, .. } = &mut self.at {
                        below.push(AncestorFolder { folder: Arc::new(handle), name: part });
                    }
                    return Ok(None);
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    if self.follow_link(&part)? {
                        return Ok(None);
                    }
                    let stat = statat(&*folder, &part, AtFlags::SYMLINK_NOFOLLOW);
                    // Otherwise another process replaced it after the first look.
                    if stat.is_ok_and(|stat| is_special_file(FileType::from_raw_mode(stat.st_mode)))
                    {
                        if self.missing == MissingFolderPolicy::Stop {
                            return Ok(Some(part));
                        }
                        return Err(self.step_error(Errno::NOTDIR));
                    }
                }
                Err(Errno::NOENT) if self.missing == MissingFolderPolicy::Make => {
                    self.check_writable()?;
                    match mkdirat(&*folder, &part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(self.step_error(errno)),
                    }
                }
                Err(Errno::NOENT) if self.missing == MissingFolderPolicy::Stop => {
                    return Ok(Some(part));
                }
                Err(errno) => return Err(self.step_error(errno)),
            }
        }
        Err(errors::keeps_changing_error(self.verb, &self.shown))
    }

    /// If the entry is a link, puts its target ahead and returns true.
    fn follow_link(&mut self, part: &OsStr) -> Result<bool> {
        let target = match readlinkat(&*self.current_folder(), part, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.step_error(errno)),
        };
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.step_error(Errno::LOOP));
        }
        let mut parts = Vec::new();
        push_parts(&mut parts, &target);
        self.ahead.extend(parts.into_iter().rev());
        if target.as_bytes().starts_with(b"/") {
            self.at = PathPosition::Outside(Vec::new());
            self.enter_matching_root();
        }
        Ok(true)
    }

    fn check_writable(&self) -> Result<()> {
        match &self.at {
            PathPosition::Inside { root, .. } => {
                self.roots.check_root_writable(self.verb, *root, &self.shown)
            }
            PathPosition::Outside(_) => Ok(()),
        }
    }

    fn step_error(&self, errno: Errno) -> jaato_types::Error {
        errors::operation_error(self.verb, &self.shown, errno)
    }
}

fn is_special_file(kind: FileType) -> bool {
    !matches!(kind, FileType::Directory | FileType::Symlink)
}
