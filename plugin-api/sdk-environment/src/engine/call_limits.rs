//! The limits on the operations of one call.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jaato_types::files::{FileLimits, ResolvedPath};
use jaato_types::protected::ProtectedFiles;
use jaato_types::{Error, ErrorKind, PathGlob, Result};

use crate::errors::FileOperationVerb;

/// The limits of one call, compiled for many paths.
#[derive(Debug)]
pub struct CallLimits {
    denied: Vec<PathGlob>,
    asked: Vec<PathGlob>,
    protected: Option<ProtectedFiles>,
    expected: Vec<ResolvedPath>,
    /// The index in `expected_path` for each form in which an operation may name a path.
    named: HashMap<PathBuf, usize>,
}

/// The effect of an operation on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathOperation {
    Read,
    Write,
}

/// The reason why an operation must not touch a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathRefusalReason {
    /// A rule denies it.
    Denied,
    /// The user must be asked first.
    Asked,
}

/// A path without links, as the environment shows it and as this machine names it.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedPathPair {
    shown: PathBuf,
    /// The path on this machine, if it differs.
    host: Option<PathBuf>,
}

/// The limits of a call inside a tree, for paths relative to the tree's top.
#[derive(Debug, Clone)]
pub(crate) struct TreeCallLimits {
    limits: Arc<CallLimits>,
    top: ResolvedPathPair,
    may_leave_out: bool,
}

impl CallLimits {
    /// Compiles the limits. Returns `None` if they restrict nothing.
    pub fn new(limits: FileLimits) -> Option<Arc<Self>> {
        if limits.is_empty() {
            return None;
        }
        let globs = |written: Vec<String>| written.into_iter().map(PathGlob::new).collect();
        let mut named = HashMap::new();
        for (at, path) in limits.expected.iter().enumerate() {
            for name in [&path.asked, &path.entry, &path.path] {
                named.entry(PathBuf::from(name)).or_insert(at);
            }
        }
        Some(Arc::new(Self {
            denied: globs(limits.denied),
            asked: globs(limits.asked),
            protected: limits.protected,
            expected: limits.expected,
            named,
        }))
    }

    /// Returns the reason if the limits exclude a path from an operation.
    pub(crate) fn exclusion_reason(
        &self,
        path: &ResolvedPathPair,
        does: PathOperation,
    ) -> Option<PathRefusalReason> {
        let has = |globs: &[PathGlob]| {
            globs.iter().any(|glob| path.both_paths().any(|path| glob.is_path_match(path)))
        };
        if has(&self.denied) {
            return Some(PathRefusalReason::Denied);
        }
        // Another name of the same path may be outside the folder that edits may change.
        let protects = |it: &ProtectedFiles| path.both_paths().all(|path| it.is_protected(path));
        let is_protected =
            does == PathOperation::Write && self.protected.as_ref().is_some_and(protects);
        (is_protected || has(&self.asked)).then_some(PathRefusalReason::Asked)
    }

    /// Returns an error if the limits exclude a path.
    pub(crate) fn check_path(
        &self,
        verb: FileOperationVerb,
        shown: &Path,
        path: &ResolvedPathPair,
        does: PathOperation,
    ) -> Result<()> {
        self.exclusion_reason(path, does).map_or(Ok(()), |why| Err(why.refusal_error(verb, shown)))
    }

    /// Returns true if the limits may exclude something below a folder.
    pub(crate) fn may_exclude_below(&self, folder: &ResolvedPathPair, does: PathOperation) -> bool {
        let mut globs = self.denied.iter().chain(&self.asked);
        (does == PathOperation::Write && self.protected.is_some())
            || globs.any(|glob| folder.both_paths().any(|folder| glob.can_match_below(folder)))
    }

    /// Returns true if the limits exclude paths by pattern.
    pub(crate) fn has_patterns(&self, does: PathOperation) -> bool {
        let has_rules = !self.denied.is_empty() || !self.asked.is_empty();
        has_rules || (does == PathOperation::Write && self.protected.is_some())
    }

    /// Returns where a path led when the call was checked.
    pub(crate) fn expected_path(&self, asked: &Path) -> Option<&ResolvedPath> {
        self.named.get(asked).map(|&at| &self.expected[at])
    }
}

