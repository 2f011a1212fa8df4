//! Files piece by piece, over reading ranges and writing whole.

use jaato_types::execution::PIECE_BYTES_MAX;
use jaato_types::files::{FileFacts, FileKind, FileRead, FileWrite};
use jaato_types::{Error, ErrorKind, Result};

use super::{WHOLE_BYTES_MAX, named, range, too_large};
use crate::context::Reporter;
use crate::environment::Files;

/// A file that is read range by range.
pub(in crate::environment) struct Ranges {
    path: String,
    offset: u64,
    /// Bytes that are still wanted.
    left: u64,
}

impl Ranges {
    /// Looks at the file and gives its size.
    pub(in crate::environment) async fn open<F: Files + ?Sized>(
        files: &F,
        host: &Reporter,
        read: FileRead,
    ) -> Result<(u64, Self)> {
        let FileRead { path, offset, length, .. } = read;
        let facts = files.stat(host, named(&path)).await?;
        if facts.kind == FileKind::Folder {
            let text = format!("cannot read `{path}`: it is a folder");
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        Ok((facts.size, Self { path, offset, left: length.unwrap_or(u64::MAX) }))
    }

    /// Appends the next piece to the buffer; nothing at the end.
    pub(in crate::environment) async fn next<F: Files + ?Sized>(
        &mut self,
        files: &F,
        host: &Reporter,
        mut buffer: Vec<u8>,
    ) -> Result<Vec<u8>> {
        let length = self.left.min(PIECE_BYTES_MAX as u64);
        if length == 0 {
            return Ok(buffer);
        }
        let (_, bytes) = files.read(host, range(&self.path, self.offset, length)).await?;
        self.offset += bytes.len() as u64;
        self.left = self.left.saturating_sub(bytes.len() as u64);
        buffer.extend(bytes);
        Ok(buffer)
    }
}

/// A file that is collected and then written at once, so that dropping it leaves what was there.
pub(in crate::environment) struct Draft {
    write: FileWrite,
    bytes: Vec<u8>,
    /// Bytes were lost: it must not be put in its place.
    is_lost: bool,
}

impl Draft {
    pub(in crate::environment) fn new(write: FileWrite) -> Self {
        Self { write, bytes: Vec::new(), is_lost: false }
    }

    /// Takes what comes next.
    pub(in crate::environment) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if (self.bytes.len() + bytes.len()) as u64 > WHOLE_BYTES_MAX {
            self.is_lost = true;
            self.bytes = Vec::new();
            return Err(too_large(&self.write.path, "write it in parts"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes it.
    pub(in crate::environment) async fn finish<F: Files + ?Sized>(
        self,
        files: &F,
        host: &Reporter,
    ) -> Result<FileFacts> {
        if self.is_lost {
            let error = Error::new(ErrorKind::Io, "writing the file has failed before");
            return Err(error.with_hint("write it anew"));
        }
        files.write(host, self.write, self.bytes).await
    }
}
