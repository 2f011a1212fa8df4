//! Finds files by a pattern, with their facts and page by page, over a tree.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use jaato_types::files::{
    FileFind, FileKind, FileOrder, FoundFile, FoundPage, GLOB_PATHS_MAX, WALK_BYTES_MAX,
    WALK_ENTRIES_MAX,
};
use jaato_types::{Error, ErrorKind, Result};

use super::glob::split;
use super::pattern::Pattern;
use super::tree::{Looks, Tree};
use super::{joined, named};
use crate::context::Reporter;
use crate::environment::Files;
use crate::environment::searched::json_bytes;

/// Bytes of JSON that a file has beside its path, about.
const FILE_BYTES: usize = 60;

/// Files that a pattern finds.
pub(in crate::environment) struct Finding {
    /// None where the pattern names one file.
    tree: Option<(Tree, Pattern)>,
    /// The folder that the pattern names, and where that is.
    folder: String,
    base: String,
    order: FileOrder,
    limit: usize,
    /// The file that is looked at.
    pending: Option<String>,
    found: Vec<FoundFile>,
    count: u64,
    /// When what was found by then is told.
    until: Option<Instant>,
    is_partial: bool,
    /// What is told, once all is found.
    told: Option<std::vec::IntoIter<FoundFile>>,
    is_over: bool,
}

impl Finding {
    /// Begins.
    pub(in crate::environment) async fn begin<F: Files + ?Sized>(
        files: &F,
        host: &Reporter,
        find: FileFind,
    ) -> Result<Self> {
        let (folder, rest) = split(&find.pattern)?;
        if folder.starts_with('/') {
            let text = format!("the pattern `{}` is absolute", find.pattern);
            let error = Error::new(ErrorKind::InvalidArguments, text);
            return Err(error.with_hint("name the folder apart from the pattern"));
        }
        let base =
            if find.path.is_empty() { folder.to_owned() } else { joined(&find.path, folder) };
        let mut finding = Self {
            tree: None,
            folder: folder.to_owned(),
            base,
            order: find.order,
            limit: find.limit.unwrap_or(GLOB_PATHS_MAX).min(GLOB_PATHS_MAX),
            pending: None,
            found: Vec::new(),
            count: 0,
            until: find
                .within_ms
                .and_then(|it| Instant::now().checked_add(Duration::from_millis(it))),
            is_partial: false,
            told: None,
            is_over: false,
        };
        if rest.is_empty() {
            finding.take_one(files, host).await?;
            return Ok(finding);
        }
        let pattern = Pattern::new(rest)?;
        let looks = Looks {
            path: finding.base.clone(),
            include_ignored: find.include_ignored,
            include_hidden: find.include_hidden,
            leave_out: find.leave_out,
            way: finding.folder.clone(),
            depth_max: pattern.depth(),
        };
        match Tree::begin(files, host, looks).await {
            Ok(tree) => finding.tree = Some((tree, pattern)),
            // The pattern names a folder that is not there: it finds nothing, like any other.
            Err(error) if !folder.is_empty() && error.kind == ErrorKind::NotFound => {
                if !find.path.is_empty() {
                    files.stat(host, named(&find.path)).await?;
                }
            }
            Err(error) => return Err(error),
        }
        Ok(finding)
    }

    /// Gives the next page; none at the end.
    pub(in crate::environment) async fn next<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
    ) -> Result<Option<FoundPage>> {
        if self.is_over {
            return Ok(None);
        }
        let mut page = FoundPage::default();
        if self.told.is_none() {
            let is_all = self.look(files, host).await?;
            if let Some((tree, _)) = &mut self.tree {
                page.unreadable = tree.take_unreadable();
            }
            self.is_partial = !is_all && self.is_late();
            if is_all || self.is_partial {
                self.told = Some(self.sorted().into_iter());
            }
        }
        (page.count, page.is_partial) = (self.count, self.is_partial);
        let mut bytes = 0;
        while bytes < WALK_BYTES_MAX {
            let Some(told) = &mut self.told else { break };
            let Some(file) = told.next() else {
                self.is_over = true;
                break;
            };
            bytes += FILE_BYTES + json_bytes(&file.path);
            page.files.push(file);
        }
        Ok(Some(page))
    }

    /// A pattern without a sign is a path.
    async fn take_one<F: Files + ?Sized>(&mut self, files: &F, host: &Reporter) -> Result<()> {
        match files.stat(host, named(&self.base)).await {
            Ok(facts) if facts.kind == FileKind::File => {
                self.count = 1;
                let (size, modified_ms) = (facts.size, facts.modified_ms);
                let path = self.folder.clone();
                self.found.push(FoundFile { path, size, modified_ms, ..FoundFile::default() });
            }
            Ok(_) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Looks at some of the tree; true at its end.
    async fn look<F: Files + ?Sized>(&mut self, files: &F, host: &Reporter) -> Result<bool> {
        let Some((tree, pattern)) = &mut self.tree else { return Ok(true) };
        for _ in 0..WALK_ENTRIES_MAX {
            if self.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
            let path = match self.pending.take() {
                Some(path) => path,
                None => {
                    let Some(entry) = tree.next_entry(files, host).await? else { return Ok(true) };
                    if entry.kind != FileKind::File || !pattern.matches(&entry.path) {
                        continue;
                    }
                    self.count += 1;
                    entry.path
                }
            };
            if self.order == FileOrder::Path && self.found.len() >= self.limit {
                continue;
            }
            self.pending = Some(path.clone());
            // What went meanwhile comes last.
            let facts = files.stat(host, named(&joined(&self.base, &path))).await;
            let (size, modified_ms) = facts.map_or((0, i64::MIN), |it| (it.size, it.modified_ms));
            self.pending = None;
            let path = format!("{}{path}", self.folder);
            self.found.push(FoundFile { path, size, modified_ms, ..FoundFile::default() });
        }
        Ok(false)
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    fn sorted(&mut self) -> Vec<FoundFile> {
        let mut found = std::mem::take(&mut self.found);
        match self.order {
            FileOrder::Path => {}
            FileOrder::Newest => {
                found.sort_by(|a, b| {
                    (Reverse(a.modified_ms), &a.path).cmp(&(Reverse(b.modified_ms), &b.path))
                });
            }
        }
        found.truncate(self.limit);
        for file in &mut found {
            file.modified_ms = file.modified_ms.max(0);
        }
        found
    }
}
