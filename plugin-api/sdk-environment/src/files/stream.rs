//! Streams that read and write files in pieces.

use std::path::PathBuf;

use jaato_types::Result;
use jaato_types::files::{FileFacts, FileRead, FileStreamAnswer, FileWrite, WriteMode};
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use super::confined::ConfinedFiles;
use super::draft::{DraftFile, ExistingNamePolicy, errno_of};
use super::requested_path::RequestedPath;
use super::steps::{FinalLinkPolicy, MissingFolderPolicy};
use super::write::WriteTarget;
use crate::errors::{self, FileOperationVerb};
use crate::platform::FileMetadata;

/// The largest piece that is read. It is as large as the boundary allows, because each system call
/// takes some microseconds.
pub const PIECE_BYTES: usize = jaato_types::execution::PIECE_BYTES_MAX;

/// A file that is read in pieces.
#[derive(Debug)]
pub struct ConfinedFileReader {
    file: OwnedFd,
    shown: PathBuf,
    offset: u64,
    left: u64,
}

/// A file that is written in pieces. If it is dropped before it is finished, the old file stays
/// unchanged.
#[derive(Debug)]
pub struct ConfinedFileWriter {
    target: WriteTarget,
    draft: DraftFile,
    taken: ExistingNamePolicy,
    /// The expected version of the file that it replaces, if the caller named one.
    expected: Option<String>,
}

impl ConfinedFiles {
    /// Starts to read a file in pieces.
    pub fn read_stream(
        &self,
        request: &FileRead,
    ) -> Result<(FileStreamAnswer, ConfinedFileReader)> {
        let asked = self.requested_path(&request.path)?;
        let (file, facts) = self.roots.open_file(&asked, FileOperationVerb::Read)?;
        let left = request.length.unwrap_or(u64::MAX);
        let pieces =
            ConfinedFileReader { file, shown: asked.display_path(), offset: request.offset, left };
        Ok((FileStreamAnswer { size: facts.size, ..FileStreamAnswer::default() }, pieces))
    }

    /// Starts to write a file in pieces. An append writes to a copy of the file.
    pub fn write_stream(&self, request: &FileWrite) -> Result<ConfinedFileWriter> {
        let asked = self.parse_file_path(&request.path, FileOperationVerb::Write)?;
        let missing =
            if request.parents { MissingFolderPolicy::Make } else { MissingFolderPolicy::Fail };
        if request.mode == WriteMode::CreateNew {
            return self.write_new_stream(&asked, missing, request.permissions);
        }
        let mut target = self.resolve_write_target(&asked, missing, FileOperationVerb::Write)?;
        target.check_version(request.expected.as_deref())?;
        let shown = target.place.shown.clone();
        let failed = |errno| errors::operation_error(FileOperationVerb::Write, &shown, errno);
        // A write in place could not be undone.
        let mut draft =
            target.create_draft(FileOperationVerb::Write)?.ok_or_else(|| failed(Errno::ACCESS))?;
        if target.old.is_none() {
            draft.set_permissions(request.permissions).map_err(failed)?;
        }
        if request.mode == WriteMode::Append && target.old.is_some() {
            let mut old = target.open_old_file(FileOperationVerb::Write)?;
            std::io::copy(&mut old, &mut draft.file).map_err(|error| failed(errno_of(&error)))?;
        }
        let expected = request.expected.clone();
        Ok(ConfinedFileWriter { target, draft, taken: ExistingNamePolicy::Replaced, expected })
    }

    fn write_new_stream(
        &self,
        asked: &RequestedPath,
        missing: MissingFolderPolicy,
        permissions: Option<u32>,
    ) -> Result<ConfinedFileWriter> {
        let place = self.roots.resolve_new_name(
            asked,
            FinalLinkPolicy::Stay,
            missing,
            FileOperationVerb::Write,
        )?;
        let failed = |errno| errors::operation_error(FileOperationVerb::Write, &place.shown, errno);
        place.entry_name(FileOperationVerb::Write)?;
        if place.metadata().is_ok() {
            return Err(failed(Errno::EXIST));
        }
        let draft = DraftFile::create_draft(&place.dir).map_err(failed)?;
        draft.set_permissions(permissions).map_err(failed)?;
        let target = WriteTarget::new(place, None);
        Ok(ConfinedFileWriter { draft, target, taken: ExistingNamePolicy::Refused, expected: None })
    }
}

impl ConfinedFileReader {
    /// Reads the next piece, or returns `None` at the end.
    pub fn read_piece(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.append_piece(Vec::new(), PIECE_BYTES)?;
        self.skip_bytes(piece.len());
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Appends the next piece, of at most `bytes_max` bytes, to a buffer and returns the buffer.
    /// Appends nothing at the end. The piece is read again until it is skipped, so a dropped call
    /// loses nothing.
    pub fn append_piece(&self, mut buffer: Vec<u8>, bytes_max: usize) -> Result<Vec<u8>> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes_max);
        if wanted == 0 {
            return Ok(buffer);
        }
        let start = buffer.len();
        buffer.reserve_exact(wanted);
        loop {
            match pread(&self.file, spare_capacity(&mut buffer), self.offset) {
                Ok(_) | Err(Errno::INVAL | Errno::OVERFLOW) => break,
                Err(Errno::INTR) => {}
                Err(errno) => {
                    return Err(errors::operation_error(
                        FileOperationVerb::Read,
                        &self.shown,
                        errno,
                    ));
                }
            }
        }
        // The buffer may have had more capacity than requested.
        buffer.truncate(start + wanted);
        Ok(buffer)
    }

    /// Skips bytes.
    pub fn skip_bytes(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
        self.left = self.left.saturating_sub(bytes as u64);
    }
}

impl ConfinedFileWriter {
    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let place = &self.target.place;
        self.draft
            .write(bytes)
            .map_err(|errno| errors::operation_error(FileOperationVerb::Write, &place.shown, errno))
    }

    /// Replaces the target with the written file.
    pub fn finish(mut self) -> Result<FileFacts> {
        let place = &self.target.place;
        let failed = |errno| errors::operation_error(FileOperationVerb::Write, &place.shown, errno);
        let is_other =
            |expected: &String| place.metadata().map_or(true, |facts| facts.version() != *expected);
        if self.expected.as_ref().is_some_and(is_other) {
            return Err(errors::changed_file_error(&place.shown));
        }
        if self.taken == ExistingNamePolicy::Replaced {
            return self.target.install_draft(self.draft, FileOperationVerb::Write);
        }
        self.draft
            .rename_into_place(place.entry_name(FileOperationVerb::Write)?, self.taken)
            .map_err(failed)?;
        let stat = fstat(&self.draft.file).map_err(failed)?;
        Ok(FileMetadata::from(&stat).file_facts(&place.shown))
    }
}
