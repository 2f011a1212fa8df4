//! Where the paths of a call lead, and what its file operations keep off because of that.

use std::path::PathBuf;

use jaato_policy::{Call, CallPaths, PathsResolved, RuleRef, file_limits};
use jaato_types::files::{FileLimits, ResolvedPath};

use crate::Approval;

impl Approval<'_> {
    /// Asks the environment where the paths of a call lead; nothing if there is no environment that
    /// could tell.
    pub(crate) async fn resolve(&self, call: &Call<'_>) -> Option<PathsResolved> {
        let paths = CallPaths::of(call, |pattern| self.gate.expand(pattern));
        if paths.all.is_empty() {
            return None;
        }
        let resolved = self.gate.resolve(&paths.all).await?;
        Some(paths.resolved(resolved))
    }

    /// Returns what the file operations of a call keep off. `allowed_by` is the rule that allows
    /// it; none if the user did, or nobody yet.
    pub(crate) async fn file_limits(
        &self,
        call: &Call<'_>,
        allowed_by: Option<&RuleRef>,
    ) -> FileLimits {
        let mut limits = file_limits(&self.rules.lock(), call, allowed_by);
        self.follow_links(&mut limits.denied).await;
        self.follow_links(&mut limits.asked).await;
        if let Some(resolved) = call.resolved {
            limits.expected = resolved.expected();
        }
        limits
    }

    /// Adds where patterns lead whose folders are links: operations compare what links lead to.
    async fn follow_links(&self, patterns: &mut Vec<String>) {
        if patterns.is_empty() {
            return;
        }
        let folders: Vec<PathBuf> = patterns.iter().map(|it| folder_of(it).into()).collect();
        let Some(resolved) = self.gate.resolve(&folders).await else { return };
        let pairs = patterns.iter().zip(resolved);
        let followed: Vec<String> = pairs.filter_map(|(it, to)| followed(it, to?)).collect();
        patterns.extend(followed);
    }
}

/// The names of a pattern before the first that stands for several.
fn folder_of(pattern: &str) -> &str {
    match pattern.find(['*', '?']) {
        Some(end) => &pattern[..pattern[..end].rfind('/').unwrap_or(0)],
        None => pattern,
    }
}

fn followed(pattern: &str, resolved: ResolvedPath) -> Option<String> {
    let folder = folder_of(pattern);
    let rest = &pattern[folder.len()..];
    (resolved.path != folder && !folder.is_empty()).then(|| format!("{}{rest}", resolved.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_followed_up_to_its_first_sign_for_several_names() {
        let to = |path: &str| ResolvedPath { path: path.to_owned(), ..ResolvedPath::default() };
        assert_eq!(followed("/w/l/key", to("/r/key")).as_deref(), Some("/r/key"));
        assert_eq!(followed("/w/l/*.key", to("/r")).as_deref(), Some("/r/*.key"));
        assert_eq!(followed("/w/l/a*", to("/w/l")), None);
        assert_eq!(followed("*/key", to("/w")), None);
    }
}
