//! Resolves the paths of a call, and computes the limits of its file operations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use jaato_policy::{
    CallPaths, PolicyCall, ResolvedCallPaths, RuleRef, file_limits, folder_of_pattern,
};
use jaato_types::files::{FileLimits, RESOLVE_PATHS_MAX, ResolvedPath};

use crate::SessionApproval;

impl SessionApproval<'_> {
    /// Asks the environment for the targets of a call's paths. Returns `None` if it does not know
    /// them.
    pub(crate) async fn resolve_call_paths(
        &self,
        call: &PolicyCall<'_>,
    ) -> Option<ResolvedCallPaths> {
        let paths = CallPaths::from_call(call, |pattern| self.gate.expand_pattern(pattern));
        if paths.all.is_empty() {
            return None;
        }
        // If there are too many, none are resolved.
        let resolved = match paths.all.len() <= RESOLVE_PATHS_MAX {
            true => self.gate.resolve_paths(&paths.all).await?,
            false => Vec::new(),
        };
        Some(paths.with_targets(resolved))
    }

    /// Returns the limits of a call's file operations. `allowed_by` is the rule that allows the
    /// call, or `None` if the user allowed it, or if nothing has yet.
    pub(crate) async fn file_limits(
        &self,
        call: &PolicyCall<'_>,
        allowed_by: Option<&RuleRef>,
    ) -> FileLimits {
        let mut limits = file_limits(&self.rules.lock(), call, allowed_by);
        self.add_link_targets(&mut limits).await;
        if let Some(resolved) = call.resolved {
            limits.expected = resolved.expected_targets();
        }
        limits
    }

    /// Adds the targets of patterns whose folders are links, because operations compare resolved
    /// paths.
    async fn add_link_targets(&self, limits: &mut FileLimits) {
        let all = || limits.denied.iter().chain(&limits.asked).map(|it| folder_of_pattern(it));
        let folders: BTreeSet<&str> = all().filter(|folder| !folder.is_empty()).collect();
        let folders: Vec<PathBuf> = folders.into_iter().map(PathBuf::from).collect();
        if folders.is_empty() {
            return;
        }
        let Some(resolved) = self.gate.resolve_paths(&folders).await else { return };
        let resolved: BTreeMap<PathBuf, Option<ResolvedPath>> =
            folders.into_iter().zip(resolved).collect();
        for patterns in [&mut limits.denied, &mut limits.asked] {
            let lead = |it: &String| {
                resolved_pattern(it, resolved.get(Path::new(folder_of_pattern(it)))?.as_ref()?)
            };
            let followed: Vec<String> = patterns.iter().filter_map(lead).collect();
            patterns.extend(followed);
        }
    }
}

fn resolved_pattern(pattern: &str, resolved: &ResolvedPath) -> Option<String> {
    let folder = folder_of_pattern(pattern);
    let rest = &pattern[folder.len()..];
    (resolved.path != folder).then(|| format!("{}{rest}", resolved.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_path_is_resolved_up_to_its_first_wildcard() {
        let to = |path: &str| ResolvedPath { path: path.to_owned(), ..ResolvedPath::default() };
        assert_eq!(resolved_pattern("/w/l/key", &to("/r/key")).as_deref(), Some("/r/key"));
        assert_eq!(resolved_pattern("/w/l/*.key", &to("/r")).as_deref(), Some("/r/*.key"));
        assert_eq!(resolved_pattern("/w/l/a*", &to("/w/l")), None);
        assert_eq!(folder_of_pattern("*/key"), "");
    }
}
