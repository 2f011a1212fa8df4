//! Decompresses a body piece by piece, within a limit.

use std::io::{self, Write};

use brotli_decompressor::{BrotliDecoderParameter, DecompressorWriter};
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// The size of the decompressor's output buffer for brotli, in bytes.
const BROTLI_BUFFER: usize = 16 * 1024;

/// Decompresses the pieces of a body.
pub(crate) enum BodyDecoder {
    /// The body is not compressed.
    Plain,
    Gzip(MultiGzDecoder<BoundedOutput>),
    Deflate(ZlibDecoder<BoundedOutput>),
    Brotli(Box<DecompressorWriter<BoundedOutput>>),
}

/// Why a body cannot be decompressed.
#[derive(Debug)]
pub(crate) enum DecodeProblem {
    /// It is larger than allowed.
    TooLarge,
    /// It is not valid, or incomplete.
    Invalid(String),
}

/// Collects decompressed bytes, and fails beyond the limit.
pub(crate) struct BoundedOutput {
    bytes: Vec<u8>,
    room: u64,
}

impl Write for BoundedOutput {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let Some(room) = self.room.checked_sub(piece.len() as u64) else {
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.room = room;
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl BodyDecoder {
    /// Creates the decoder for the value of `content-encoding`. Returns `None` if it is not known.
    pub(crate) fn for_encoding(encoding: &str, bytes_max: u64) -> Option<Self> {
        let output = BoundedOutput { bytes: Vec::new(), room: bytes_max };
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Plain),
            "gzip" | "x-gzip" => Some(Self::Gzip(MultiGzDecoder::new(output))),
            "deflate" => Some(Self::Deflate(ZlibDecoder::new(output))),
            "br" => {
                let mut decoder = DecompressorWriter::new(output, BROTLI_BUFFER);
                // Otherwise a body could ask for a window of 1 GiB instead of 16 MiB.
                let large_window = BrotliDecoderParameter::BROTLI_DECODER_PARAM_LARGE_WINDOW;
                decoder.set_parameter(large_window, 0);
                Some(Self::Brotli(Box::new(decoder)))
            }
            _ => None,
        }
    }

    /// Decompresses a piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<u8>, DecodeProblem> {
        let (written, output) = match self {
            Self::Plain => return Ok(piece.to_vec()),
            Self::Gzip(decoder) => (decoder.write_all(piece), decoder.get_mut()),
            Self::Deflate(decoder) => (decoder.write_all(piece), decoder.get_mut()),
            Self::Brotli(decoder) => (decoder.write_all(piece), decoder.get_mut()),
        };
        written.map_err(decode_problem)?;
        Ok(std::mem::take(&mut output.bytes))
    }

    /// Returns the rest after the last piece. Fails if the body is incomplete.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>, DecodeProblem> {
        let (finished, output) = match self {
            Self::Plain => return Ok(Vec::new()),
            Self::Gzip(decoder) => (decoder.try_finish(), decoder.get_mut()),
            Self::Deflate(decoder) => (decoder.try_finish(), decoder.get_mut()),
            Self::Brotli(decoder) => (decoder.close(), decoder.get_mut()),
        };
        finished.map_err(decode_problem)?;
        Ok(std::mem::take(&mut output.bytes))
    }
}

fn decode_problem(error: io::Error) -> DecodeProblem {
    match error.kind() {
        io::ErrorKind::FileTooLarge => DecodeProblem::TooLarge,
        _ => DecodeProblem::Invalid(error.to_string()),
    }
}
