//! Reads and writes whole files of the session's execution environment.

use jaato_plugin_sdk::files::{
    FileDelete, FileFacts, FileKind, FilePair, FileRead, FileUpload, FileWrite, FolderMake,
    READ_BYTES_MAX, WriteMode,
};
use jaato_plugin_sdk::prelude::*;

use crate::content::HashedContent;
use crate::text::describe_binary_kind;

/// The maximum size of a file that is changed, because it is in memory twice.
pub const CHANGED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The maximum number of bytes written in one step. Larger files are written in chunks.
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The size of a chunk, which should fit in a processor's cache.
const PIECE_BYTES: usize = 1024 * 1024;

/// The number of bytes from which the kind of a binary file is detected.
const HEAD_BYTES: u64 = 512;

/// A file that was read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSnapshot {
    /// The file's metadata. Its path is absolute.
    pub facts: FileFacts,
    /// The file's bytes.
    pub bytes: HashedContent,
}

/// Returns the metadata of a path, or `None` if nothing exists there.
///
/// # Errors
/// `permission_denied` for a path that is not allowed, or the environment's error.
pub async fn read_facts(cx: &Reporter, path: &str) -> Result<Option<FileFacts>> {
    if path == "~" || path.starts_with("~/") {
        let text = format!("`{path}` begins with `~`, which is not expanded");
        let hint = "use an absolute path; for a folder with this name, use `./~`";
        return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint(hint));
    }
    match cx.files().stat(path).await {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads a file before a change. Returns `None` if nothing exists there.
///
/// # Errors
/// The errors of [`read_facts`], or an error if the path is not a file or the file is too large.
pub async fn read_snapshot(cx: &Reporter, path: &str) -> Result<Option<FileSnapshot>> {
    let Some(facts) = read_facts(cx, path).await? else { return Ok(None) };
    check_is_file(path, &facts)?;
    fetch_contents(cx, path, facts).await.map(Some)
}

/// Reads a file whose metadata is known.
///
/// # Errors
/// The errors of [`snapshot`].
pub async fn fetch_contents(cx: &Reporter, path: &str, facts: FileFacts) -> Result<FileSnapshot> {
    if facts.size > CHANGED_BYTES_MAX {
        return Err(file_too_large_error(path, facts.size));
    }
    let mut bytes = Vec::new();
    if facts.size <= READ_BYTES_MAX {
        let read = FileRead { path: path.to_owned(), ..FileRead::default() };
        let (told, all) = cx.files().read(read).await?;
        bytes = all;
        if !told.has_more {
            return Ok(FileSnapshot { facts, bytes: bytes.into() });
        }
    }
    let offset = bytes.len() as u64;
    let read = FileRead { path: path.to_owned(), offset, ..FileRead::default() };
    let mut stream = cx.files().stream(read).await?;
    bytes.reserve_exact(usize::try_from(facts.size.saturating_sub(offset)).unwrap_or(0));
    while let Some(piece) = stream.next_piece().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > CHANGED_BYTES_MAX {
            return Err(file_too_large_error(path, bytes.len() as u64));
        }
    }
    Ok(FileSnapshot { facts, bytes: bytes.into() })
}

/// Returns an error if the path is not a file.
///
/// # Errors
/// `conflict`, which says what it is.
pub fn check_is_file(path: &str, facts: &FileFacts) -> Result<()> {
    let what = match facts.kind {
        FileKind::File => return Ok(()),
        FileKind::Folder => "a folder",
        FileKind::Link | FileKind::Other => "a device, a pipe or a socket",
    };
    let error = Error::new(ErrorKind::Conflict, format!("Not a file: {path}"));
    Err(error.with_hint(format!("it is {what}")))
}

/// Returns an error for a link. Deleting or moving it would affect the link itself, which could not
/// be restored.
///
/// # Errors
/// `conflict`, or the environment's error.
pub async fn check_is_no_link(cx: &Reporter, path: &str) -> Result<()> {
    let facts = cx.files().stat_itself(path).await?;
    if facts.kind != FileKind::Link {
        return Ok(());
    }
    let error = Error::new(ErrorKind::Conflict, format!("Not a file: {path}"));
    Err(error.with_hint("it is a link: move or remove it with a command"))
}

