//! The first results of a pattern, in the requested order.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use jaato_types::files::{FileKind, FileOrder};

use super::folder::SearchedFileFacts;
use crate::platform::FileTimestamp;

/// Keeps the first files, up to a limit. A better file replaces the last one.
#[derive(Debug)]
pub(super) struct BestFiles {
    order: FileOrder,
    limit: usize,
    /// The last one is on top.
    first: BinaryHeap<RankedFile>,
    /// The number of all files that were found.
    pub(super) count: u64,
}

/// A file that was found. The least one comes first in the answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RankedFile {
    /// The modification time, newest first. Equal for all files if they are sorted by path.
    newest: Reverse<FileTimestamp>,
    pub(super) path: Box<[u8]>,
    pub(super) size: u64,
    pub(super) modified: FileTimestamp,
    pub(super) protected: bool,
    pub(super) is_folder: bool,
}

impl Ord for RankedFile {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.newest, &self.path).cmp(&(other.newest, &other.path))
    }
}

impl PartialOrd for RankedFile {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl BestFiles {
    pub(super) fn new(order: FileOrder, limit: usize) -> Self {
        Self { order, limit, first: BinaryHeap::new(), count: 0 }
    }

    /// Adds a file. Calls `facts` only if the order or the answer needs them.
    pub(super) fn add_file(&mut self, path: &[u8], facts: impl FnOnce() -> SearchedFileFacts) {
        self.count += 1;
        let is_full = self.first.len() >= self.limit;
        if self.order == FileOrder::Path
            && is_full
            && self.first.peek().is_none_or(|last| path >= &*last.path)
        {
            return;
        }
        let SearchedFileFacts { kind, size, modified, protected } = facts();
        let is_folder = kind == FileKind::Folder;
        let newest = Reverse(match self.order {
            FileOrder::Newest => modified,
            FileOrder::Path => FileTimestamp::default(),
        });
        let one = RankedFile { newest, path: path.into(), size, modified, protected, is_folder };
        if !is_full {
            self.first.push(one);
            return;
        }
        let Some(mut last) = self.first.peek_mut() else { return };
        if one < *last {
            *last = one;
        }
    }

    /// Returns the files in order.
    pub(super) fn take_ranked(&mut self) -> std::vec::IntoIter<RankedFile> {
        std::mem::take(&mut self.first).into_sorted_vec().into_iter()
    }
}
