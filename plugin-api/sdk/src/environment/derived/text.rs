//! Reads text in characters or lines, over a file's bytes.

use jaato_types::files::{FileReadText, FileText, READ_BYTES_MAX, TEXT_BYTES_MAX, TextUnit};
use jaato_types::{Error, ErrorKind, Result};

use super::{WHOLE_BYTES_MAX, named, range};
use crate::context::Reporter;
use crate::environment::Files;

/// Bytes that are counted through for a range: further in, bytes are read by their offset.
const SCAN_BYTES_MAX: u64 = 16 * WHOLE_BYTES_MAX;

/// Reads text over [`Files::stat`] and [`Files::read`].
pub(in crate::environment) async fn read_text<F: Files + ?Sized>(
    files: &F,
    host: &Reporter,
    request: FileReadText,
) -> Result<FileText> {
    let path = &request.path;
    let facts = files.stat(host, named(path)).await?;
    let mut taken = Range::new(&request);
    let (mut rest, mut offset, mut is_end) = (Vec::new(), 0_u64, false);
    while !is_end && !taken.is_full() {
        let (read, bytes) = files.read(host, range(path, offset, READ_BYTES_MAX)).await?;
        is_end = bytes.is_empty() || !read.has_more;
        offset += bytes.len() as u64;
        rest.extend(bytes);
        let (text, bad) = match std::str::from_utf8(&rest) {
            Ok(text) => (text, None),
            Err(error) => {
                let good = error.valid_up_to();
                // A character may be cut where the piece ends.
                let is_cut = error.error_len().is_none() && !is_end;
                let bad = (!is_cut).then(|| offset - (rest.len() - good) as u64);
                (std::str::from_utf8(&rest[..good]).unwrap_or_default(), bad)
            }
        };
        taken.take(text);
        let done = text.len();
        if let Some(at) = bad.filter(|_| !taken.is_full()) {
            let text = format!("cannot read `{path}` as text: byte {at} is not UTF-8");
            return Err(Error::new(ErrorKind::InvalidArguments, text).with_hint("read its bytes"));
        }
        rest.drain(..done);
        if offset > SCAN_BYTES_MAX {
            let text = format!("`{path}` is too large to be counted through");
            let hint = "read bytes by their offset";
            return Err(Error::new(ErrorKind::LimitReached, text).with_hint(hint));
        }
    }
    let size = facts.size.max(taken.end);
    let has_more = taken.is_full() && taken.end < size;
    let (text, version) = (taken.text, facts.version);
    Ok(FileText { text, size, has_more, version, ..FileText::default() })
}

/// What is still to be skipped and taken, and what was taken.
struct Range {
    unit: TextUnit,
    skip: u64,
    wanted: u64,
    text: String,
    /// The byte behind what was taken.
    end: u64,
    /// The answer holds no more.
    is_cut: bool,
}

impl Range {
    fn new(request: &FileReadText) -> Self {
        Self {
            unit: request.unit,
            skip: request.offset,
            wanted: request.length.unwrap_or(u64::MAX),
            text: String::new(),
            end: 0,
            is_cut: false,
        }
    }

    fn is_full(&self) -> bool {
        self.wanted == 0 || self.is_cut
    }

    fn take(&mut self, mut piece: &str) {
        if self.skip > 0 {
            let (bytes, units) = prefix(self.unit, piece, self.skip);
            self.skip -= units;
            self.end += bytes as u64;
            piece = &piece[bytes..];
        }
        if self.skip > 0 || self.is_full() {
            return;
        }
        let (mut bytes, units) = prefix(self.unit, piece, self.wanted);
        self.wanted -= units;
        let room = TEXT_BYTES_MAX - self.text.len();
        if bytes > room {
            bytes = (0..=room).rev().find(|at| piece.is_char_boundary(*at)).unwrap_or(0);
            self.is_cut = true;
        }
        self.text.push_str(&piece[..bytes]);
        self.end += bytes as u64;
    }
}

/// The bytes that hold so many characters or lines at most, and how many these are. A line counts
/// where it ends.
fn prefix(unit: TextUnit, piece: &str, units: u64) -> (usize, u64) {
    let at_most = usize::try_from(units).unwrap_or(usize::MAX);
    match unit {
        TextUnit::Characters => match piece.char_indices().nth(at_most) {
            Some((end, _)) => (end, units),
            None => (piece.len(), piece.chars().count() as u64),
        },
        TextUnit::Lines => {
            let mut count = 0;
            for (at, _) in piece.match_indices('\n') {
                count += 1;
                if count == units {
                    return (at + 1, units);
                }
            }
            (piece.len(), count)
        }
    }
}
