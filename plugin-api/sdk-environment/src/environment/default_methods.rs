//! Default methods that need no tree: reading text, edits, and streams of one file. None of them
//! holds more than [`WHOLE_BYTES_MAX`] of a file.

use std::future::ready;
use std::path::Path;

use jaato_plugin_sdk::Reporter;
use jaato_types::execution::PIECE_BYTES_MAX;
use jaato_types::files::{
    FileEdit, FileEditAnswer, FileFacts, FileKind, FilePath, FileRead, FileReadText, FileText,
    FileWrite, READ_BYTES_MAX,
};
use jaato_types::{Error, ErrorKind, Result};

use super::files::Files;
use super::streams::{BorrowingFileSink, FileSink, NextPiece, PieceStream, StreamStep};
use crate::engine::{EDIT_BYTES_MAX, TextReader, apply_edits};
use crate::errors::{self, FileOperationVerb};

/// The maximum number of bytes of one file that an edit, an upload or a copy holds in memory.
pub(super) const WHOLE_BYTES_MAX: u64 = EDIT_BYTES_MAX;

/// Reads text with [`Files::stat`] and [`Files::read`].
pub(super) async fn read_text<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    request: FileReadText,
) -> Result<FileText> {
    let facts = files.stat(host, file_path(&request.path)).await?;
    let (mut text, mut offset) = (TextReader::new(&request, &request.path), 0);
    loop {
        let range = range_request(&request.path, offset, READ_BYTES_MAX);
        let (_, bytes) = files.read(host, range).await?;
        offset += bytes.len() as u64;
        if !text.push_piece(&bytes)? {
            return Ok(text.finish(facts.size, facts.version));
        }
    }
}

/// Edits with [`Files::stat`], [`Files::read`] and [`Files::write`]. If the files have versions,
/// the write fails instead of overwriting a concurrent change.
pub(super) async fn edit<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    request: FileEdit,
) -> Result<FileEditAnswer> {
    let FileEdit { path, edits, expected, .. } = request;
    let shown = Path::new(&path);
    let before = files.stat(host, file_path(&path)).await?;
    if expected.is_some() && before.version.is_some() && expected != before.version {
        return Err(errors::changed_file_error(shown));
    }
    if before.kind != FileKind::File {
        return Err(errors::not_a_file_error(FileOperationVerb::Edit, shown, before.kind));
    }
    let content = read_whole_file(files, host, &path).await?;
    let (bytes, replaced) = apply_edits(shown, &content, &edits)?;
    if bytes == content {
        return Ok(FileEditAnswer { replaced, facts: before, ..FileEditAnswer::default() });
    }
    let expected = before.version.or(expected);
    let write = FileWrite { path, expected, ..FileWrite::default() };
    let facts = files.write(host, write, bytes).await?;
    Ok(FileEditAnswer { replaced, facts, ..FileEditAnswer::default() })
}

/// Reads a whole file.
pub(super) async fn read_whole_file<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    path: &str,
) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        let (facts, bytes) =
            files.read(host, range_request(path, all.len() as u64, READ_BYTES_MAX)).await?;
        let is_end = bytes.is_empty() || !facts.has_more;
        all.extend(bytes);
        if all.len() as u64 > WHOLE_BYTES_MAX {
            return Err(too_large_error(path, "read it in ranges"));
        }
        if is_end {
            return Ok(all);
        }
    }
}

pub(super) fn file_path(path: &str) -> FilePath {
    FilePath { path: path.to_owned(), ..FilePath::default() }
}

pub(super) fn range_request(path: &str, offset: u64, length: u64) -> FileRead {
    let (path, length) = (path.to_owned(), Some(length));
    FileRead { path, offset, length, ..FileRead::default() }
}

fn too_large_error(path: &str, hint: &str) -> Error {
    let text = format!("`{path}` has more than {WHOLE_BYTES_MAX} bytes");
    Error::new(ErrorKind::LimitReached, text).with_hint(hint)
}

/// A file that is read range by range.
struct RangedFileReader {
    path: String,
    offset: u64,
    /// The number of bytes still to read.
    left: u64,
}

/// Opens a file for reading range by range.
pub(super) async fn open<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    read: FileRead,
) -> Result<(u64, PieceStream<F>)> {
    let FileRead { path, offset, length, .. } = read;
    let facts = files.stat(host, file_path(&path)).await?;
    if facts.kind == FileKind::Folder {
        return Err(errors::not_a_file_error(
            FileOperationVerb::Read,
            Path::new(&path),
            facts.kind,
        ));
    }
    let ranges = RangedFileReader { path, offset, left: length.unwrap_or(u64::MAX) };
    Ok((facts.size, PieceStream::from_pieces(ranges)))
}

impl<F: Files + ?Sized> NextPiece<F> for RangedFileReader {
    fn next<'a>(
        &'a mut self,
        files: &'a F,
        host: &'a Reporter,
        mut buffer: Vec<u8>,
    ) -> StreamStep<'a, Vec<u8>> {
        Box::pin(async move {
            let length = self.left.min(PIECE_BYTES_MAX as u64);
            if length == 0 {
                return Ok(buffer);
            }
            let (_, bytes) =
                files.read(host, range_request(&self.path, self.offset, length)).await?;
            self.offset += bytes.len() as u64;
            self.left = self.left.saturating_sub(bytes.len() as u64);
            buffer.extend(bytes);
            Ok(buffer)
        })
    }
}

/// Collects a file and writes it at once, so that dropping the upload keeps the old file.
struct BufferedUpload {
    write: FileWrite,
    bytes: Vec<u8>,
    /// Some bytes were lost, so the file must not be written.
    is_lost: bool,
}

/// Starts to collect a file.
pub(super) fn create<F: Files + ?Sized>(write: FileWrite) -> FileSink<F> {
    FileSink::from_sink(BufferedUpload { write, bytes: Vec::new(), is_lost: false })
}

impl<F: Files + ?Sized> BorrowingFileSink<F> for BufferedUpload {
    fn write<'a>(&'a mut self, _host: &'a Reporter, bytes: Vec<u8>) -> StreamStep<'a, ()> {
        let taken = if (self.bytes.len() + bytes.len()) as u64 > WHOLE_BYTES_MAX {
            self.is_lost = true;
            self.bytes = Vec::new();
            Err(too_large_error(&self.write.path, "write it in parts"))
        } else {
            self.bytes.extend(bytes);
            Ok(())
        };
        Box::pin(ready(taken))
    }

    fn finish<'a>(self: Box<Self>, files: &'a F, host: &'a Reporter) -> StreamStep<'a, FileFacts> {
        Box::pin(async move {
            if self.is_lost {
                let error = Error::new(ErrorKind::Io, "an earlier write to the file failed");
                return Err(error.with_hint("write it again"));
            }
            files.write(host, self.write, self.bytes).await
        })
    }
}
