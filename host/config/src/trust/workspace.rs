//! A workspace, its state of trust, and the only way to read trusted files.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jaato_places::TrustedOwners;
use jaato_types::mcp_entry::AgreedVariables;

use super::stamp::{self, CoveredFileStamps};
use super::{AGENTS_FILE, CLAUDE_FILE, TrustError, WORKSPACE_FOLDER, WorkspaceTrust, scan};

/// A folder in which a user works: its root, and the working directory in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
    working_directory: PathBuf,
}

/// The state of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkspaceState {
    /// There is nothing to trust.
    Nothing,
    /// Trusted and unchanged.
    Trusted(TrustedWorkspace),
    /// Never trusted.
    Untrusted {
        /// The names of its files.
        found: Vec<String>,
    },
    /// Trusted before, but changed since, so no longer trusted.
    Changed {
        /// The changes.
        files: Vec<FileChange>,
    },
}

/// How one file differs from the trusted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file, from the workspace's root.
    pub name: String,
    /// The kind of change.
    pub kind: TrustedFileChange,
}

/// How a file changed since the workspace was trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustedFileChange {
    /// It did not exist.
    Added,
    /// Its content, or its link target, was different.
    Changed,
    /// It no longer exists.
    Removed,
}

/// A workspace whose covered files are the ones that the user trusted. It checks each file again as
/// it reads it, so that a later change cannot slip in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedWorkspace {
    root: PathBuf,
    pub(super) files: BTreeMap<String, String>,
    agreed_variables: Vec<AgreedVariables>,
}

impl Workspace {
    /// Returns the workspace around a working directory: the nearest folder upwards with a mark
    /// (`.jaato` or `.git`) that counts, else the directory itself.
    ///
    /// A mark in the home folder or above it does not count for the folders below, because
    /// `~/.jaato` has files of the user, and files in the home folder come from everywhere. Nor
    /// does a mark in a folder that every user can write to, or a `.jaato` of another user, because
    /// others could then choose the workspace. A worktree of jaato belongs to the workspace around
    /// it.
    ///
    /// # Errors
    /// When the working directory cannot be resolved.
    pub fn find_workspace(
        working_directory: &Path,
        home: Option<&Path>,
    ) -> Result<Self, TrustError> {
        let here = working_directory.canonicalize().map_err(|error| TrustError::Io {
            path: working_directory.to_owned(),
            doing: "find",
            cause: error.to_string(),
        })?;
        let home = home.and_then(|home| home.canonicalize().ok());
        let is_below_home = |folder: &&Path| home.as_deref() != Some(*folder);
        let around = enclosing_worktree(&here).map(|(around, _)| around);
        let from = around.filter(is_below_home).filter(|folder| !is_writable_by_all(folder));
        let from = from.unwrap_or(&here);
        let above = from.ancestors().take_while(is_below_home).skip(1);
        let mut above = above.filter(|folder| !is_writable_by_all(folder));
        let root = match has_root_mark(from) {
            true => from,
            false => above.find(|folder| has_root_mark(folder)).unwrap_or(from),
        };
        let root = root.to_owned();
        Ok(Self { root, working_directory: here })
    }

    /// Returns the canonical root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the canonical working directory.
    pub fn working_directory(&self) -> &Path {
        &self.working_directory
    }

    /// Returns the worktree of jaato with the working directory: the folder around `.worktrees`,
    /// and its name in there. `None` if the working directory is not in one.
    pub fn worktree(&self) -> Option<(&Path, &OsStr)> {
        enclosing_worktree(&self.working_directory)
    }

    /// Lists the trusted instructions for agents, from the root down to the working directory, by
    /// name from the root: a folder's `AGENTS.md`, else its `CLAUDE.md`. In a worktree, these are
    /// the files of the folders of which it is a copy.
    pub fn agents_files(&self, trusted: &TrustedWorkspace) -> Vec<String> {
        self.filter_agents_files(|name| trusted.files.contains_key(name))
    }

    /// Lists the same for all existing files, trusted or not.
    fn present_agents_files(&self) -> Vec<String> {
        self.filter_agents_files(|name| self.has_entry(name))
    }

    fn filter_agents_files(&self, counts: impl Fn(&str) -> bool) -> Vec<String> {
        let below = self.working_directory.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let mut folders = vec![String::new()];
        let mut parts = below.components();
        while let Some(part) = parts.next() {
            if part.as_os_str() == WORKTREES_FOLDER {
                parts.next();
                continue;
            }
            let above = &folders[folders.len() - 1];
            folders.push(format!("{above}{}/", part.as_os_str().to_string_lossy()));
        }
        let file_of = |folder: &String| {
            let names = [AGENTS_FILE, CLAUDE_FILE].map(|file| format!("{folder}{file}"));
            names.into_iter().find(|name| counts(name))
        };
        folders.iter().filter_map(file_of).collect()
    }

