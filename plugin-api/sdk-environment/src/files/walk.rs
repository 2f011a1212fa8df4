//! Going through a tree, from handle to handle: who exchanges a folder for a link meanwhile leads
//! nobody anywhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jaato_types::Result;
use jaato_types::files::{
    FileKind, FileWalk, UNREADABLE_MAX, WALK_BYTES_MAX, WALK_ENTRIES_MAX, WalkedEntry, WalkedPage,
};
use rustix::io::Errno;

use super::asked::Asked;
use super::errors::{self, Verb};
use super::folder::{Folder, Sorted, open_in};
use super::ignored::{Ignored, LeftOut, Said};
use super::{Confined, DEPTH_MAX, PATH_BYTES_MAX};
use crate::platform::Facts;

/// A walk through a tree, page by page.
#[derive(Debug)]
pub struct Walk {
    tree: Tree,
    unreadable_told: usize,
    is_done: bool,
}

/// A tree that is gone through, entry by entry.
#[derive(Debug)]
pub(crate) struct Tree {
    levels: Vec<Level>,
    /// The path of the entry that it is at, from the top of the rules.
    path: Vec<u8>,
    /// Where in it the part begins that is told.
    start: usize,
    ignored: Option<Ignored>,
    includes_hidden: bool,
    leave_out: Option<LeftOut>,
    sorted: Sorted,
    depth_max: usize,
    /// A folder that it is at and goes into next.
    enter: Option<OsString>,
    /// Folders that could not be read, with the reason.
    pub(crate) unreadable: Vec<String>,
    shown: PathBuf,
}

/// What of a tree is looked at.
#[derive(Debug)]
pub(crate) struct Looks {
    /// Whether what `.gitignore` and its like name is looked at too.
    pub(crate) include_ignored: bool,
    /// Whether hidden files are looked at too.
    pub(crate) include_hidden: bool,
    pub(crate) leave_out: Option<LeftOut>,
    pub(crate) sorted: Sorted,
    pub(crate) depth_max: usize,
}

#[derive(Debug)]
struct Level {
    folder: Folder,
    /// How long the path of what is in it is, without its name.
    length: usize,
}

impl Confined {
    /// Begins to go through a tree. What is hidden, or left out by `.gitignore` and its like, is
    /// not looked at unless asked for, and `.git` never.
    pub fn walk(&self, request: &FileWalk) -> Result<Walk> {
        let asked = self.roots.asked_folder(&request.path)?;
        let depth_max = request.depth_max.unwrap_or(DEPTH_MAX);
        let looks = Looks {
            include_ignored: request.include_ignored,
            include_hidden: request.include_ignored,
            leave_out: None,
            sorted: Sorted::Yes,
            depth_max,
        };
        let tree = self.tree(&asked, looks)?;
        Ok(Walk { tree, unreadable_told: 0, is_done: false })
    }

    pub(crate) fn tree(&self, asked: &Asked, looks: Looks) -> Result<Tree> {
        let shown = asked.shown();
        let failed = |errno| errors::failed(Verb::Search, &shown, errno);
        let place = self.roots.open_folder_place(asked, Verb::Search)?;
        let folder = open_in(&*place.dir, OsStr::new(".")).map_err(failed)?;
        let folder = Folder::read(folder, looks.sorted).map_err(failed)?;
        let mut ignored = (!looks.include_ignored).then(Ignored::default);
        let (mut path, depth) = (Vec::new(), place.above.len());
        if let Some(ignored) = &mut ignored {
            // Where rules of the folders above reach in: what is below them is known by its path
            // from there.
            let mut starts = vec![0];
            for below in &place.above {
                path.extend_from_slice(below.name.as_bytes());
                path.push(b'/');
                starts.push(path.len());
            }
            let root = &self.roots.get(place.root).handle;
            let handles = std::iter::once(root).chain(place.above.iter().map(|it| &it.folder));
            for (at, handle) in handles.take(depth).enumerate() {
                ignored.enter_above(&**handle, starts[at]);
            }
            ignored.enter(&folder, path.len());
        }
        let start = path.len();
        Ok(Tree {
            levels: vec![Level { folder, length: start }],
            path,
            start,
            ignored,
            includes_hidden: looks.include_hidden,
            leave_out: looks.leave_out,
            sorted: looks.sorted,
            depth_max: looks.depth_max.clamp(1, DEPTH_MAX),
            enter: None,
            unreadable: Vec::new(),
            shown,
        })
    }
}

impl Iterator for Walk {
    type Item = WalkedPage;

