//! The files of a fake host's session: those of one folder of this machine.
//!
//! What differs from the host: links are followed once, and who renames meanwhile may lead outside.
//! A test has its folder for itself.

use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::environment::{ByDefault, Files};
use jaato_types::files::{
    FileBytes, FileDelete, FileFacts, FileKind, FilePath, FileRead, FileWrite, FolderEntries,
    FolderEntry, FolderList, FolderMake, LIST_ENTRIES_MAX, READ_BYTES_MAX, WriteMode,
};
use jaato_types::{Error, ErrorKind, Result};

/// Files of one folder.
pub(super) struct FolderFiles(PathBuf);

impl FolderFiles {
    /// Takes the folder, which must be there.
    pub(super) fn new(folder: &Path) -> Result<Self> {
        folder.canonicalize().map(Self).map_err(|error| told(&folder.to_string_lossy(), &error))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Finds where a path leads; what is outside is refused.
    fn find(&self, asked: &str) -> Result<PathBuf> {
        let mut path = PathBuf::new();
        for part in self.0.join(asked).components() {
            match part {
                Component::ParentDir => _ = path.pop(),
                Component::CurDir => {}
                part => path.push(part),
            }
        }
        // What is not there yet lies where its folder really is.
        let there = path.ancestors().find_map(|path| path.canonicalize().ok());
        if path.starts_with(&self.0) && there.is_some_and(|there| there.starts_with(&self.0)) {
            return Ok(path);
        }
        let text = format!("`{asked}` lies outside of `{}`", self.0.display());
        Err(Error::new(ErrorKind::PermissionDenied, text))
    }

    fn facts(&self, asked: &str) -> Result<FileFacts> {
        let path = self.find(asked)?;
        let metadata = fs::metadata(&path).map_err(|error| told(asked, &error))?;
        let modified = metadata.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let modified = modified.unwrap_or_default();
        Ok(FileFacts {
            path: path.to_string_lossy().into_owned(),
            kind: kind(metadata.file_type()),
            size: metadata.len(),
            modified_ms: i64::try_from(modified.as_millis()).unwrap_or(i64::MAX),
            version: Some(format!("{}-{}", modified.as_nanos(), metadata.len())),
            ..FileFacts::default()
        })
    }

    fn written(&self, write: &FileWrite, bytes: &[u8]) -> Result<FileFacts> {
        let path = self.find(&write.path)?;
        let before = self.facts(&write.path).ok();
        let conflict = |why: &str| {
            Err(Error::new(ErrorKind::Conflict, format!("cannot write `{}`: {why}", write.path)))
        };
        if write.mode == WriteMode::CreateNew && before.is_some() {
            return conflict("it is there already");
        }
        if write.expected.is_some() && write.expected != before.and_then(|facts| facts.version) {
            return conflict("it is another than the one that was read");
        }
        if let Some(folder) = path.parent().filter(|_| write.parents) {
            fs::create_dir_all(folder).map_err(|error| told(&write.path, &error))?;
        }
        let mut options = fs::OpenOptions::new();
        match write.mode {
            WriteMode::Append => options.append(true).create(true),
            WriteMode::Replace | WriteMode::CreateNew => {
                options.write(true).create(true).truncate(true)
            }
        };
        let written = options.open(&path).and_then(|mut file| file.write_all(bytes));
        written.map_err(|error| told(&write.path, &error))?;
        self.facts(&write.path)
    }
}

impl Files for FolderFiles {
    type Pieces = ByDefault;
    type Writer = ByDefault;
    type Pages = ByDefault;

    async fn read(&self, _host: &Reporter, read: FileRead) -> Result<(FileBytes, Vec<u8>)> {
        let failed = |error| told(&read.path, &error);
        let mut file = fs::File::open(self.find(&read.path)?).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let offset = read.offset.min(size);
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let length = read.length.unwrap_or(READ_BYTES_MAX).min(READ_BYTES_MAX);
        let mut bytes = Vec::new();
        file.take(length).read_to_end(&mut bytes).map_err(failed)?;
        let has_more = offset + (bytes.len() as u64) < size;
        Ok((FileBytes { size, offset, has_more, ..FileBytes::default() }, bytes))
    }

    async fn write(&self, _host: &Reporter, write: FileWrite, bytes: Vec<u8>) -> Result<FileFacts> {
        self.written(&write, &bytes)
    }

    async fn stat(&self, _host: &Reporter, path: FilePath) -> Result<FileFacts> {
        self.facts(&path.path)
    }

    async fn list(&self, _host: &Reporter, list: FolderList) -> Result<FolderEntries> {
        let failed = |error| told(&list.path, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.find(&list.path)?).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let metadata = entry.metadata().map_err(failed)?;
            entries.push(FolderEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind: kind(metadata.file_type()),
                size: if metadata.is_file() { metadata.len() } else { 0 },
                ..FolderEntry::default()
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let count = entries.len();
        let entries = entries.into_iter().skip(list.skip).take(LIST_ENTRIES_MAX).collect();
        Ok(FolderEntries { entries, count, ..FolderEntries::default() })
    }

    async fn delete(&self, _host: &Reporter, delete: FileDelete) -> Result<()> {
        let path = self.find(&delete.path)?;
        let is_folder = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
        let deleted = match (is_folder, delete.recursive) {
            (false, _) => fs::remove_file(path),
            (true, false) => fs::remove_dir(path),
            (true, true) => fs::remove_dir_all(path),
        };
        deleted.map_err(|error| told(&delete.path, &error))
    }

    async fn make_folder(&self, _host: &Reporter, make: FolderMake) -> Result<()> {
        let path = self.find(&make.path)?;
        if path.is_dir() {
            return Ok(());
        }
        let made = if make.parents { fs::create_dir_all(path) } else { fs::create_dir(path) };
        made.map_err(|error| told(&make.path, &error))
    }
}

fn kind(of: fs::FileType) -> FileKind {
    if of.is_file() {
        FileKind::File
    } else if of.is_dir() {
        FileKind::Folder
    } else if of.is_symlink() {
        FileKind::Link
    } else {
        FileKind::Other
    }
}

fn told(path: &str, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ErrorKind::NotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
        std::io::ErrorKind::AlreadyExists | std::io::ErrorKind::DirectoryNotEmpty => {
            ErrorKind::Conflict
        }
        std::io::ErrorKind::IsADirectory => ErrorKind::InvalidArguments,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("`{path}`: {error}"))
}