    fn has_entry(&self, name: &str) -> bool {
        self.root.join(name).symlink_metadata().is_ok()
    }

    /// Returns true if the named file is a `CLAUDE.md` that does not count, because there is an
    /// `AGENTS.md` next to it. Below `.jaato` each file counts, regardless of its name.
    pub(super) fn is_replaced(&self, name: &str) -> bool {
        let folder = name.strip_suffix(CLAUDE_FILE).filter(|it| it.is_empty() || it.ends_with('/'));
        let inside = Path::new(name).starts_with(WORKSPACE_FOLDER);
        folder.is_some_and(|folder| !inside && self.has_entry(&format!("{folder}{AGENTS_FILE}")))
    }

    /// Returns the root as it is recorded.
    pub(super) fn recorded_root(&self) -> Result<&str, TrustError> {
        self.root.to_str().ok_or_else(|| TrustError::NotUtf8 { path: self.root.clone() })
    }

    /// Lists the existing covered files. `recorded` are the files that were trusted before. They
    /// also count in a working directory that would not cover them.
    pub(super) fn all_covered_names(
        &self,
        recorded: &BTreeMap<String, String>,
    ) -> Result<BTreeSet<String>, TrustError> {
        let agents = self.present_agents_files();
        let more = agents.iter().chain(recorded.keys()).map(String::as_str);
        scan::covered_names(&self.root, more)
    }

    /// Returns the state of a workspace that was never trusted. Unusual names are in a printable
    /// form.
    pub fn untrusted_state(&self) -> WorkspaceState {
        let agents = self.present_agents_files();
        let found = scan::shown_names(&self.root, agents.iter().map(String::as_str));
        match found.is_empty() {
            true => WorkspaceState::Nothing,
            false => WorkspaceState::Untrusted { found },
        }
    }

    /// Digests the named files, and stamps those that are expensive to digest again.
    pub(super) fn digest_all(
        &self,
        names: &BTreeSet<String>,
        now: SystemTime,
    ) -> Result<(BTreeMap<String, String>, CoveredFileStamps), TrustError> {
        let before = stamp::stamps_of_big_files(&self.root, names);
        let files = scan::digest_files(&self.root, names, BTreeMap::new())?;
        let stamps =
            stamp::unchanged_stamps(before, &stamp::stamps_of_big_files(&self.root, names), now);
        Ok((files, stamps))
    }

    /// Names the file that an error concerns, from the root.
    pub(super) fn file_name_in_error(&self, error: &TrustError) -> String {
        let path = match error {
            TrustError::Io { path, .. } | TrustError::NotUtf8 { path } => {
                path.strip_prefix(&self.root).unwrap_or(path)
            }
            TrustError::Corrupt { .. }
            | TrustError::Newer { .. }
            | TrustError::NotBelieved { .. }
            | TrustError::Locked { .. }
            | TrustError::TooMuch { .. }
            | TrustError::Changed { .. }
            | TrustError::BadDigest { .. }
            | TrustError::InsideSession => Path::new(WORKSPACE_FOLDER),
        };
        path.to_string_lossy().into_owned()
    }

    /// Digests the named files again, except those whose stamp shows that they did not change.
    pub(super) fn digest_changed_files(
        &self,
        names: &BTreeSet<String>,
        trusted: &WorkspaceTrust,
    ) -> Result<BTreeMap<String, String>, TrustError> {
        let known = stamp::stamps_of_big_files(&self.root, names)
            .into_iter()
            .filter(|(name, stamp)| trusted.stamps.get(name) == Some(stamp))
            .filter_map(|(name, _)| trusted.files.get(&name).cloned().map(|digest| (name, digest)))
            .collect();
        scan::digest_files(&self.root, names, known)
    }
}

/// The folder of a workspace with the worktrees of its agents and conversations.
const WORKTREES_FOLDER: &str = ".worktrees";

/// Returns the outermost worktree of jaato that contains a folder, as [`Workspace::worktree`] does.
fn enclosing_worktree(folder: &Path) -> Option<(&Path, &OsStr)> {
    folder.ancestors().filter_map(parse_worktree_path).last()
}