    /// Reads the next page; an empty one only where the last folders could not be read.
    fn next(&mut self) -> Option<WalkedPage> {
        let (mut entries, mut unreadable, mut bytes) = (Vec::new(), Vec::new(), 0);
        while !self.is_done && entries.len() < WALK_ENTRIES_MAX && bytes < WALK_BYTES_MAX {
            match self.tree.next() {
                Some(kind) => {
                    let path = String::from_utf8_lossy(self.tree.path()).into_owned();
                    bytes += json_bytes(&path);
                    entries.push(WalkedEntry { path, kind, ..WalkedEntry::default() });
                }
                None => self.is_done = true,
            }
            for told in self.tree.unreadable.drain(..) {
                if self.unreadable_told < UNREADABLE_MAX {
                    self.unreadable_told += 1;
                    bytes += json_bytes(&told);
                    unreadable.push(told);
                }
            }
        }
        let is_empty = entries.is_empty() && unreadable.is_empty();
        (!is_empty).then_some(WalkedPage { entries, unreadable, ..WalkedPage::default() })
    }
}

/// What a path takes as JSON, with what is told beside it.
pub(crate) fn json_bytes(path: &str) -> usize {
    /// `{"path":"","kind":"folder"},`
    const BESIDE: usize = 30;
    let escaped = path.bytes().filter(|byte| *byte < b' ' || matches!(byte, b'"' | b'\\'));
    BESIDE + path.len() + 5 * escaped.count()
}

impl Tree {
    /// Goes to the next entry and tells what it is; a folder comes before what is in it.
    pub(crate) fn next(&mut self) -> Option<FileKind> {
        if let Some(name) = self.enter.take() {
            self.go_in(&name);
        }
        while let Some(level) = self.levels.last_mut() {
            let Some((name, kind)) = level.folder.next() else {
                self.levels.pop();
                if let Some(ignored) = &mut self.ignored {
                    ignored.leave();
                }
                continue;
            };
            let is_folder = kind == FileKind::Folder;
            if name == ".git" {
                continue;
            }
            self.path.truncate(level.length);
            self.path.extend_from_slice(name.as_bytes());
            let is_hidden = !self.includes_hidden && name.as_bytes().starts_with(b".");
            let said = match &self.ignored {
                Some(ignored) => ignored.says(&self.path, is_folder),
                None => Said::Nothing,
            };
            if said == Said::LeaveOut || (is_hidden && said != Said::Keep) {
                continue;
            }
            if let Some(leave_out) = &mut self.leave_out
                && leave_out.has(&self.path[self.start..], is_folder)
            {
                continue;
            }
            if is_folder && self.is_too_long() {
                self.told_unreadable("its path is too long");
            } else if is_folder && self.levels.len() < self.depth_max {
                self.enter = Some(OsStr::from_bytes(&self.path[self.length()..]).to_owned());
            } else if is_folder && self.depth_max == DEPTH_MAX {
                self.told_unreadable(&format!("more than {DEPTH_MAX} folders deep"));
            }
            return Some(kind);
        }
        None
    }

    /// The path of the entry, from where it began.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path[self.start..]
    }

    /// What the system tells of the entry.
    pub(crate) fn facts(&self) -> rustix::io::Result<Facts> {
        let (folder, name) = self.place().ok_or(Errno::NOENT)?;
        folder.facts(name)
    }

    /// The folder that the entry is in, and its name there.
    pub(crate) fn place(&self) -> Option<(&Folder, &OsStr)> {
        let level = self.levels.last()?;
        Some((&level.folder, OsStr::from_bytes(&self.path[level.length..])))
    }

    fn length(&self) -> usize {
        self.levels.last().map_or(0, |level| level.length)
    }

    fn go_in(&mut self, name: &OsStr) {
        let Some(level) = self.levels.last() else { return };
        let opened = open_in(&*level.folder.handle, name);
        match opened.and_then(|folder| Folder::read(folder, self.sorted)) {
            Ok(folder) => {
                self.path.push(b'/');
                let length = self.path.len();
                if let Some(ignored) = &mut self.ignored {
                    ignored.enter(&folder, length);
                }
                self.levels.push(Level { folder, length });
            }
            // It is gone, or was exchanged for something else.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
            Err(errno) => {
                let error = errors::failed(Verb::Search, Path::new(""), errno).message;
                let reason = error.rsplit(": ").next().unwrap_or_default().to_owned();
                self.told_unreadable(&reason);
            }
        }
    }

    /// A path that is longer could not be asked for.
    fn is_too_long(&self) -> bool {
        self.shown.as_os_str().len() + 1 + self.path().len() > PATH_BYTES_MAX
    }

    fn told_unreadable(&mut self, reason: &str) {
        if self.unreadable.len() < UNREADABLE_MAX {
            let path = self.shown.join(OsStr::from_bytes(self.path()));
            self.unreadable.push(format!("`{}`: {reason}", path.display()));
        }
    }
}
