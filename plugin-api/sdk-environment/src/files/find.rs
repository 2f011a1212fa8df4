//! Finding files by a pattern, with their facts and page by page.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use globset::{Candidate, GlobSet};
use jaato_types::files::{
    FileFind, FileKind, FileOrder, FoundFile, FoundPage, GLOB_PATHS_MAX, UNREADABLE_MAX,
    WALK_BYTES_MAX,
};
use jaato_types::{ErrorKind, Result};

use super::Confined;
use super::errors::Verb;
use super::folder::Sorted;
use super::glob::{Pattern, compiled, wrong};
use super::ignored::LeftOut;
use super::search::{Cancel, PROGRESS};
use super::walk::{Looks, Tree, json_bytes};
use crate::platform::{Facts, Moment};

/// Entries that are looked at before the clock is.
const CLOCK_ENTRIES: usize = 256;

/// Bytes of JSON that a file has beside its path, about.
const FACTS_BYTES: usize = 60;

/// Files that a pattern finds, page by page. It blocks.
#[derive(Debug)]
pub struct Find {
    /// None where the pattern names one file.
    tree: Option<(Tree, GlobSet)>,
    folder: String,
    order: FileOrder,
    limit: usize,
    cancel: Cancel,
    /// The best so far, the last of them on top, which goes when a better one comes.
    found: BinaryHeap<One>,
    count: u64,
    unreadable_left: usize,
    /// When what was found by then is told.
    until: Option<Instant>,
    is_partial: bool,
    /// What is told, once all is found.
    told: Option<std::vec::IntoIter<One>>,
    is_over: bool,
}

/// A file that was found; the one that is told first is the least.
#[derive(Debug, PartialEq, Eq)]
struct One {
    /// When it was changed, the newest first; the same for all where paths alone count.
    newest: Reverse<Moment>,
    /// How many were found before it.
    number: u64,
    path: Box<[u8]>,
    size: u64,
    modified: Moment,
}

impl Ord for One {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.newest, self.number).cmp(&(other.newest, other.number))
    }
}

impl PartialOrd for One {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Confined {
    /// Begins to find files by a pattern. Those that are equally new come in the order of their
    /// paths.
    pub fn find(&self, request: &FileFind) -> Result<Find> {
        let pattern = Pattern::new(&request.pattern)?;
        if pattern.folder.starts_with('/') {
            let text = format!("the pattern `{}` is absolute", request.pattern);
            return Err(wrong(&text, "name the folder apart from the pattern"));
        }
        let folder = match (request.path.as_str(), pattern.folder) {
            ("", folder) => folder.to_owned(),
            (path, "") => path.to_owned(),
            (path, folder) => format!("{path}/{folder}"),
        };
        let mut find = Find {
            tree: None,
            folder: pattern.folder.to_owned(),
            order: request.order,
            limit: request.limit.unwrap_or(GLOB_PATHS_MAX).min(GLOB_PATHS_MAX),
            cancel: Cancel::default(),
            found: BinaryHeap::new(),
            count: 0,
            unreadable_left: UNREADABLE_MAX,
            until: request
                .within_ms
                .and_then(|it| Instant::now().checked_add(Duration::from_millis(it))),
            is_partial: false,
            told: None,
            is_over: false,
        };
        if pattern.rest.is_empty() {
            let asked = self.roots.asked(&folder)?;
            match self.roots.look(&asked, Verb::Find) {
                Ok(facts) if facts.kind == FileKind::File => find.add(b"", &facts),
                Ok(_) => {}
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            return Ok(find);
        }
        let set = compiled(&request.pattern, pattern.rest)?;
        let asked = self.roots.asked_folder(&folder)?;
        let looks = Looks {
            include_ignored: request.include_ignored,
            include_hidden: request.include_hidden,
            leave_out: LeftOut::new(&request.leave_out, pattern.folder)?,
            sorted: Sorted::Yes,
            depth_max: pattern.depth_max(),
        };
        match self.tree(&asked, looks) {
            Ok(tree) => find.tree = Some((tree, set)),
            // The pattern names a folder that is not there: it finds nothing, like any other.
            Err(error) if !pattern.folder.is_empty() && error.kind == ErrorKind::NotFound => {
                self.roots.look(&self.roots.asked_folder(&request.path)?, Verb::Search)?;
            }
            Err(error) => return Err(error),
        }
        Ok(find)
    }
}

impl Find {
    /// What ends it early.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Reads the next page; `None` at the end, and where it was cancelled. One without files tells
    /// how far it has come.
    pub fn next_page(&mut self) -> Option<FoundPage> {
        if self.is_over || self.cancel.is_set() {
            return None;
        }
        let mut page = FoundPage::default();
        if self.told.is_none() {
            let is_all = self.look();
            self.is_partial = !is_all && self.until.is_some_and(|until| Instant::now() >= until);
            if is_all || self.is_partial {
                let found = std::mem::take(&mut self.found);
                self.told = Some(found.into_sorted_vec().into_iter());
            }
            if let Some((tree, _)) = &mut self.tree {
                let unreadable = tree.unreadable.drain(..).take(self.unreadable_left);
                page.unreadable = unreadable.collect();
                self.unreadable_left -= page.unreadable.len();
            }
        }
        (page.count, page.is_partial) = (self.count, self.is_partial);
        let mut bytes = 0;
        while let Some(told) = &mut self.told
            && bytes < WALK_BYTES_MAX
        {
            let Some(one) = told.next() else {
                self.is_over = true;
                break;
            };
            let path = format!("{}{}", self.folder, String::from_utf8_lossy(&one.path));
            bytes += FACTS_BYTES + json_bytes(&path);
            let (seconds, nanoseconds) = one.modified;
            let modified_ms = seconds.saturating_mul(1000).saturating_add(nanoseconds / 1_000_000);
            page.files.push(FoundFile {
                path,
                size: one.size,
                modified_ms,
                ..FoundFile::default()
            });
        }
        Some(page)
    }

    /// Looks at the tree for a while; true at its end.
    fn look(&mut self) -> bool {
        let pause = Instant::now() + PROGRESS;
        let until = self.until.map_or(pause, |until| until.min(pause));
        while Instant::now() < until && !self.cancel.is_set() {
            for _ in 0..CLOCK_ENTRIES {
                let Some((tree, set)) = &mut self.tree else { return true };
                let Some(kind) = tree.next() else { return true };
                let path = Path::new(OsStr::from_bytes(tree.path()));
                if kind != FileKind::File || !set.is_match_candidate(&Candidate::new(path)) {
                    continue;
                }
                self.count += 1;
                if self.order == FileOrder::Path && self.found.len() >= self.limit {
                    continue;
                }
                // What is gone meanwhile was there when it was found; it comes last.
                let facts = tree.facts().unwrap_or_default();
                let path = tree.path().to_vec();
                self.count -= 1;
                self.add(&path, &facts);
            }
        }
        false
    }

    fn add(&mut self, path: &[u8], facts: &Facts) {
        let newest = match self.order {
            FileOrder::Newest => Reverse(facts.modified),
            FileOrder::Path => Reverse((0, 0)),
        };
        let (number, size, modified) = (self.count, facts.size, facts.modified);
        self.count += 1;
        if self.found.len() >= self.limit {
            let Some(mut last) = self.found.peek_mut() else { return };
            if (newest, number) < (last.newest, last.number) {
                *last = One { newest, number, path: path.into(), size, modified };
            }
            return;
        }
        self.found.push(One { newest, number, path: path.into(), size, modified });
    }
}
