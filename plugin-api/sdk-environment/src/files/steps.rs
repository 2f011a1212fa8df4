//! Goes through a path name by name, from the handle of one folder to the next.
//!
//! What the kernel does in one call where it can ([`crate::platform::open_beneath`]), and the rest:
//! links with an absolute target, `..` that leaves one allowed folder and enters another, folders
//! that are made on the way, and all of it where there is no such call. `..` goes back to the
//! handle that we came from, so that nobody who renames folders meanwhile leads us up elsewhere.
//! Above the allowed folders there are only names; nothing is opened there.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::Result;
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::asked::{Asked, push_parts};
use super::limits::{LINKS_MAX, RACES_MAX};
use super::place::{Below, Handle, Place};
use super::roots::Roots;
use crate::engine::{CallLimits, Does, PATH_BYTES_MAX, TruePath};
use crate::errors::{self, Verb};
use crate::platform::PASS_THROUGH;

/// What becomes of a link at the path's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Stay,
}

/// What becomes of folders on the way that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Fail,
    Make,
    /// The way ends in front of them.
    Stop,
}

/// A way through names, as far as it has come.
pub(crate) struct Steps<'a> {
    roots: &'a Roots,
    verb: Verb,
    shown: PathBuf,
    missing: Missing,
    /// What is ahead, the next one last.
    ahead: Vec<OsString>,
    links: u32,
    steps: usize,
    at: At,
    limits: Option<Arc<CallLimits>>,
}

/// Where it is.
enum At {
    /// Above or beside the allowed folders: only names.
    Outside(Vec<OsString>),
    /// In an allowed folder.
    Inside { root: usize, below: Vec<Below> },
}

/// Names on a way: what all links together can say.
const STEPS_MAX: usize = PATH_BYTES_MAX * 4;

impl<'a> Steps<'a> {
    pub(crate) fn new(roots: &'a Roots, asked: &Asked, verb: Verb, missing: Missing) -> Self {
        let mut steps = Self {
            roots,
            verb,
            shown: asked.shown(),
            missing,
            ahead: asked.parts.iter().rev().cloned().collect(),
            links: 0,
            steps: 0,
            at: At::Outside(Vec::new()),
            limits: asked.limits.clone(),
        };
        steps.enter();
        steps
    }

    /// Goes to the end: to the folder that holds the last name.
    pub(crate) fn reach(self, last: Last) -> Result<Place> {
        self.reach_what_is_there(last).map(|(place, _)| place)
    }

