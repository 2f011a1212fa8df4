//! Applies ignore rules during a walk: `.gitignore`, `.git/info/exclude` and `.ignore`.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use jaato_types::{Error, ErrorKind, Result};

use super::folder::{FolderNames, SearchableFolder};

/// The maximum number of bytes that are read from a file with rules.
const IGNORE_BYTES_MAX: u64 = 1024 * 1024;

/// The rules of the folders on the way to the current one, innermost last.
#[derive(Debug, Default)]
pub(crate) struct IgnoreStack {
    /// The rules from `.ignore`, which override all others.
    own: Vec<FolderIgnoreRules>,
    /// The rules from `.gitignore`.
    git: Vec<FolderIgnoreRules>,
    /// The rules from `.git/info/exclude`, which apply if nothing else matches.
    exclude: Vec<FolderIgnoreRules>,
    /// The depths of the repositories' roots. Git rules from above do not apply inside a
    /// repository.
    repositories: Vec<usize>,
    /// The number of folders that were entered and not left.
    depth: usize,
}

#[derive(Debug)]
struct FolderIgnoreRules {
    /// The depth of the folder with the rules.
    depth: usize,
    /// The offset in a path at which the part below that folder starts.
    start: usize,
    rules: Gitignore,
}

/// The verdict of the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreVerdict {
    Nothing,
    LeaveOut,
    /// Included, even if it is hidden.
    Keep,
}

impl IgnoreStack {
    /// Enters a folder. `names` are the names in it, if known. `start` is the length of its path
    /// with the final `/`. Returns the files whose rules are too large to apply.
    #[must_use]
    pub(crate) fn enter_folder<F: SearchableFolder>(
        &mut self,
        folder: &F,
        names: Option<&FolderNames>,
        start: usize,
    ) -> Vec<&'static str> {
        self.depth += 1;
        let (depth, mut too_large) = (self.depth, Vec::new());
        let mut push = |all: &mut Vec<FolderIgnoreRules>, folder: &F, path: &'static str| {
            let name = path.rsplit('/').next().unwrap_or(path);
            match read_ignore_file(folder, name) {
                Some(Ok(rules)) if rules.is_empty() => {}
                Some(Ok(rules)) => all.push(FolderIgnoreRules { depth, start, rules }),
                Some(Err(_)) => too_large.push(path),
                None => {}
            }
        };
        let may_have = |name: &str| names.is_none_or(|names| names.contains_name(name));
        if may_have(".git") && (names.is_some() || folder.entry_facts(".git".as_ref()).is_ok()) {
            self.repositories.push(self.depth);
            let inside =
                |folder: F, name: &str| folder.open_subfolder(name.as_ref()).ok().flatten();
            if let Some(info) = inside(folder.clone(), ".git").and_then(|git| inside(git, "info")) {
                push(&mut self.exclude, &info, ".git/info/exclude");
            }
        }
        if may_have(".gitignore") {
            push(&mut self.git, folder, ".gitignore");
        }
        if may_have(".ignore") {
            push(&mut self.own, folder, ".ignore");
        }
        too_large
    }

    /// Returns true if the current folder is in a repository.
    pub(crate) fn is_in_repository(&self) -> bool {
        !self.repositories.is_empty()
    }

    /// Leaves the folder that was entered last.
    pub(crate) fn leave_folder(&mut self) {
        let depth = self.depth;
        self.depth = depth.saturating_sub(1);
        for rules in [&mut self.own, &mut self.git, &mut self.exclude] {
            while rules.last().is_some_and(|it| it.depth >= depth) {
                rules.pop();
            }
        }
        while self.repositories.last().is_some_and(|it| *it >= depth) {
            self.repositories.pop();
        }
    }

    /// Returns the verdict for a path.
    pub(crate) fn verdict_for(&self, path: &[u8], is_folder: bool) -> IgnoreVerdict {
        let repository = self.repositories.last().copied().unwrap_or(0);
        let groups = [(&self.own, 0), (&self.git, repository), (&self.exclude, repository)];
        for (rules, depth_min) in groups {
            for it in rules.iter().rev().take_while(|it| it.depth >= depth_min) {
                let below = Path::new(OsStr::from_bytes(&path[it.start..]));
                match it.rules.matched(below, is_folder) {
                    Match::None => {}
                    Match::Ignore(_) => return IgnoreVerdict::LeaveOut,
                    Match::Whitelist(_) => return IgnoreVerdict::Keep,
                }
            }
        }
        IgnoreVerdict::Nothing
    }
}

/// The exclude patterns of a request.
#[derive(Debug)]
pub(crate) struct ExcludePatterns {
    rules: Gitignore,
    /// The path from the patterns' root to the walk's top, followed by an entry's path.
    path: Vec<u8>,
    way: usize,
}

impl ExcludePatterns {
    /// Compiles patterns. Returns `None` if there are none. `way` is the path from the patterns'
    /// root to the walk's top. It is empty or ends with `/`.
    pub(crate) fn new(patterns: &[String], way: &str) -> Result<Option<Self>> {
        if patterns.is_empty() {
            return Ok(None);
        }
        let wrong = |error: ignore::Error| {
            let text = format!("invalid exclude pattern: {error}");
            Error::new(ErrorKind::InvalidArguments, text).with_hint("write it as in `.gitignore`")
        };
        let mut builder = GitignoreBuilder::new("");
        for pattern in patterns {
            builder.add_line(None, pattern).map_err(wrong)?;
        }
        let rules = builder.build().map_err(wrong)?;
        Ok(Some(Self { rules, path: way.as_bytes().to_vec(), way: way.len() }))
    }

    /// Returns true if a pattern matches the path.
    pub(crate) fn matches_path(&mut self, path: &[u8], is_folder: bool) -> bool {
        let path = match self.way {
            0 => path,
            way => {
                self.path.truncate(way);
                self.path.extend_from_slice(path);
                &self.path
            }
        };
        self.rules.matched(Path::new(OsStr::from_bytes(path)), is_folder).is_ignore()
    }
}

/// Reads rules. As in git, a file that is missing, unreadable or a link has no rules. Fails if the
/// rules are too large to compile.
fn read_ignore_file<F: SearchableFolder>(
    folder: &F,
    name: &str,
) -> Option<Result<Gitignore, ignore::Error>> {
    let (file, _) = folder.open_child(name.as_ref(), IGNORE_BYTES_MAX).ok()??;
    let mut text = Vec::new();
    file.take(IGNORE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        // As in git, an invalid pattern is ignored.
        let _ = builder.add_line(None, line);
    }
    Some(builder.build())
}
