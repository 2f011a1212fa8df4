//! Decides whether a shell pattern may match a path that a rule names.
//!
//! Broad: the file system is not asked, so any possible name counts.

use std::path::{Component, Path, PathBuf};

use crate::Glob;
use crate::facts::without_dots;

/// Removes `.` and `..` from a path up to its first pattern.
pub(crate) fn without_dots_before(path: &Path) -> PathBuf {
    let is_plain = |part: &Component<'_>| !is_shell_pattern(&part.as_os_str().to_string_lossy());
    let plain: PathBuf = path.components().take_while(is_plain).collect();
    let rest: PathBuf = path.components().skip_while(is_plain).collect();
    without_dots(&plain).join(rest)
}

/// Returns true if a name that a pattern matches may be at, below or above a rule's path.
pub(crate) fn may_reach_path(pattern: &Path, wanted: &Path) -> bool {
    if may_lead_anywhere(pattern) {
        return true;
    }
    let mut wanted = wanted.components();
    pattern.components().all(|part| {
        let Some(other) = wanted.next() else { return true };
        let part = part.as_os_str().to_string_lossy();
        let other = other.as_os_str().to_string_lossy();
        match (is_shell_pattern(&part), is_rule_pattern(&other)) {
            (false, false) => part == other,
            (false, true) => Glob::new(other.as_ref()).matches(&part),
            (true, false) => widened_glob(&part).matches(&other),
            (true, true) => true,
        }
    })
}

/// Returns true if a pattern may lead to any folder.
fn may_lead_anywhere(pattern: &Path) -> bool {
    let mut parts = pattern.components().map(|part| part.as_os_str().to_string_lossy());
    parts.any(|part| is_shell_pattern(&part) && part.contains("**")) || may_leave_folder(pattern)
}

/// Returns true if a pattern may lead out of the folders that it names. A name that `*` matches may
/// be a link, so `*/..` can be any folder, and in many shells `.*` matches `..`.
pub(crate) fn may_leave_folder(pattern: &Path) -> bool {
    let is_plain = |part: &Component<'_>| !is_shell_pattern(&part.as_os_str().to_string_lossy());
    pattern.components().skip_while(is_plain).any(|part| {
        let text = part.as_os_str().to_string_lossy();
        part == Component::ParentDir
            || is_shell_pattern(&text) && text.starts_with('.') && widened_glob(&text).matches("..")
    })
}

/// Returns true if a path may be one that a shell pattern of whole parts matches.
pub(crate) fn may_match_path(pattern: &Path, path: &Path) -> bool {
    let (mut patterns, mut parts) = (pattern.components(), path.components());
    loop {
        match (patterns.next(), parts.next()) {
            (None, None) => return true,
            (Some(pattern), Some(part)) if pattern == part => {}
            (Some(Component::Normal(pattern)), Some(Component::Normal(part)))
                if may_match_name(&pattern.to_string_lossy(), &part.to_string_lossy()) => {}
            _ => return false,
        }
    }
}

/// Returns true if a part of a path is a shell pattern.
pub fn is_shell_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '(', '{', '%'])
}

fn is_rule_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// Returns true if a shell pattern may match a name.
pub fn may_match_name(pattern: &str, name: &str) -> bool {
    widened_glob(pattern).matches(name)
}

/// Widens a shell pattern: brackets match any letters.
fn widened_glob(text: &str) -> Glob {
    let mut wide = String::new();
    let mut depth = 0_usize;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '[' | '(' | '{' => {
                depth += 1;
                wide.push('*');
            }
            ']' | ')' | '}' if depth > 0 => depth -= 1,
            // `%2e`, as programs that take URLs decode it.
            '%' => {
                wide.push('*');
                letters.nth(1);
            }
            _ if depth > 0 => {}
            '+' | '@' | '!' => wide.push('*'),
            other => wide.push(other),
        }
    }
    if depth > 0 {
        // An unclosed bracket is literal, or the shell continues to read.
        return Glob::new("*");
    }
    Glob::new(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_reach(pattern: &str, wanted: &str, is_reached: bool) {
        let reached = may_reach_path(Path::new(pattern), Path::new(wanted));
        assert_eq!(reached, is_reached, "{pattern} {wanted}");
    }

    #[test]
    fn shell_pattern_overlaps_every_path_that_it_may_match() {
        let wanted = "/home/ann/.ssh";
        for pattern in [
            "/home/ann/.s*h/id",
            "/home/ann/.ss?/id",
            "/home/ann/.*/id",
            "/home/ann/.[r-t]sh/id",
            "/home/ann/.@(ssh|x)/id",
            "/home/*/.ssh",
            "/*/ann",
            "/h*",
            "/home/ann/**/id",
            "/srv/*/../x",
            "/home/ann/src/.?/.ssh",
            "/srv/.*",
            "/srv/.[.]/x",
            "/home/ann/.[s",
        ] {
            check_reach(pattern, wanted, true);
        }
        for pattern in ["/srv/*.rs", "/home/ann/*.rs", "/home/bob/.g*", "/home/ann/.s*t/id"] {
            check_reach(pattern, wanted, false);
        }
        check_reach("/srv/*.key", "/srv/*.pem", true);
        check_reach("/srv/a[12]/x.key", "/srv/*/*.key", true);
    }
}
