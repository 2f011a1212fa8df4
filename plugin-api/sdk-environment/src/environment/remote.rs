//! An environment's files for the engine, through `read`, `list` and `stat`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::PathBuf;

use jaato_types::files::{FolderList, READ_BYTES_MAX};
use jaato_types::{Error, ErrorKind, Result};

use super::default_methods::{file_path, range_request};
use super::exchange::{EngineChannel, join_path};
use crate::engine::{
    self, FolderNames, NameOrder, SearchStartFolder, SearchableFolder, SearchedFileFacts,
    TreeCallLimits,
};
use crate::errors::FileOperationVerb;

/// The files of an environment, as the engine sees them.
pub(super) struct RemoteFiles {
    line: EngineChannel,
    limits: Option<TreeCallLimits>,
}

/// A folder, by its path.
#[derive(Debug, Clone)]
pub(super) struct RemoteFolder {
    line: EngineChannel,
    path: String,
}

/// A file that is read range by range.
#[derive(Debug)]
pub(super) struct RemoteFile {
    line: EngineChannel,
    path: String,
    /// The last range that was read. The bytes from `given` on are not yet passed on.
    bytes: Vec<u8>,
    given: usize,
    /// The offset of the next range, or `None` at the end.
    next: Option<u64>,
}

impl RemoteFiles {
    pub(super) fn new(line: EngineChannel, limits: Option<TreeCallLimits>) -> Self {
        Self { line, limits }
    }

    fn remote_folder(&self, path: String) -> RemoteFolder {
        RemoteFolder { line: self.line.clone(), path }
    }

    /// Returns the folders above a path whose ignore rules apply. They start at the root of the
    /// repository, or without a repository at the default folder if the path is relative.
    fn folders_with_ignore_rules(&self, path: &str) -> Vec<(RemoteFolder, OsString)> {
        let asked = if path.is_empty() { "." } else { path };
        let Ok(facts) = self.line.stat(file_path(asked)) else { return Vec::new() };
        let absolute = facts.path.trim_end_matches("/.").trim_end_matches('/');
        let names = path.split('/').filter(|name| !name.is_empty() && *name != ".");
        let goes_up = names.clone().any(|name| name == "..");
        let mut kept = if path.starts_with('/') || goes_up { 0 } else { names.count() };
        let mut is_sought = self.remote_folder(path.to_owned()).has_repository() == Ok(false);
        let mut above = Vec::new();
        for (at, _) in absolute.rmatch_indices('/') {
            if !is_sought && above.len() >= kept {
                break;
            }
            let folder = self.remote_folder(absolute[..at.max(1)].to_owned());
            let name = absolute[at + 1..].split('/').next().unwrap_or_default();
            let has_repository = is_sought.then(|| folder.has_repository());
            above.push((folder, OsString::from(name)));
            match has_repository {
                None | Some(Ok(false)) => {}
                Some(Ok(true)) => (kept, is_sought) = (kept.max(above.len()), false),
                // This folder is outside the allowed ones.
                Some(Err(_)) => is_sought = false,
            }
        }
        above.truncate(kept);
        above.reverse();
        above
    }
}

impl engine::SearchableFiles for RemoteFiles {
    type Folder = RemoteFolder;

    fn look_up(&self, path: &str, _verb: FileOperationVerb) -> Result<SearchedFileFacts> {
        // The path is the top of the limits.
        let protected = self.limits.as_ref().is_some_and(TreeCallLimits::is_top_protected);
        Ok(SearchedFileFacts { protected, ..look_up_remote(&self.line, path)? })
    }

    fn open_start_folder(&self, path: &str) -> Result<SearchStartFolder<RemoteFolder>> {
        let folder = self.remote_folder(path.to_owned());
        let limits = self.limits.clone();
        Ok(SearchStartFolder {
            above: self.folders_with_ignore_rules(path),
            folder,
            shown: path.into(),
            limits,
        })
    }

    fn open_file(&self, path: &str) -> Result<(RemoteFile, u64)> {
        RemoteFile::open(&self.line, path.to_owned(), READ_BYTES_MAX)
    }

    fn display_path(&self, path: &str) -> PathBuf {
        path.into()
    }
}

fn look_up_remote(line: &EngineChannel, path: &str) -> Result<SearchedFileFacts> {
    let facts = line.stat(file_path(path))?;
    let milliseconds = facts.modified_ms;
    let modified = (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000) * 1_000_000);
    Ok(SearchedFileFacts { kind: facts.kind, size: facts.size, modified, protected: false })
}

impl RemoteFolder {
    fn child_path(&self, name: &OsStr) -> String {
        join_path(&self.path, &name.to_string_lossy())
    }

    fn has_repository(&self) -> Result<bool> {
        match self.line.stat(file_path(&join_path(&self.path, ".git"))) {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl SearchableFolder for RemoteFolder {
    type File = RemoteFile;

    fn read_names(&self, _sorted: NameOrder) -> io::Result<FolderNames> {
        let (mut names, mut skip) = (FolderNames::default(), 0);
        loop {
            let list = FolderList { path: self.path.clone(), skip, ..FolderList::default() };
            let listed = self.line.list(list).map_err(to_io_error)?;
            skip += listed.entries.len();
            let is_end = listed.entries.is_empty() || skip >= listed.count;
            for entry in listed.entries {
                // This always fits, because one operation lists fewer entries than the maximum.
                names.add_name(entry.name.as_bytes(), entry.kind);
            }
            if is_end {
                names.sort();
                return Ok(names);
            }
        }
    }

    fn open_subfolder(&self, name: &OsStr) -> io::Result<Option<Self>> {
        Ok(Some(Self { line: self.line.clone(), path: self.child_path(name) }))
    }

    fn open_child(&self, name: &OsStr, bytes_max: u64) -> io::Result<Option<(RemoteFile, u64)>> {
        match RemoteFile::open(&self.line, self.child_path(name), bytes_max) {
            Ok(opened) => Ok(Some(opened)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(to_io_error(error)),
        }
    }

    fn entry_facts(&self, name: &OsStr) -> io::Result<SearchedFileFacts> {
        look_up_remote(&self.line, &self.child_path(name)).map_err(to_io_error)
    }

    fn is_same_folder(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl RemoteFile {
    /// Opens a file by reading its first bytes, which also returns its size.
    fn open(line: &EngineChannel, path: String, bytes_max: u64) -> Result<(Self, u64)> {
        let (facts, bytes) = line.read(range_request(&path, 0, bytes_max.min(READ_BYTES_MAX)))?;
        let next = (facts.has_more && !bytes.is_empty()).then_some(bytes.len() as u64);
        Ok((Self { line: line.clone(), path, bytes, given: 0, next }, facts.size))
    }
}

impl Read for RemoteFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let (true, Some(next)) = (self.given == self.bytes.len(), self.next) {
            let read = self.line.read(range_request(&self.path, next, READ_BYTES_MAX));
            let (facts, bytes) = read.map_err(to_io_error)?;
            let is_over = bytes.is_empty() || !facts.has_more;
            self.next = (!is_over).then_some(next + bytes.len() as u64);
            (self.bytes, self.given) = (bytes, 0);
        }
        let rest = &self.bytes[self.given..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

/// Wraps the environment's own error, so that the engine passes it on.
fn to_io_error(error: Error) -> io::Error {
    let kind = match error.kind {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, error)
}
