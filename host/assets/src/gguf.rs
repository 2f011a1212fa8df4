//! Reads the architecture from a GGUF file's header, without trusting any of its numbers.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::AssetError;

/// Maximum bytes to read for the header. Vocabularies of big models take about 10 MB.
const HEADER_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Maximum number of metadata entries. Real models have a few dozen.
const ENTRIES_MAX: u64 = 10_000;

/// Longest name of an entry or an architecture.
const NAME_BYTES_MAX: u64 = 64 * 1024;

/// Deepest nesting of lists. Real models do not nest them.
const DEPTH_MAX: u32 = 4;

const ARCHITECTURE: &str = "general.architecture";
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// Returns a model's architecture according to its header.
pub(crate) fn read_architecture(path: &Path) -> Result<String, AssetError> {
    let file = File::open(path).map_err(|error| AssetError::from_io("open", path, error))?;
    let mut header = GgufHeader { inner: BufReader::new(file).take(HEADER_BYTES_MAX) };
    header.find_architecture().map_err(|problem| match problem {
        GgufProblem::Bad(reason) => AssetError::NotGguf { path: path.to_owned(), reason },
        GgufProblem::Io(error) => AssetError::from_io("read", path, error),
    })
}

enum GgufProblem {
    Bad(String),
    Io(io::Error),
}

impl From<io::Error> for GgufProblem {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => header_problem("it ends within its header"),
            _ => Self::Io(error),
        }
    }
}

fn header_problem(reason: impl Into<String>) -> GgufProblem {
    GgufProblem::Bad(reason.into())
}

struct GgufHeader<R> {
    inner: io::Take<R>,
}

impl<R: Read> GgufHeader<R> {
    fn find_architecture(&mut self) -> Result<String, GgufProblem> {
        if self.read_array::<4>()? != *b"GGUF" {
            return Err(header_problem("it does not begin with `GGUF`"));
        }
        let version = self.read_u32()?;
        if !matches!(version, 2 | 3) {
            return Err(header_problem(format!("its version is {version}, and 2 and 3 are known")));
        }
        let _tensors = self.read_u64()?;
        let entries = self.read_u64()?;
        if entries > ENTRIES_MAX {
            return Err(header_problem(format!("its header declares {entries} entries")));
        }
        for _ in 0..entries {
            let key = self.read_text()?;
            let kind = self.read_u32()?;
            if key == ARCHITECTURE {
                if kind != STRING {
                    return Err(header_problem(format!("its `{ARCHITECTURE}` is not a text")));
                }
                return self.read_text();
            }
            self.skip_value(kind, 0)?;
        }
        Err(header_problem(format!("it has no `{ARCHITECTURE}`")))
    }

    fn skip_value(&mut self, kind: u32, depth: u32) -> Result<(), GgufProblem> {
        match (value_size(kind), kind) {
            (Some(bytes), _) => self.skip_bytes(bytes),
            (None, STRING) => {
                let length = self.read_u64()?;
                self.skip_bytes(length)
            }
            (None, ARRAY) if depth < DEPTH_MAX => {
                let inner = self.read_u32()?;
                let count = self.read_u64()?;
                if let Some(bytes) = value_size(inner) {
                    return self.skip_bytes(count.saturating_mul(bytes));
                }
                // Limited by the bytes of the header, because each step reads some or fails.
                (0..count).try_for_each(|_| self.skip_value(inner, depth + 1))
            }
            (None, ARRAY) => Err(header_problem("its lists are nested too deeply")),
            (None, other) => {
                Err(header_problem(format!("it has a value of the unknown kind {other}")))
            }
        }
    }

    fn skip_bytes(&mut self, bytes: u64) -> Result<(), GgufProblem> {
        let skipped = io::copy(&mut (&mut self.inner).take(bytes), &mut io::sink())?;
        if skipped < bytes {
            Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
        } else {
            Ok(())
        }
    }

    fn read_text(&mut self) -> Result<String, GgufProblem> {
        let length = self.read_u64()?;
        if length > NAME_BYTES_MAX {
            return Err(header_problem(format!("it has a name of {length} bytes")));
        }
        let mut bytes = Vec::new();
        (&mut self.inner).take(length).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        String::from_utf8(bytes).map_err(|_| header_problem("it has a name that is not text"))
    }