impl PathRefusalReason {
    fn refusal_error(self, verb: FileOperationVerb, shown: &Path) -> Error {
        let cannot = format!("cannot {} `{}`", verb.as_verb(), shown.display());
        match self {
            Self::Denied => {
                let text = format!("{cannot}: a rule denies this path");
                Error::new(ErrorKind::PermissionDenied, text)
                    .with_hint("the user's permission rules say so; continue without this file")
            }
            Self::Asked => {
                let text = format!("{cannot}: the user must be asked about this path first");
                Error::new(ErrorKind::PermissionDenied, text)
                    .with_hint("use a separate call for this file, so that jaato can ask the user")
            }
        }
    }
}

impl ResolvedPathPair {
    pub(crate) fn new(shown: PathBuf, host: PathBuf) -> Self {
        Self { host: (host != shown).then_some(host), shown }
    }

    pub(crate) fn both_paths(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&*self.shown).chain(self.host.as_deref())
    }

    pub(crate) fn join_name(&self, name: &OsStr) -> Self {
        let host = self.host.as_ref().map(|host| host.join(name));
        Self { shown: self.shown.join(name), host }
    }
}

impl TreeCallLimits {
    /// Creates the limits of a tree whose top may be read.
    pub(crate) fn new(limits: &Arc<CallLimits>, top: ResolvedPathPair) -> Self {
        let may_leave_out = limits.may_exclude_below(&top, PathOperation::Read);
        Self { limits: Arc::clone(limits), top, may_leave_out }
    }

    /// Returns true if reading the tree must skip an entry.
    pub(crate) fn skips_entry(&self, path: &[u8]) -> bool {
        self.may_leave_out && self.exclusion_reason(path, PathOperation::Read).is_some()
    }

    /// Returns true if the user must be asked before an entry is changed.
    pub(crate) fn is_protected(&self, path: &[u8]) -> bool {
        self.exclusion_reason(path, PathOperation::Write).is_some()
    }

    /// Returns true if the user must be asked before the top itself is changed.
    pub(crate) fn is_top_protected(&self) -> bool {
        self.limits.exclusion_reason(&self.top, PathOperation::Write).is_some()
    }

    fn exclusion_reason(&self, path: &[u8], does: PathOperation) -> Option<PathRefusalReason> {
        self.limits.exclusion_reason(&self.top.join_name(OsStr::from_bytes(path)), does)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved_pair(path: &str) -> ResolvedPathPair {
        ResolvedPathPair::new(path.into(), path.into())
    }

    #[test]
    fn call_limits_refuse_denied_asked_and_protected_paths() {
        let limits = FileLimits {
            denied: vec!["/w/secret".into()],
            asked: vec!["/w/asked/*.txt".into()],
            protected: Some(ProtectedFiles { directory: "/".into(), ..ProtectedFiles::default() }),
            ..FileLimits::default()
        };
        let limits = CallLimits::new(limits).unwrap();
        let kept = |path: &str, does| limits.exclusion_reason(&resolved_pair(path), does);
        assert_eq!(kept("/w/secret/a", PathOperation::Read), Some(PathRefusalReason::Denied));
        assert_eq!(kept("/w/asked/a.txt", PathOperation::Read), Some(PathRefusalReason::Asked));
        assert_eq!(kept("/w/.env", PathOperation::Read), None);
        assert_eq!(kept("/w/.env", PathOperation::Write), Some(PathRefusalReason::Asked));
        assert_eq!(kept("/w/plain", PathOperation::Write), None);
        let mapped = ResolvedPathPair::new("/workspace/secret".into(), "/w/secret".into());
        assert_eq!(
            limits.exclusion_reason(&mapped, PathOperation::Read),
            Some(PathRefusalReason::Denied)
        );
        assert!(limits.may_exclude_below(&resolved_pair("/w"), PathOperation::Read));
        assert!(!limits.may_exclude_below(&resolved_pair("/v"), PathOperation::Read));
        assert!(limits.may_exclude_below(&resolved_pair("/v"), PathOperation::Write));
        let protected = Some(ProtectedFiles::default());
        let limits = CallLimits::new(FileLimits { protected, ..FileLimits::default() }).unwrap();
        assert!(
            !limits.has_patterns(PathOperation::Read) && limits.has_patterns(PathOperation::Write)
        );
    }

    #[test]
    fn empty_limits_are_treated_as_no_limits() {
        assert!(CallLimits::new(FileLimits::default()).is_none());
    }
}