/// Returns the folder around a worktree of jaato, and the worktree's name. `NAME.base` next to it
/// distinguishes it from other folders in a `.worktrees`.
fn parse_worktree_path(folder: &Path) -> Option<(&Path, &OsStr)> {
    let worktrees = folder.parent().filter(|it| it.ends_with(WORKTREES_FOLDER))?;
    let name = folder.file_name()?;
    let mut base = name.to_owned();
    base.push(".base");
    let is_ours = worktrees.join(base).symlink_metadata().is_ok();
    is_ours.then_some((worktrees.parent()?, name))
}

/// Returns true if a folder has a mark of a workspace's root.
fn has_root_mark(folder: &Path) -> bool {
    let has_git = folder.join(".git").symlink_metadata().is_ok();
    let own = folder.join(WORKSPACE_FOLDER).symlink_metadata();
    has_git || own.is_ok_and(|own| TrustedOwners::this_user_and_root().contains_user(own.uid()))
}

/// Returns true if every user can create files in a folder.
fn is_writable_by_all(folder: &Path) -> bool {
    const WRITE_BY_OTHERS: u32 = 0o002;
    folder.metadata().is_ok_and(|metadata| metadata.mode() & WRITE_BY_OTHERS != 0)
}

impl TrustedWorkspace {
    pub(super) fn new(
        root: &Path,
        files: BTreeMap<String, String>,
        agreed_variables: Vec<AgreedVariables>,
    ) -> Self {
        Self { root: root.to_owned(), files, agreed_variables }
    }

    /// Returns the variables that the user agreed to send to MCP servers of the workspace.
    pub fn agreed_variables(&self) -> &[AgreedVariables] {
        &self.agreed_variables
    }

    /// Returns the canonical root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the digest over all covered files.
    pub fn digest(&self) -> String {
        scan::combined_digest(&self.files)
    }

    /// Lists the names of all covered files.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Returns the SHA-256 of a trusted covered file, by its name from the root
    /// (`.jaato/plugins/libmoon.so`). Returns `None` for a link, and for a file that did not exist.
    pub fn content_sha256(&self, name: &str) -> Option<&str> {
        self.files.get(name)?.strip_prefix(scan::PLAIN_CONTENT)
    }

    /// Returns the trusted content of a file, by its name from the root. Returns `None` if it did
    /// not exist when the user trusted the workspace, or leads outside. Returns an error if it has
    /// changed since.
    pub fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, TrustError> {
        Ok(self.read_file_start(name, usize::MAX)?.map(|(bytes, _)| bytes))
    }

    /// As [`TrustedWorkspace::read_file`], but keeps at most the first `bytes_max` bytes in memory.
    /// Returns them with the size of the file.
    pub fn read_file_start(
        &self,
        name: &str,
        bytes_max: usize,
    ) -> Result<Option<(Vec<u8>, u64)>, TrustError> {
        let Some(content) = self.files.get(name).and_then(|it| scan::recorded_content(it)) else {
            return Ok(None);
        };
        let changed = || TrustError::Changed { path: self.root.join(name) };
        let Some((path, file)) = scan::open_covered_file(&self.root, name)? else {
            return Err(changed());
        };
        let (mut bytes, mut size) = (Vec::new(), 0);
        let file = file.take(super::WORKSPACE_BYTES_MAX);
        let digest = scan::file_digest(&path, file, |chunk| {
            let kept = chunk.len().min(bytes_max - bytes.len());
            bytes.extend_from_slice(&chunk[..kept]);
            size += chunk.len() as u64;
            Ok(())
        })?;
        if digest == content { Ok(Some((bytes, size))) } else { Err(changed()) }
    }
}

/// Lists the differences between the trusted and the existing files.
pub(super) fn list_file_changes(
    trusted: &BTreeMap<String, String>,
    present: &BTreeMap<String, String>,
) -> Vec<FileChange> {
    let names: BTreeSet<&String> = trusted.keys().chain(present.keys()).collect();
    let kind = |name: &String| match (trusted.get(name), present.get(name)) {
        (None, _) => Some(TrustedFileChange::Added),
        (Some(_), None) => Some(TrustedFileChange::Removed),
        (Some(before), Some(after)) => (before != after).then_some(TrustedFileChange::Changed),
    };
    names
        .into_iter()
        .filter_map(|name| kind(name).map(|kind| FileChange { name: name.clone(), kind }))
        .collect()
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TrustedFileChange::Added => "added",
            TrustedFileChange::Changed => "changed",
            TrustedFileChange::Removed => "removed",
        };
        write!(f, "`{}` was {what}", self.name)
    }
}
