//! The targets of a call's paths, as its execution environment resolved them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jaato_types::files::{RESOLVE_PATHS_MAX, ResolvedPath};

use crate::facts::without_dots;
use crate::{PolicyCall, expansion};

/// The targets of a call's paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolvedCallPaths {
    /// The targets by the paths that were asked for.
    known: BTreeMap<PathBuf, ResolvedPath>,
    extent: PathKnowledge,
    /// Whether they include the names that the patterns of a command line match.
    has_patterns: bool,
}

/// The paths that a call names, for its environment to resolve.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallPaths {
    /// The paths, and the names that patterns of a command line match.
    pub all: Vec<PathBuf>,
    has_patterns: bool,
}

impl CallPaths {
    /// Collects the paths. `expand` returns the names that a pattern may match, if it can.
    pub fn from_call(
        call: &PolicyCall<'_>,
        expand: impl Fn(&Path) -> Option<Vec<PathBuf>>,
    ) -> Self {
        let mut all = call.named_paths();
        let expanded: Option<Vec<Vec<PathBuf>>> =
            call.path_patterns().iter().map(|pattern| expand(pattern)).collect();
        let has_patterns = expanded.is_some();
        all.extend(expanded.into_iter().flatten().flatten());
        all.sort();
        all.dedup();
        Self { all, has_patterns }
    }

    /// Combines them with their targets.
    pub fn with_targets(self, resolved: Vec<Option<ResolvedPath>>) -> ResolvedCallPaths {
        ResolvedCallPaths {
            has_patterns: self.has_patterns,
            ..ResolvedCallPaths::new(self.all, resolved)
        }
    }
}

/// How much is known about the paths of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PathKnowledge {
    /// The target of each path.
    #[default]
    All,
    /// Some paths only as written. Rules by path can then deny and ask, but not allow.
    AsWritten,
    /// There are too many paths to check, so the call may touch anything.
    TooMany,
}

impl ResolvedCallPaths {
    /// Combines the paths with their results.
    pub fn new(asked: Vec<PathBuf>, resolved: Vec<Option<ResolvedPath>>) -> Self {
        if asked.len() > RESOLVE_PATHS_MAX {
            return Self { extent: PathKnowledge::TooMany, ..Self::default() };
        }
        let count = asked.len();
        let pairs = asked.into_iter().zip(resolved);
        let known: BTreeMap<_, _> = pairs.filter_map(|(path, it)| Some((path, it?))).collect();
        let is_all = known.len() == count && known.values().all(|it| it.identity.is_some());
        let extent = if is_all { PathKnowledge::All } else { PathKnowledge::AsWritten };
        Self { known, extent, has_patterns: false }
    }

    /// Returns the target of a path, if it was asked for.
    pub(crate) fn target_of(&self, path: &Path) -> Option<&ResolvedPath> {
        self.known.get(path)
    }

    /// Returns the targets of the names that a pattern of the command line may match.
    pub(crate) fn targets_matching<'a>(
        &'a self,
        pattern: &'a Path,
    ) -> impl Iterator<Item = &'a ResolvedPath> + 'a {
        let known = self.known.iter().filter(|(name, _)| expansion::may_match_path(pattern, name));
        known.map(|(_, it)| it)
    }

    /// Returns the targets that differ from the written paths. A link at the end of a path also
    /// counts as a target.
    pub(crate) fn differing_targets(&self) -> impl Iterator<Item = PathBuf> {
        self.known.iter().flat_map(|(written, it)| {
            let written = without_dots(written);
            let places = [PathBuf::from(&it.path), PathBuf::from(&it.entry)];
            places.into_iter().filter(move |place| *place != written)
        })
    }

    /// Returns true if the environment resolved every path.
    pub(crate) fn is_complete(&self) -> bool {
        self.extent == PathKnowledge::All
    }

    /// Returns true if the names that patterns of a command line match were resolved.
    pub(crate) fn has_known_patterns(&self) -> bool {
        self.has_patterns && self.extent != PathKnowledge::TooMany
    }

    /// Returns true if the call may touch anything, because it has too many paths.
    pub(crate) fn may_touch_anything(&self) -> bool {
        self.extent == PathKnowledge::TooMany
    }

    /// Returns the targets that the call's operations must find.
    pub fn expected_targets(&self) -> Vec<ResolvedPath> {
        self.known.values().cloned().collect()
    }

    /// Returns the paths whose target has changed.
    pub fn changed_targets(&self, later: &Self) -> Vec<PathBuf> {
        self.changed_paths(later, |one, other| {
            (&one.path, &one.entry) == (&other.path, &other.entry)
        })
    }

    /// Returns the paths whose target, or the file there, has changed.
    pub fn changed_files(&self, later: &Self) -> Vec<PathBuf> {
        self.changed_paths(later, |one, other| one == other)
    }

    fn changed_paths(
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