    /// Goes as far as there is something; returns the names ahead of that, too.
    pub(crate) fn reach_what_is_there(mut self, last: Last) -> Result<(Place, Vec<OsString>)> {
        while let Some(part) = self.ahead.pop() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(self.failed(Errno::LOOP));
            }
            if part == ".." {
                self.up();
                continue;
            }
            if let At::Outside(names) = &mut self.at {
                names.push(part);
                self.enter();
                continue;
            }
            if self.enters_root(&part) {
                continue;
            }
            self.check_kept_off(&part)?;
            if !self.ahead.is_empty() {
                if let Some(missing) = self.down(part)? {
                    return self.place(Some(missing));
                }
            } else if last == Last::Stay || !self.follows(&part)? {
                return self.place(Some(part));
            }
        }
        self.place(None)
    }

    /// Refuses to look at what the call keeps off.
    fn check_kept_off(&self, part: &OsStr) -> Result<()> {
        let (Some(limits), At::Inside { root, below }) = (&self.limits, &self.at) else {
            return Ok(());
        };
        // A path has this name only to make its last folder one on the way.
        if part == "." {
            return Ok(());
        }
        let root = self.roots.get(*root);
        let whole = |top: &Path| {
            let mut path = top.to_owned();
            path.extend(below.iter().map(|it| &*it.name).chain([part]));
            path
        };
        let path = TruePath::new(whole(root.shown()), whole(root.host()));
        limits.check(self.verb, &self.shown, &path, Does::Read)
    }

    fn place(self, name: Option<OsString>) -> Result<(Place, Vec<OsString>)> {
        let At::Inside { root, below } = self.at else {
            let shown = self.shown.display();
            let verb = if self.links == 0 { "is" } else { "leads" };
            return Err(self.roots.outside(&format!("`{shown}` {verb}")));
        };
        let dir = below.last().map_or(&self.roots.get(root).handle, |it| &it.folder);
        let dir = Arc::clone(dir);
        Ok((Place { root, dir, name, above: below, shown: self.shown }, self.ahead))
    }

    /// Where only names have led to an allowed folder, it goes on there.
    fn enter(&mut self) {
        let At::Outside(names) = &self.at else { return };
        if let Some(root) = self.roots.at(names) {
            self.at = At::Inside { root, below: Vec::new() };
        }
    }

    /// An allowed folder below another is entered by its name, whatever the other one has there.
    fn enters_root(&mut self, part: &OsStr) -> bool {
        let At::Inside { root, below } = &self.at else { return false };
        let root = self.roots.get(*root);
        if !root.has_roots_below() {
            return false;
        }
        let mut names = root.parts().to_vec();
        names.extend(below.iter().map(|it| it.name.clone()));
        names.push(part.to_owned());
        let Some(root) = self.roots.at(&names) else { return false };
        self.at = At::Inside { root, below: Vec::new() };
        true
    }

    fn up(&mut self) {
        match &mut self.at {
            At::Outside(names) => {
                names.pop();
                self.enter();
            }
            At::Inside { root, below } => {
                if below.pop().is_some() {
                    return;
                }
                // From the top again: another allowed folder may be above.
                let parts = self.roots.get(*root).parts();
                let above = &parts[..parts.len().saturating_sub(1)];
                self.ahead.extend(above.iter().rev().cloned());
                self.at = At::Outside(Vec::new());
                self.enter();
            }
        }
    }

    fn folder(&self) -> Handle {
        match &self.at {
            At::Inside { root, below } => {
                Arc::clone(below.last().map_or(&self.roots.get(*root).handle, |it| &it.folder))
            }
            At::Outside(_) => unreachable!("asked only inside"),
        }
    }

    /// Goes into a folder, or where a link leads. Returns the name if nothing has it, and that is
    /// where the way ends.
    fn down(&mut self, part: OsString) -> Result<Option<OsString>> {
        let folder = self.folder();
        for _ in 0..RACES_MAX {
            match openat(&*folder, &part, PASS_THROUGH, Mode::empty()) {
                Ok(handle) => {
                    if let At::Inside { below, .. } = &mut self.at {
                        below.push(Below { folder: Arc::new(handle), name: part });
                    }
                    return Ok(None);
                }
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    if self.follows(&part)? {
                        return Ok(None);
                    }
                    let stat = statat(&*folder, &part, AtFlags::SYMLINK_NOFOLLOW);
                    // Else it was exchanged since we looked.
                    if stat.is_ok_and(|stat| is_neither(FileType::from_raw_mode(stat.st_mode))) {
                        if self.missing == Missing::Stop {
                            return Ok(Some(part));
                        }
                        return Err(self.failed(Errno::NOTDIR));
                    }
                }
                Err(Errno::NOENT) if self.missing == Missing::Make => {
                    self.check_writable()?;
                    match mkdirat(&*folder, &part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(self.failed(errno)),
                    }
                }
                Err(Errno::NOENT) if self.missing == Missing::Stop => return Ok(Some(part)),
                Err(errno) => return Err(self.failed(errno)),
            }
        }
        Err(errors::keeps_changing(self.verb, &self.shown))
    }

    /// Where it is a link, what it says is what is ahead.
    fn follows(&mut self, part: &OsStr) -> Result<bool> {
        let target = match readlinkat(&*self.folder(), part, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.failed(errno)),
        };
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(self.failed(Errno::LOOP));
        }
        let mut parts = Vec::new();
        push_parts(&mut parts, &target);
        self.ahead.extend(parts.into_iter().rev());
        if target.as_bytes().starts_with(b"/") {
            self.at = At::Outside(Vec::new());
            self.enter();
        }
        Ok(true)
    }

    fn check_writable(&self) -> Result<()> {
        match &self.at {
            At::Inside { root, .. } => {
                self.roots.check_root_writable(self.verb, *root, &self.shown)
            }
            At::Outside(_) => Ok(()),
        }
    }

    fn failed(&self, errno: Errno) -> jaato_types::Error {
        errors::failed(self.verb, &self.shown, errno)
    }
}

fn is_neither(kind: FileType) -> bool {
    !matches!(kind, FileType::Directory | FileType::Symlink)
}
