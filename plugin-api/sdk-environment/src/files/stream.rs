//! Streams that read and write files in pieces.

use std::path::PathBuf;

use jaato_types::Result;
use jaato_types::files::{FileFacts, FileRead, FileStreamed, FileWrite, WriteMode};
use rustix::buffer::spare_capacity;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use rustix::io::{Errno, pread};

use super::asked::Asked;
use super::confined::Confined;
use super::draft::{Draft, Taken, errno_of};
use super::steps::{Last, Missing};
use super::write::Target;
use crate::errors::{self, Verb};
use crate::platform::Facts;

/// The largest piece that is read. It is as large as the boundary allows, because each system call
/// takes some microseconds.
pub const PIECE_BYTES: usize = jaato_types::execution::PIECE_BYTES_MAX;

/// A file that is read in pieces.
#[derive(Debug)]
pub struct Pieces {
    file: OwnedFd,
    shown: PathBuf,
    offset: u64,
    left: u64,
}

/// A file that is written in pieces. If it is dropped before it is finished, the old file stays
/// unchanged.
#[derive(Debug)]
pub struct Writer {
    target: Target,
    draft: Draft,
    taken: Taken,
    /// The expected version of the file that it replaces, if the caller named one.
    expected: Option<String>,
}

impl Confined {
    /// Starts to read a file in pieces.
    pub fn read_stream(&self, request: &FileRead) -> Result<(FileStreamed, Pieces)> {
        let asked = self.asked(&request.path)?;
        let (file, facts) = self.roots.open_file(&asked, Verb::Read)?;
        let left = request.length.unwrap_or(u64::MAX);
        let pieces = Pieces { file, shown: asked.shown(), offset: request.offset, left };
        Ok((FileStreamed { size: facts.size, ..FileStreamed::default() }, pieces))
    }

    /// Starts to write a file in pieces. An append writes to a copy of the file.
    pub fn write_stream(&self, request: &FileWrite) -> Result<Writer> {
        let asked = self.asked_file(&request.path, Verb::Write)?;
        let missing = if request.parents { Missing::Make } else { Missing::Fail };
        if request.mode == WriteMode::CreateNew {
            return self.write_new_stream(&asked, missing, request.permissions);
        }
        let mut target = self.target(&asked, missing, Verb::Write)?;
        target.check_expected(request.expected.as_deref())?;
        let shown = target.place.shown.clone();
        let failed = |errno| errors::failed(Verb::Write, &shown, errno);
        // A write in place could not be undone.
        let mut draft = target.draft(Verb::Write)?.ok_or_else(|| failed(Errno::ACCESS))?;
        if target.old.is_none() {
            draft.permit(request.permissions).map_err(failed)?;
        }
        if request.mode == WriteMode::Append && target.old.is_some() {
            let mut old = target.open_old(Verb::Write)?;
            std::io::copy(&mut old, &mut draft.file).map_err(|error| failed(errno_of(&error)))?;
        }
        let expected = request.expected.clone();
        Ok(Writer { target, draft, taken: Taken::Replaced, expected })
    }

    fn write_new_stream(
        &self,
        asked: &Asked,
        missing: Missing,
        permissions: Option<u32>,
    ) -> Result<Writer> {
        let place = self.roots.find_name(asked, Last::Stay, missing, Verb::Write)?;
        let failed = |errno| errors::failed(Verb::Write, &place.shown, errno);
        place.name(Verb::Write)?;
        if place.facts().is_ok() {
            return Err(failed(Errno::EXIST));
        }
        let draft = Draft::begin(&place.dir).map_err(failed)?;
        draft.permit(permissions).map_err(failed)?;
        let target = Target::new(place, None);
        Ok(Writer { draft, target, taken: Taken::Refused, expected: None })
    }
}

impl Pieces {
    /// Reads the next piece, or returns `None` at the end.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.read_behind(Vec::new(), PIECE_BYTES)?;
        self.skip(piece.len());
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Appends the next piece, of at most `bytes_max` bytes, to a buffer and returns the buffer.
    /// Appends nothing at the end. The piece is read again until it is skipped, so a dropped call
    /// loses nothing.
    pub fn read_behind(&self, mut buffer: Vec<u8>, bytes_max: usize) -> Result<Vec<u8>> {
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
                Err(errno) => return Err(errors::failed(Verb::Read, &self.shown, errno)),
            }
        }
        // The buffer may have had more capacity than requested.
        buffer.truncate(start + wanted);
        Ok(buffer)
    }

    /// Skips bytes.
    pub fn skip(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
        self.left = self.left.saturating_sub(bytes as u64);
    }
}

impl Writer {
    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let place = &self.target.place;
        self.draft.write(bytes).map_err(|errno| errors::failed(Verb::Write, &place.shown, errno))
    }

    /// Replaces the target with the written file.
    pub fn finish(mut self) -> Result<FileFacts> {
        let place = &self.target.place;
        let failed = |errno| errors::failed(Verb::Write, &place.shown, errno);
        let is_other =
            |expected: &String| place.facts().map_or(true, |facts| facts.version() != *expected);
        if self.expected.as_ref().is_some_and(is_other) {
            return Err(errors::changed(&place.shown));
        }
        if self.taken == Taken::Replaced {
            return self.target.put(self.draft, Verb::Write);
        }
        self.draft.place(place.name(Verb::Write)?, self.taken).map_err(failed)?;
        let stat = fstat(&self.draft.file).map_err(failed)?;
        Ok(Facts::from(&stat).told(&place.shown))
    }
}
