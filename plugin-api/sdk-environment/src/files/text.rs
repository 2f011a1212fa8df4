//! Reads text, counted in characters or lines, without holding the whole file.

use jaato_types::Result;
use jaato_types::files::{FileReadText, FileText};
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, read};

use super::confined::ConfinedFiles;
use crate::engine::TextReader;
use crate::errors::{self, FileOperationVerb};

/// The number of bytes that are read at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// The buffer size for a file whose reported size is wrong, such as a file in `/proc`.
const MIN_CHUNK_BYTES: usize = 4096;

impl ConfinedFiles {
    /// Reads text without changing line ends.
    pub fn read_text(&self, request: &FileReadText) -> Result<FileText> {
        let asked = self.requested_path(&request.path)?;
        let shown = asked.display_path();
        let (file, facts) = self.roots.open_file(&asked, FileOperationVerb::Read)?;
        let told = shown.to_string_lossy();
        let mut text = TextReader::new(request, &told);
        let capacity = usize::try_from(facts.size).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        let mut chunk: Vec<u8> = Vec::with_capacity(capacity.max(MIN_CHUNK_BYTES));
        loop {
            chunk.clear();
            match read(&file, spare_capacity(&mut chunk)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(errno) => {
                    return Err(errors::operation_error(FileOperationVerb::Read, &shown, errno));
                }
            }
            if !text.push_piece(&chunk)? {
                return Ok(text.finish(facts.size, Some(facts.version())));
            }
        }
    }
}