/// Returns the error for a binary file, with its kind and size.
pub fn not_text_error(path: &str, head: &[u8], size: u64) -> Error {
    let kind =
        describe_binary_kind(&head[..head.len().min(usize::try_from(HEAD_BYTES).unwrap_or(0))]);
    let text = format!("Not a text file: {path} ({kind}, {size} bytes)");
    Error::new(ErrorKind::InvalidArguments, text)
}

fn file_too_large_error(path: &str, bytes: u64) -> Error {
    let text = format!(
        "File too large: {path} has {bytes} bytes, but at most {CHANGED_BYTES_MAX} can be changed"
    );
    Error::new(ErrorKind::LimitReached, text).with_hint("change it with a command")
}

/// How to write a file.
#[derive(Debug, Clone, Copy)]
pub enum FileWriteMode<'a> {
    /// The file must not exist.
    New,
    /// The file must exist with this version.
    Over(Option<&'a str>),
}

/// Writes a whole file, and creates missing folders above it.
///
/// # Errors
/// `conflict` if the existing file is not the expected one.
pub async fn write_file(
    cx: &Reporter,
    path: &str,
    bytes: &[u8],
    how: FileWriteMode<'_>,
    permissions: Option<u32>,
) -> Result<FileFacts> {
    if should_write_as_draft(bytes) {
        return write_draft(cx, path, bytes, how, permissions).await?.finish().await;
    }
    cx.files().write(write_request(path, how, permissions), bytes).await
}

/// Returns true if a file is written as a draft.
pub fn should_write_as_draft(bytes: &[u8]) -> bool {
    bytes.len() > WRITE_BYTES_MAX
}

/// Writes a file to a draft next to its target. Finishing the draft replaces the target, and
/// dropping it deletes the draft.
///
/// # Errors
/// The errors of [`write_file`].
pub async fn write_draft(
    cx: &Reporter,
    path: &str,
    bytes: &[u8],
    how: FileWriteMode<'_>,
    permissions: Option<u32>,
) -> Result<FileUpload> {
    let upload = cx.files().upload(write_request(path, how, permissions)).await?;
    for piece in bytes.chunks(PIECE_BYTES) {
        upload.write(piece).await?;
    }
    Ok(upload)
}

fn write_request(path: &str, how: FileWriteMode<'_>, permissions: Option<u32>) -> FileWrite {
    let (mode, expected) = match how {
        FileWriteMode::New => (WriteMode::CreateNew, None),
        FileWriteMode::Over(version) => (WriteMode::Replace, version.map(str::to_owned)),
    };
    let path = path.to_owned();
    FileWrite { path, mode, parents: true, expected, permissions, ..FileWrite::default() }
}

/// Deletes a file that must still have this version.
///
/// # Errors
/// `conflict` if the file has changed or is missing.
pub async fn delete_file(cx: &Reporter, path: &str, version: Option<&str>) -> Result<()> {
    check_same_version(cx, path, version).await?;
    cx.files().delete(FileDelete { path: path.to_owned(), ..FileDelete::default() }).await
}

/// What to do if the target of a move exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTargetPolicy {
    /// Replaces the existing file.
    Replaced,
    /// Fails.
    Refused,
}

/// Moves a file that must still have this version, and creates missing folders.
///
/// # Errors
/// `conflict` if the file has changed or is missing, or if the target is in the way.
pub async fn rename_file(
    cx: &Reporter,
    (from, to): (&str, &str),
    version: Option<&str>,
    taken: ExistingTargetPolicy,
) -> Result<()> {
    check_same_version(cx, from, version).await?;
    if let Some((folder, _)) = to.rsplit_once('/').filter(|(folder, _)| !folder.is_empty()) {
        let make = FolderMake { path: folder.to_owned(), parents: true, ..FolderMake::default() };
        cx.files().make_folder(make).await?;
    }
    let (from, to, overwrite) =
        (from.to_owned(), to.to_owned(), taken == ExistingTargetPolicy::Replaced);
    cx.files().rename(FilePair { from, to, overwrite, ..FilePair::default() }).await
}

async fn check_same_version(cx: &Reporter, path: &str, version: Option<&str>) -> Result<()> {
    let there = read_facts(cx, path).await?;
    let is_same =
        there.is_some_and(|facts| version.is_none() || facts.version.as_deref() == version);
    if is_same {
        return Ok(());
    }
    let text = format!("`{path}` was changed in the meantime");
    Err(Error::new(ErrorKind::Conflict, text).with_hint("read it again, then repeat the change"))
}
