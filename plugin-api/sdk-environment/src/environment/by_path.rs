//! Enforces a call's limits by path, for environments whose files have no handles.
//!
//! Such an environment cannot say where a link leads, so a call with limits must not follow one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_plugin_sdk::Reporter;
use jaato_types::files::{
    FileDelete, FileFind, FileKind, FilePair, FileSearch, FileWalk, FolderEntries, FolderEntry,
    FolderList, FoundPage, LIST_ENTRIES_MAX, SearchedPage, WalkedPage,
};
use jaato_types::{Error, ErrorKind, Result};

use super::default_methods::file_path;
use super::exchange::{self, ENTRIES_MAX, join_path};
use super::files::Files;
use super::streams::PageStream;
use crate::engine::{self, CallLimits, DEPTH_MAX, PathOperation, ResolvedPathPair, TreeCallLimits};
use crate::errors::FileOperationVerb;

/// Files with the limits of a call.
pub(super) struct LimitedFiles<'a, F: ?Sized> {
    files: &'a F,
    host: &'a Reporter,
    limits: &'a Arc<CallLimits>,
}

/// How to treat a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalLinkHandling {
    /// Refuse it, because the environment would follow it to an unknown target.
    Refuse,
    /// Accept it, because the operation is about the link itself.
    Stay,
}

impl<'a, F: Files + ?Sized> LimitedFiles<'a, F> {
    pub(super) fn new(files: &'a F, host: &'a Reporter, limits: &'a Arc<CallLimits>) -> Self {
        Self { files, host, limits }
    }

    /// Refuses a path that the limits exclude or that contains a link. Returns the full path.
    pub(super) async fn check_path(
        &self,
        verb: FileOperationVerb,
        path: &str,
        does: PathOperation,
        at_link: FinalLinkHandling,
    ) -> Result<ResolvedPathPair> {
        let folder = self.files.stat(self.host, file_path(".")).await?.path;
        let folder = Path::new(&folder);
        // The folders above the default folder may be outside the allowed ones, and cannot be
        // listed then.
        let (start, rest) = match Path::new(path).strip_prefix(folder) {
            Ok(rest) => (folder, rest.to_str().unwrap_or(path)),
            Err(_) if path.starts_with('/') => (Path::new("/"), path),
            Err(_) => (folder, path),
        };
        let mut whole: PathBuf = start.components().collect();
        let mut ahead: Vec<&str> = rest.split('/').rev().collect();
        while let Some(name) = ahead.pop() {
            match name {
                "" | "." => continue,
                ".." => {
                    whole.pop();
                    continue;
                }
                name => whole.push(name),
            }
            let here = ResolvedPathPair::new(whole.clone(), whole.clone());
            self.limits.check_path(verb, Path::new(path), &here, PathOperation::Read)?;
            let stays = at_link == FinalLinkHandling::Stay && ahead.is_empty();
            if !stays && self.limits.has_patterns(does) && self.is_link(&whole, name).await? {
                let text = format!(
                    "cannot {} `{path}`: it leads through the link `{}`, and this environment \
                     cannot tell where that leads",
                    verb.as_verb(),
                    whole.display()
                );
                let error = Error::new(ErrorKind::PermissionDenied, text);
                return Err(error.with_hint("use the path that the link points to"));
            }
        }
        let whole = ResolvedPathPair::new(whole.clone(), whole);
        self.limits.check_path(verb, Path::new(path), &whole, does)?;
        Ok(whole)
    }

    /// Returns true if an entry of a folder is a link.
    async fn is_link(&self, path: &Path, name: &str) -> Result<bool> {
        let Some(folder) = path.parent() else { return Ok(false) };
        let mut skip = 0;
        loop {
            let folder = folder.to_string_lossy().into_owned();
            let list = FolderList { path: folder, skip, ..FolderList::default() };
            let listed = match self.files.list(self.host, list).await {
                Ok(listed) => listed,
                Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            };
            if let Some(entry) = listed.entries.iter().find(|entry| entry.name == name) {
                return Ok(entry.kind == FileKind::Link);
            }
            skip += listed.entries.len();
            if listed.entries.is_empty() || skip >= listed.count {
                return Ok(false);
            }
        }
    }

    /// Lists a folder without the entries that the limits exclude.
    pub(super) async fn list(&self, request: FolderList) -> Result<FolderEntries> {
        let path = if request.path.is_empty() { "." } else { &request.path };
        let folder = self
            .check_path(
                FileOperationVerb::List,
                path,
                PathOperation::Read,
                FinalLinkHandling::Refuse,
            )
            .await?;
        let all = self.list_entries(&request.path).await?;
        let count = all.len();
        let keeps = |entry: &FolderEntry| {
            self.limits
                .exclusion_reason(&folder.join_name(OsStr::new(&entry.name)), PathOperation::Read)
                .is_none()
        };
        let entries: Vec<_> = all.into_iter().filter(keeps).collect();
        let (count, denied) = (entries.len(), count - entries.len());
        let entries = entries.into_iter().skip(request.skip).take(LIST_ENTRIES_MAX).collect();
        Ok(FolderEntries { entries, count, denied, ..FolderEntries::default() })
    }

