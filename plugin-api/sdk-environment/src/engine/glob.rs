//! Path patterns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use jaato_types::{Error, ErrorKind, Result};

use super::limits::{DEPTH_MAX, PATH_BYTES_MAX};

/// A pattern, split into its literal folder and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SplitGlobPattern<'a> {
    /// The names before the first wildcard. Ends with `/` unless empty.
    pub(super) folder: &'a str,
    /// The rest, starting at the first name with a wildcard. Empty without wildcards.
    pub(super) rest: &'a str,
}

impl<'a> SplitGlobPattern<'a> {
    pub(super) fn new(pattern: &'a str) -> Result<Self> {
        if pattern.is_empty() {
            return Err(invalid_pattern_error("the pattern is empty", "for example `**/*.rs`"));
        }
        if pattern.len() > PATH_BYTES_MAX {
            return Err(invalid_pattern_error("the pattern is too long", "shorten it"));
        }
        let mut split = 0;
        for name in pattern.split_inclusive('/') {
            if name.contains(['*', '?', '[', ']', '{', '}', '\\']) {
                break;
            }
            split += name.len();
        }
        let (folder, rest) = pattern.split_at(split);
        if rest.split('/').any(|name| name == "..") {
            let text = format!("the pattern `{pattern}` has `..` after a wildcard");
            return Err(invalid_pattern_error(&text, "start with the folder: `../x/*.rs`"));
        }
        Ok(Self { folder, rest })
    }

    /// Returns the deepest level at which the pattern can match.
    pub(super) fn depth_max(&self) -> usize {
        let any_depth = self.rest.contains("**") || self.rest.contains(['{', '[', '\\']);
        if any_depth { DEPTH_MAX } else { self.rest.split('/').count() }
    }
}

/// Compiles a pattern. Only `rest` is matched, but errors name the whole pattern.
pub(super) fn compile_glob(pattern: &str, rest: &str) -> Result<GlobSet> {
    // A set with one glob is faster than a single glob, because it optimizes literal suffixes.
    compile_glob_set(&[(pattern, rest)])
}

/// Compiles patterns.
pub(super) fn compile_glob_set(patterns: &[(&str, &str)]) -> Result<GlobSet> {
    let failed = |pattern: &str, error: &globset::Error| {
        let text = format!("invalid pattern `{pattern}`: {}", error.kind());
        invalid_pattern_error(&text, "use `*`, `?`, `[a-z]`, `{a,b}` and `**`")
    };
    let mut set = GlobSetBuilder::new();
    let glob = |text: &str| GlobBuilder::new(text).literal_separator(true).build();
    for (pattern, rest) in patterns {
        let rest = rest.trim_end_matches('/');
        // A `\` shows that the author has already escaped literal characters.
        let may_be_literal = rest.contains(['[', '{']) && !rest.contains('\\');
        let as_written = may_be_literal.then(|| glob(&escape_brackets(rest)).ok()).flatten();
        match (glob(rest), &as_written) {
            (Ok(glob), _) => {
                set.add(glob);
            }
            (Err(error), Some(_)) if is_invalid_class(&error) => {}
            (Err(error), _) => return Err(failed(pattern, &error)),
        }
        if let Some(glob) = as_written {
            set.add(glob);
        }
    }
    let name = patterns.first().map_or("", |(pattern, _)| pattern);
    set.build().map_err(|error| failed(name, &error))
}

/// Returns true if the error is a bracket that starts no character class, as in `[user-id]`.
fn is_invalid_class(error: &globset::Error) -> bool {
    use globset::ErrorKind::{InvalidRange, UnclosedClass};
    matches!(error.kind(), InvalidRange(..) | UnclosedClass)
}

/// Escapes brackets and braces in a pattern, because callers pass names such as `[id]` and `{slug}`
/// unescaped.
fn escape_brackets(pattern: &str) -> String {
    let mut literal = String::with_capacity(pattern.len() + 16);
    for sign in pattern.chars() {
        match sign {
            '[' | ']' | '{' | '}' => literal.extend(['[', sign, ']']),
            sign => literal.push(sign),
        }
    }
    literal
}

pub(super) fn invalid_pattern_error(text: &str, hint: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, text).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_split_glob(pattern: &str, folder: &str, rest: &str, depth: usize) {
        let split = SplitGlobPattern::new(pattern).unwrap();
        assert_eq!(split, SplitGlobPattern { folder, rest });
        assert_eq!(split.depth_max(), depth);
    }

    #[test]
    fn pattern_is_split_into_its_base_folder_and_the_rest() {
        check_split_glob("*.rs", "", "*.rs", 1);
        check_split_glob("src/*/a?.rs", "src/", "*/a?.rs", 2);
        check_split_glob("/w/a/**/b", "/w/a/", "**/b", DEPTH_MAX);
        check_split_glob("../b/*.rs", "../b/", "*.rs", 1);
        check_split_glob("a/{b,c/d}/e", "a/", "{b,c/d}/e", DEPTH_MAX);
    }

    #[test]
    fn name_with_brackets_also_matches_literally() {
        let fits =
            |pattern: &str, path: &str| compile_glob(pattern, pattern).unwrap().is_match(path);
        assert!(fits("app/[id]/*.tsx", "app/[id]/page.tsx"));
        assert!(fits("app/[id]/*.tsx", "app/i/page.tsx"));
        assert!(fits("{x}/[...slug].ts", "{x}/[...slug].ts"));
        assert!(fits("*.{rs,toml}", "a.toml") && !fits("*.{rs,toml}", "a.toml.lock"));
        assert!(!fits("app/[id]/*.tsx", "app/x/page.tsx"));
        assert!(fits("app/[user-id]/*.tsx", "app/[user-id]/page.tsx"));
        assert!(!fits("app/[user-id]/*.tsx", "app/u/page.tsx"));
        assert!(fits("[draft*", "[draft 1") && !fits("[draft*", "d"));
        assert!(compile_glob("{a", "{a").is_err());
    }

    #[test]
    fn an_escaped_bracket_is_literal() {
        let fits =
            |pattern: &str, path: &str| compile_glob(pattern, pattern).unwrap().is_match(path);
        assert!(fits(r"*\[*", "a[b") && !fits(r"*\[*", "ab"));
        assert!(fits(r"notes \[draft*", "notes [draft 1]"));
        assert!(fits(r"\[id\]/[ab]", "[id]/a") && !fits(r"\[id\]/[ab]", "[id]/[ab]"));
        assert!(compile_glob(r"\[[a", r"\[[a").is_err());
    }

    #[test]
    fn pattern_with_parent_folder_after_a_wildcard_is_refused() {
        for pattern in ["*/../x", "a/**/../../x", "{a,..}/../x"] {
            assert_eq!(
                SplitGlobPattern::new(pattern).unwrap_err().kind,
                ErrorKind::InvalidArguments
            );
        }
    }
}
