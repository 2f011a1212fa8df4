//! Names and paths with `*` and `?`, as in rules. The work is bounded by the product of both
//! lengths.

use std::fmt;
use std::path::{Path, PathBuf};

/// A name in which `*` matches any characters and `?` a single one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Creates a pattern from the text that the user wrote.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the pattern matches a text.
    pub fn matches(&self, text: &str) -> bool {
        is_match(&self.0, text)
    }

    /// Returns the part before the first `*` or `?`. Each match begins with it.
    pub fn literal_prefix(&self) -> &str {
        let end = self.0.find(['*', '?']).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

/// Returns true if a pattern with `*` and `?` matches a text.
pub(crate) fn is_match(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    // The position of the last `*`, and the end of the text that it matched so far.
    let mut star: Option<(usize, usize)> = None;
    while let Some(&letter) = text.get(seen) {
        let step = match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, seen));
                at += 1;
                continue;
            }
            // `?` matches a whole character, even if it has several bytes.
            Some(b'?') if !is_inside_letter(letter) => {
                let behind = text[seen + 1..].iter();
                Some(1 + behind.take_while(|byte| is_inside_letter(**byte)).count())
            }
            Some(&wanted) if wanted == letter && wanted != b'?' => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(step), _) => {
                at += 1;
                seen += step;
            }
            (None, Some((place, taken))) => {
                star = Some((place, taken + 1));
                at = place + 1;
                seen = taken + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|&rest| rest == b'*')
}

/// Returns true if a byte of UTF-8 continues a character.
fn is_inside_letter(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// A whole path in which `*` matches any characters, including `/`, and `?` a single one. It
/// matches that path and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob {
    path: PathBuf,
    /// Set if the path contains `*` or `?`.
    glob: Option<Glob>,
}

impl PathGlob {
    /// Creates a pattern from a path in a rule.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let written = path.to_string_lossy();
        let glob = written.contains(['*', '?']).then(|| Glob::new(written.as_ref()));
        Self { glob, path }
    }

    /// Returns true if the pattern matches a path or a folder above it.
    pub fn is_path_match(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return path.starts_with(&self.path) };
        let whole = path.to_string_lossy();
        // A fast check that rules out most paths.
        whole.starts_with(glob.literal_prefix())
            && path.ancestors().any(|part| glob.matches(&part.to_string_lossy()))
    }

    /// Returns true if the pattern may match something below a folder.
    pub fn can_match_below(&self, folder: &Path) -> bool {
        let Some(glob) = &self.glob else { return self.path.starts_with(folder) };
        let folder = folder.to_string_lossy();
        folder.starts_with(glob.literal_prefix())
            || glob.literal_prefix().starts_with(folder.as_ref())
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_glob(pattern: &str, yes: &[&str], no: &[&str]) {
        let glob = Glob::new(pattern);
        yes.iter().for_each(|text| assert!(glob.matches(text), "{pattern} {text}"));
        no.iter().for_each(|text| assert!(!glob.matches(text), "{pattern} {text}"));
    }

    #[test]
    fn stars_and_question_marks_stand_for_characters() {
        check_glob("", &[""], &["a"]);
        check_glob("*", &["", "a", "a b\n"], &[]);
        check_glob("a?c", &["abc", "aäc"], &["ac", "abbc"]);
        check_glob("*.rs", &["a.rs", ".rs", "a/b.rs"], &["a.rsx", "rs"]);
        check_glob("a*b*c", &["abc", "axbxc", "abbcc", "abcbc"], &["ab", "acb", "abcd"]);
        check_glob("exact", &["exact"], &["Exact", "exact ", "exac"]);
    }

    #[test]
    fn path_glob_covers_the_path_and_everything_below_it() {
        let covers = |glob: &str, path: &str| PathGlob::new(glob).is_path_match(Path::new(path));
        assert!(covers("/w/secret", "/w/secret") && covers("/w/secret", "/w/secret/a/b"));
        assert!(!covers("/w/secret", "/w/secrets") && !covers("/w/secret", "/w"));
        assert!(covers("*/.env*", "/w/a/.env.local") && covers("/w/*/key", "/w/a/b/key/c"));
        assert!(!covers("*/.env*", "/w/env") && !covers("/w/?", "/w/ab"));
        let may = |glob: &str, path: &str| PathGlob::new(glob).can_match_below(Path::new(path));
        assert!(may("/w/a/secret", "/w/a") && may("/w/a*", "/w") && may("*/.env", "/w"));
        assert!(!may("/w/a/secret", "/w/b") && !may("/w/a*", "/x"));
    }

    #[test]
    fn many_stars_do_not_take_forever() {
        let glob = Glob::new("*a".repeat(200) + "b");
        assert!(!glob.matches(&"a".repeat(4096)));
    }
}
