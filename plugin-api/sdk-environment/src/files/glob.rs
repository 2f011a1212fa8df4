//! Finding files by a pattern.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use jaato_types::files::{
    FileGlob, FileOrder, FilePath, FilesFound, GLOB_BYTES_MAX, GLOB_PATHS_MAX,
};
use jaato_types::{Error, ErrorKind, Result};

use super::folder::Sorted;
use super::walk::Looks;
use super::{Confined, DEPTH_MAX, PATH_BYTES_MAX};

/// A pattern, in the folder that it names and the rest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pattern<'a> {
    /// Names before the first sign that stands for others; with `/` at its end unless empty.
    pub(crate) folder: &'a str,
    /// From the first name with such a sign on; empty where there is none.
    pub(crate) rest: &'a str,
}

impl Confined {
    /// Finds files and folders by a pattern.
    pub fn glob(&self, request: &FileGlob) -> Result<FilesFound> {
        let pattern = Pattern::new(&request.pattern)?;
        let base = if pattern.folder.starts_with('/') || request.path.is_empty() {
            pattern.folder.to_owned()
        } else {
            format!("{}/{}", request.path, pattern.folder)
        };
        if pattern.rest.is_empty() {
            return self.exactly(&base, pattern.folder);
        }
        let set = compiled(&request.pattern, pattern.rest)?;
        let asked = self.roots.asked_folder(&base)?;
        let looks = Looks {
            include_ignored: request.include_ignored,
            include_hidden: request.include_ignored,
            leave_out: None,
            sorted: Sorted::No,
            depth_max: pattern.depth_max(),
        };
        let mut tree = self.tree(&asked, looks)?;
        let limit = request.limit.unwrap_or(GLOB_PATHS_MAX).min(GLOB_PATHS_MAX);
        let mut found = Found { first: BinaryHeap::new(), limit, count: 0 };
        while tree.next().is_some() {
            let path = tree.path();
            let candidate = Candidate::new(Path::new(OsStr::from_bytes(path)));
            if set.is_match_candidate(&candidate) {
                let newest = match request.order {
                    // What is gone meanwhile was there when it was found.
                    FileOrder::Newest => {
                        Reverse(tree.facts().map(|facts| facts.modified).unwrap_or_default())
                    }
                    FileOrder::Path => Reverse((0, 0)),
                };
                found.add(newest, path);
            }
        }
        let (paths, count) = found.told(pattern.folder);
        Ok(FilesFound { paths, count, unreadable: tree.unreadable, ..FilesFound::default() })
    }

    /// A pattern that stands for itself alone.
    fn exactly(&self, path: &str, told: &str) -> Result<FilesFound> {
        let is_there =
            self.exists(&FilePath { path: path.to_owned(), ..FilePath::default() })?.kind.is_some();
        let told = if told.len() > 1 { told.trim_end_matches('/') } else { told };
        let paths: Vec<String> = is_there.then(|| told.to_owned()).into_iter().collect();
        Ok(FilesFound {
            count: paths.len(),
            paths,
            unreadable: Vec::new(),
            ..FilesFound::default()
        })
    }
}

/// When something was changed, the newest first.
type Newest = Reverse<(i64, i64)>;

/// The first of what was found, in order.
struct Found {
    /// The last of them on top, which goes when a better one comes.
    first: BinaryHeap<One>,
    limit: usize,
    count: usize,
}

#[derive(PartialEq, Eq)]
struct One {
    newest: Newest,
    path: Box<[u8]>,
}

impl Ord for One {
    fn cmp(&self, other: &Self) -> Ordering {
        self.newest.cmp(&other.newest).then_with(|| self.path.cmp(&other.path))
    }
}

impl PartialOrd for One {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Found {
    fn add(&mut self, newest: Newest, path: &[u8]) {
        self.count += 1;
        if self.first.len() < self.limit {
            self.first.push(One { newest, path: path.into() });
        } else if let Some(mut last) = self.first.peek_mut()
            && (newest, path) < (last.newest, &last.path)
        {
            *last = One { newest, path: path.into() };
        }
    }

    fn told(self, folder: &str) -> (Vec<String>, usize) {
        let (mut paths, mut bytes) = (Vec::with_capacity(self.first.len()), 0);
        for one in self.first.into_sorted_vec() {
            if bytes >= GLOB_BYTES_MAX {
                break;
            }
            let path = format!("{folder}{}", String::from_utf8_lossy(&one.path));
            bytes += path.len();
            paths.push(path);
        }
        (paths, self.count)
    }
}

impl<'a> Pattern<'a> {
    pub(crate) fn new(pattern: &'a str) -> Result<Self> {
        if pattern.is_empty() {
            return Err(wrong("the pattern is empty", "for instance `**/*.rs`"));
        }
        if pattern.len() > PATH_BYTES_MAX {
            return Err(wrong("the pattern is too long", "shorten it"));
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
            let text = format!("the pattern `{pattern}` has `..` behind a sign for other names");
            return Err(wrong(&text, "begin with the folder: `../x/*.rs`"));
        }
        Ok(Self { folder, rest })
    }

    /// Folders deep that it can match.
    pub(crate) fn depth_max(&self) -> usize {
        let any_depth = self.rest.contains("**") || self.rest.contains(['{', '[', '\\']);
        if any_depth { DEPTH_MAX } else { self.rest.split('/').count() }
    }
}

/// Compiles a pattern, of which only the rest is held against paths.
pub(crate) fn compiled(pattern: &str, rest: &str) -> Result<GlobSet> {
    // A set of one is faster than one: it knows which patterns are plain endings.
    compiled_set(&[(pattern, rest)])
}

/// Compiles patterns.
pub(crate) fn compiled_set(patterns: &[(&str, &str)]) -> Result<GlobSet> {
    let failed = |pattern: &str, error: &globset::Error| {
        let text = format!("`{pattern}` is no pattern: {}", error.kind());
        wrong(&text, "there are `*`, `?`, `[a-z]`, `{a,b}` and `**`")
    };
    let mut set = GlobSetBuilder::new();
    for (pattern, rest) in patterns {
        let glob = GlobBuilder::new(rest.trim_end_matches('/')).literal_separator(true).build();
        set.add(glob.map_err(|error| failed(pattern, &error))?);
    }
    let name = patterns.first().map_or("", |(pattern, _)| pattern);
    set.build().map_err(|error| failed(name, &error))
}

pub(crate) fn wrong(text: &str, hint: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, text).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, folder: &str, rest: &str, depth: usize) {
        let split = Pattern::new(pattern).unwrap();
        assert_eq!(split, Pattern { folder, rest });
        assert_eq!(split.depth_max(), depth);
    }

    #[test]
    fn a_pattern_begins_in_the_folder_that_it_names() {
        check("*.rs", "", "*.rs", 1);
        check("src/*/a?.rs", "src/", "*/a?.rs", 2);
        check("/w/a/**/b", "/w/a/", "**/b", DEPTH_MAX);
        check("../b/*.rs", "../b/", "*.rs", 1);
        check("a/{b,c/d}/e", "a/", "{b,c/d}/e", DEPTH_MAX);
    }

    #[test]
    fn a_pattern_that_goes_up_behind_a_sign_is_refused() {
        for pattern in ["*/../x", "a/**/../../x", "{a,..}/../x"] {
            assert_eq!(Pattern::new(pattern).unwrap_err().kind, ErrorKind::InvalidArguments);
        }
    }
}
