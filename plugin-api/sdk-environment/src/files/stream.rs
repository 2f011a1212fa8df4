//! Files piece by piece, both ways.

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

/// Bytes of a piece that is read, at most. As many as may cross: a system call costs some
/// microseconds beside what it reads.
pub const PIECE_BYTES: usize = jaato_types::execution::PIECE_BYTES_MAX;

/// A file that is read piece by piece.
#[derive(Debug)]
pub struct Pieces {
    file: OwnedFd,
    shown: PathBuf,
    offset: u64,
    left: u64,
}

/// A file that is written piece by piece. Dropped before it is finished, it leaves the old one as
/// it was.
#[derive(Debug)]
pub struct Writer {
    target: Target,
    draft: Draft,
    taken: Taken,
    /// The version of the file that it replaces, where somebody cares.
    expected: Option<String>,
}

impl Confined {
    /// Begins to read a file piece by piece.
    pub fn read_stream(&self, request: &FileRead) -> Result<(FileStreamed, Pieces)> {
        let asked = self.asked(&request.path)?;
        let (file, facts) = self.roots.open_file(&asked, Verb::Read)?;
        let left = request.length.unwrap_or(u64::MAX);
        let pieces = Pieces { file, shown: asked.shown(), offset: request.offset, left };
        Ok((FileStreamed { size: facts.size, ..FileStreamed::default() }, pieces))
    }

    /// Begins to write a file piece by piece. What is appended is appended to a copy.
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
        // Written in place, it could not be left as it was.
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
    /// Reads the next piece; none at the end.
    pub fn read(&mut self) -> Result<Option<Vec<u8>>> {
        let piece = self.read_behind(Vec::new(), PIECE_BYTES)?;
        self.skip(piece.len());
        Ok((!piece.is_empty()).then_some(piece))
    }

    /// Appends what comes next, of so many bytes at most, to a buffer, and gives that back; nothing
    /// at the end. It comes again until it is skipped: who stops waiting for it has lost nothing.
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
        // The buffer may have had more room than was asked for.
        buffer.truncate(start + wanted);
        Ok(buffer)
    }

    /// Goes past bytes.
    pub fn skip(&mut self, bytes: usize) {
        self.offset = self.offset.saturating_add(bytes as u64);
        self.left = self.left.saturating_sub(bytes as u64);
    }
}

impl Writer {
    /// Writes behind what was written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let place = &self.target.place;
        self.draft.write(bytes).map_err(|errno| errors::failed(Verb::Write, &place.shown, errno))
    }

    /// Puts the file in its place.
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