    async fn list_entries(&self, path: &str) -> Result<Vec<FolderEntry>> {
        let mut all = Vec::new();
        loop {
            let skip = all.len();
            let list = FolderList { path: path.to_owned(), skip, ..FolderList::default() };
            let listed = self.files.list(self.host, list).await?;
            let is_end = listed.entries.is_empty() || skip + listed.entries.len() >= listed.count;
            all.extend(listed.entries);
            if is_end {
                return Ok(all);
            }
        }
    }

    /// Checks a deletion.
    pub(super) async fn check_delete(&self, delete: &FileDelete) -> Result<()> {
        let path = self
            .check_path(
                FileOperationVerb::Delete,
                &delete.path,
                PathOperation::Write,
                FinalLinkHandling::Stay,
            )
            .await?;
        match delete.recursive {
            true => {
                self.check_entries_below(
                    FileOperationVerb::Delete,
                    &delete.path,
                    (path, PathOperation::Write),
                    None,
                )
                .await
            }
            false => Ok(()),
        }
    }

    /// Checks a move or a copy. A copy follows links.
    pub(super) async fn check_file_pair(
        &self,
        verb: FileOperationVerb,
        pair: &FilePair,
    ) -> Result<()> {
        let does = if verb == FileOperationVerb::Move {
            PathOperation::Write
        } else {
            PathOperation::Read
        };
        let from = self.check_path(verb, &pair.from, does, FinalLinkHandling::Refuse).await?;
        let to = self
            .check_path(verb, &pair.to, PathOperation::Write, FinalLinkHandling::Refuse)
            .await?;
        self.check_entries_below(verb, &pair.from, (from, does), Some(to)).await
    }

    /// Refuses a folder if the limits exclude an entry below it, at its current path or at the path
    /// it moves to.
    async fn check_entries_below(
        &self,
        verb: FileOperationVerb,
        path: &str,
        (from, does): (ResolvedPathPair, PathOperation),
        to: Option<ResolvedPathPair>,
    ) -> Result<()> {
        let is_free = !self.limits.may_exclude_below(&from, does)
            && to
                .as_ref()
                .is_none_or(|to| !self.limits.may_exclude_below(to, PathOperation::Write));
        let folder = match self.files.stat(self.host, file_path(path)).await {
            Ok(facts) => facts.kind == FileKind::Folder,
            Err(_) => false,
        };
        if is_free || !folder {
            return Ok(());
        }
        let (mut open, mut count) = (vec![(path.to_owned(), from, to, 1)], 0);
        while let Some((folder, from, to, depth)) = open.pop() {
            let entries = self.list_entries(&folder).await?;
            count += entries.len();
            if count > ENTRIES_MAX || depth > DEPTH_MAX {
                let text = format!(
                    "cannot {} `{path}`: the folder has too many entries to check against the rules",
                    verb.as_verb()
                );
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            for entry in entries {
                let name = OsStr::new(&entry.name);
                let (from, to) = (from.join_name(name), to.as_ref().map(|to| to.join_name(name)));
                self.limits.check_path(verb, Path::new(path), &from, does)?;
                if let Some(to) = &to {
                    self.limits.check_path(verb, Path::new(path), to, PathOperation::Write)?;
                }
                let below = join_path(&folder, &entry.name);
                match entry.kind {
                    FileKind::Folder => open.push((below, from, to, depth + 1)),
                    FileKind::Link if verb != FileOperationVerb::Delete => {
                        self.check_path(
                            verb,
                            &below,
                            PathOperation::Read,
                            FinalLinkHandling::Refuse,
                        )
                        .await?;
                    }
                    FileKind::File | FileKind::Link | FileKind::Other => {}
                }
            }
        }
        Ok(())
    }

    /// Finds files by a pattern.
    pub(super) async fn find(&self, find: FileFind) -> Result<PageStream<F, FoundPage>> {
        let limits = self.tree_limits(&engine::search_folder(&find)?).await?;
        exchange::find(self.files, self.host, find, Some(limits)).await
    }

    /// Searches the content of files.
    pub(super) async fn search(&self, search: FileSearch) -> Result<PageStream<F, SearchedPage>> {
        let limits = self.tree_limits(&search.path).await?;
        exchange::search(self.files, self.host, search, Some(limits)).await
    }

    /// Walks a tree.
    pub(super) async fn walk(&self, walk: FileWalk) -> Result<PageStream<F, WalkedPage>> {
        let limits = self.tree_limits(&walk.path).await?;
        exchange::walk(self.files, self.host, walk, Some(limits)).await
    }

    async fn tree_limits(&self, path: &str) -> Result<TreeCallLimits> {
        let path = if path.is_empty() { "." } else { path };
        let top = self
            .check_path(
                FileOperationVerb::Search,
                path,
                PathOperation::Read,
                FinalLinkHandling::Refuse,
            )
            .await?;
        Ok(TreeCallLimits::new(self.limits, top))
    }
}

#[cfg(test)]
mod tests;
