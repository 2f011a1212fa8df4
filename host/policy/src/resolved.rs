//! Where the paths of a call lead, as its execution environment resolved them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_types::files::{RESOLVE_PATHS_MAX, ResolvedPath};

use crate::facts::without_dots;

/// Where the paths of a call lead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathsResolved {
    /// By the paths that were asked for.
    known: BTreeMap<PathBuf, ResolvedPath>,
    extent: Extent,
}

/// How much is known of the paths of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Extent {
    /// Where each of them leads.
    #[default]
    All,
    /// Of some only how they are written. Rules by path can deny and ask by that, but not allow.
    AsWritten,
    /// There are more paths than anybody looks at: the call may touch anything.
    TooMany,
}

impl PathsResolved {
    /// Puts together what was asked for and what came of it.
    pub fn new(asked: Vec<PathBuf>, resolved: Vec<Option<ResolvedPath>>) -> Self {
        if asked.len() > RESOLVE_PATHS_MAX {
            return Self { extent: Extent::TooMany, ..Self::default() };
        }
        let count = asked.len();
        let pairs = asked.into_iter().zip(resolved);
        let known: BTreeMap<_, _> = pairs.filter_map(|(path, it)| Some((path, it?))).collect();
        let is_all = known.len() == count && known.values().all(|it| it.identity.is_some());
        Self { known, extent: if is_all { Extent::All } else { Extent::AsWritten } }
    }

    /// Returns where a path leads, if it was asked for.
    pub(crate) fn of(&self, path: &Path) -> Option<&ResolvedPath> {
        self.known.get(path)
    }

    /// Returns the places where paths lead that are not what is written; a link at the end of a
    /// path is a place, too.
    pub(crate) fn places(&self) -> impl Iterator<Item = PathBuf> {
        self.known.iter().flat_map(|(written, it)| {
            let written = without_dots(written);
            let places = [PathBuf::from(&it.path), PathBuf::from(&it.entry)];
            places.into_iter().filter(move |place| *place != written)
        })
    }

    /// Tells whether it is known of each path where it leads.
    pub(crate) fn is_whole(&self) -> bool {
        self.extent == Extent::All
    }

    /// Tells whether the call may touch anything, because it has too many paths.
    pub(crate) fn may_be_anything(&self) -> bool {
        self.extent == Extent::TooMany
    }

    /// Returns what the operations of the call are to expect.
    pub fn expected(&self) -> Vec<ResolvedPath> {
        self.known.values().cloned().collect()
    }

    /// Returns the paths that lead elsewhere by now.
    pub fn changed_places(&self, later: &Self) -> Vec<PathBuf> {
        self.changed(later, |one, other| (&one.path, &one.entry) == (&other.path, &other.entry))
    }

    /// Returns the paths that lead elsewhere by now, or to another file.
    pub fn changed_files(&self, later: &Self) -> Vec<PathBuf> {
        self.changed(later, |one, other| one == other)
    }

    fn changed(
        &self,
        later: &Self,
        is_same: impl Fn(&ResolvedPath, &ResolvedPath) -> bool,
    ) -> Vec<PathBuf> {
        let is_changed = |(path, it): &(&PathBuf, &ResolvedPath)| {
            later.known.get(*path).is_none_or(|later| !is_same(it, later))
        };
        self.known.iter().filter(is_changed).map(|(path, _)| path.clone()).collect()
    }
}