    fn read_array<const N: usize>(&mut self) -> Result<[u8; N], GgufProblem> {
        let mut bytes = [0; N];
        self.inner.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn read_u32(&mut self) -> Result<u32, GgufProblem> {
        Ok(u32::from_le_bytes(self.read_array()?))
    }

    fn read_u64(&mut self) -> Result<u64, GgufProblem> {
        Ok(u64::from_le_bytes(self.read_array()?))
    }
}

/// Returns the size of a value of a plain kind.
fn value_size(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode_text(value: &str) -> Vec<u8> {
        [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
    }

    fn encode_entry(key: &str, kind: u32, value: &[u8]) -> Vec<u8> {
        [&encode_text(key)[..], &kind.to_le_bytes(), value].concat()
    }

    fn encode_list(kind: u32, count: u64, values: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &count.to_le_bytes(), values].concat()
    }

    fn encode_file(version: u32, count: u64, entries: &[Vec<u8>]) -> Vec<u8> {
        let head = [&b"GGUF"[..], &version.to_le_bytes(), &[0; 8], &count.to_le_bytes()].concat();
        [head, entries.concat()].concat()
    }

    #[track_caller]
    fn check_architecture(bytes: &[u8], expected: Result<&str, &str>) {
        let mut header = GgufHeader { inner: bytes.take(HEADER_BYTES_MAX) };
        let result = header.find_architecture().map_err(|problem| match problem {
            GgufProblem::Bad(reason) => reason,
            GgufProblem::Io(error) => panic!("{error}"),
        });
        assert_eq!(result.as_deref().map_err(String::as_str), expected);
    }

    fn qwen_architecture_entry() -> Vec<u8> {
        encode_entry(ARCHITECTURE, STRING, &encode_text("qwen2"))
    }

    #[test]
    fn gguf_architecture_is_found_at_any_position_in_the_header() {
        check_architecture(&encode_file(3, 1, &[qwen_architecture_entry()]), Ok("qwen2"));
        let words = [encode_text("a"), encode_text("bcd")].concat();
        let before = [
            encode_entry("a.u8", 0, &[1]),
            encode_entry("a.f64", 12, &[0; 8]),
            encode_entry("a.text", STRING, &encode_text("x")),
            encode_entry("a.numbers", ARRAY, &encode_list(5, 3, &[0; 12])),
            encode_entry("a.words", ARRAY, &encode_list(STRING, 2, &words)),
            encode_entry("a.nested", ARRAY, &encode_list(ARRAY, 1, &encode_list(7, 2, &[0, 1]))),
            qwen_architecture_entry(),
        ];
        check_architecture(&encode_file(2, 7, &before), Ok("qwen2"));
    }

    #[test]
    fn files_that_are_not_valid_gguf_are_refused() {
        check_architecture(b"PK\x03\x04 this is a zip", Err("it does not begin with `GGUF`"));
        check_architecture(b"GG", Err("it ends within its header"));
        check_architecture(
            &encode_file(1, 1, &[qwen_architecture_entry()]),
            Err("its version is 1, and 2 and 3 are known"),
        );
        check_architecture(&encode_file(3, 0, &[]), Err("it has no `general.architecture`"));
        let number = encode_entry(ARCHITECTURE, 4, &[0; 4]);
        check_architecture(
            &encode_file(3, 1, &[number]),
            Err("its `general.architecture` is not a text"),
        );
    }

    #[test]
    fn truncated_gguf_header_is_refused_without_a_panic() {
        let whole = encode_file(
            3,
            2,
            &[
                encode_entry("x", ARRAY, &encode_list(STRING, 1, &encode_text("y"))),
                qwen_architecture_entry(),
            ],
        );
        for length in 4..whole.len() {
            check_architecture(&whole[..length], Err("it ends within its header"));
        }
    }

    #[test]
    fn huge_counts_in_a_gguf_header_are_refused_without_allocation() {
        check_architecture(
            &encode_file(3, u64::MAX, &[]),
            Err("its header declares 18446744073709551615 entries"),
        );
        let long_key = [&u64::MAX.to_le_bytes()[..], b"x"].concat();
        check_architecture(
            &encode_file(3, 1, &[long_key]),
            Err("it has a name of 18446744073709551615 bytes"),
        );
        for kind in [5, STRING] {
            let long_list = encode_entry("x", ARRAY, &encode_list(kind, u64::MAX, &[0; 8]));
            check_architecture(&encode_file(3, 2, &[long_list]), Err("it ends within its header"));
        }
        let nested =
            (0..10).fold(encode_list(0, 1, &[0]), |inner, _| encode_list(ARRAY, 1, &inner));
        check_architecture(
            &encode_file(3, 1, &[encode_entry("x", ARRAY, &nested)]),
            Err("its lists are nested too deeply"),
        );
        let unknown = encode_entry("x", 99, &[]);
        check_architecture(
            &encode_file(3, 1, &[unknown]),
            Err("it has a value of the unknown kind 99"),
        );
    }
}
