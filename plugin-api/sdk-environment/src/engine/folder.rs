//! The traits through which the engine reads files, and the names in a folder.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use jaato_types::Result;
use jaato_types::files::FileKind;

use super::call_limits::TreeCallLimits;
use super::limits::FOLDER_ENTRIES_MAX;
use crate::errors::FileOperationVerb;
use crate::platform::FileTimestamp;

/// Files, by the paths in requests.
pub(crate) trait SearchableFiles {
    type Folder: SearchableFolder;

    /// Returns the facts of a file or folder; follows links.
    fn look_up(&self, path: &str, verb: FileOperationVerb) -> Result<SearchedFileFacts>;

    /// Opens the folder of a request. An empty path is the default folder.
    fn open_start_folder(&self, path: &str) -> Result<SearchStartFolder<Self::Folder>>;

    /// Opens a file and returns its size.
    fn open_file(&self, path: &str) -> Result<(<Self::Folder as SearchableFolder>::File, u64)>;

    /// Returns the path as errors show it.
    fn display_path(&self, path: &str) -> PathBuf;
}

/// A folder of a tree. Its methods never follow links.
pub(crate) trait SearchableFolder: Clone + fmt::Debug + Send + Sync + 'static {
    type File: Read + fmt::Debug + Send + 'static;

    /// Reads the names in the folder. Called once.
    fn read_names(&self, sorted: NameOrder) -> io::Result<FolderNames>;

    /// Opens a subfolder. Returns `None` if it is gone or no longer a folder.
    fn open_subfolder(&self, name: &OsStr) -> io::Result<Option<Self>>;

    /// Opens a file in the folder and returns its size. Returns `None` if it is gone or no longer a
    /// file. The caller reads at most `bytes_max` bytes.
    fn open_child(&self, name: &OsStr, bytes_max: u64) -> io::Result<Option<(Self::File, u64)>>;

    /// Returns the facts of the entry with that name.
    fn entry_facts(&self, name: &OsStr) -> io::Result<SearchedFileFacts>;

    /// Returns true if both are the same folder.
    fn is_same_folder(&self, other: &Self) -> bool;
}

/// The folder in which a request starts.
#[derive(Debug)]
pub(crate) struct SearchStartFolder<F> {
    /// The folders above whose ignore rules apply, outermost first. Each comes with the name of its
    /// child on the way to the top.
    pub(crate) above: Vec<(F, OsString)>,
    pub(crate) folder: F,
    /// The path as errors show it.
    pub(crate) shown: PathBuf,
    /// The limits of the call in this folder.
    pub(crate) limits: Option<TreeCallLimits>,
}

/// The facts of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SearchedFileFacts {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) modified: FileTimestamp,
    /// The user must be asked before the file is changed. Only [`SearchableFiles::look_up`] sets
    /// this.
    pub(crate) protected: bool,
}

/// Whether names are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameOrder {
    Yes,
    No,
}

/// The names in a folder, stored in one buffer.
#[derive(Debug, Default)]
pub(crate) struct FolderNames {
    bytes: Vec<u8>,
    names: Vec<FolderNameSpan>,
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct FolderNameSpan {
    start: u32,
    length: u16,
    kind: FileKind,
}

impl FolderNames {
    /// Adds a name. Returns false if there are too many.
    pub(crate) fn add_name(&mut self, name: &[u8], kind: FileKind) -> bool {
        let (start, length) = (u32::try_from(self.bytes.len()), u16::try_from(name.len()));
        let (Ok(start), Ok(length)) = (start, length) else { return false };
        if self.names.len() == FOLDER_ENTRIES_MAX {
            return false;
        }
        self.bytes.extend_from_slice(name);
        self.names.push(FolderNameSpan { start, length, kind });
        true
    }

    pub(crate) fn sort(&mut self) {
        self.names.sort_unstable_by(|a, b| a.slice_of(&self.bytes).cmp(b.slice_of(&self.bytes)));
    }

    /// Keeps the names that match. Returns how many were removed.
    pub(crate) fn retain(&mut self, keeps: impl Fn(&OsStr) -> bool) -> usize {
        let count = self.names.len();
        let bytes = &self.bytes;
        self.names.retain(|name| keeps(OsStr::from_bytes(name.slice_of(bytes))));
        count - self.names.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Skips `count` names.
    pub(crate) fn skip_names(&mut self, count: usize) {
        self.next = self.next.saturating_add(count).min(self.names.len());
    }

    /// Returns the next name and its kind.
    pub(crate) fn next(&mut self) -> Option<(&OsStr, FileKind)> {
        let name = self.names.get(self.next)?;
        self.next += 1;
        Some((OsStr::from_bytes(name.slice_of(&self.bytes)), name.kind))
    }

    /// Returns true if the folder contains the name.
    pub(crate) fn contains_name(&self, name: &str) -> bool {
        self.names.iter().any(|it| it.slice_of(&self.bytes) == name.as_bytes())
    }
}

impl FolderNameSpan {
    fn slice_of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..usize::from(self.length)]
    }
}
