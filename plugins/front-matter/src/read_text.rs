//! Reads text files that untrusted authors may have written.

use std::fs;
use std::io::Read;
use std::path::Path;

use encoding_rs::UTF_8;

/// One in this many characters may be a byte that is not UTF-8.
const STRAYS_SHARE: usize = 20;

/// Reads a text of at most `bytes_max` bytes. Only a regular file is read, because a pipe would
/// never end.
///
/// # Errors
/// An error of one line.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("it has more than {bytes_max} bytes"));
    }
    decode_text(&bytes)
}

/// Decodes UTF-8, with a few invalid bytes that become `�`, or UTF-16 with a byte order mark. Line
/// ends become `\n`.
///
/// # Errors
/// An error of one line if it is not text.
pub fn decode_text(bytes: &[u8]) -> Result<String, String> {
    let text = decode_utf_8_or_16(bytes).ok_or("it is not UTF-8 text")?;
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    Ok(if text.contains('\n') { text } else { text.replace('\r', "\n") })
}

fn decode_utf_8_or_16(bytes: &[u8]) -> Option<String> {
    let (text, encoding, is_damaged) = UTF_8.decode(bytes);
    if encoding != UTF_8 {
        // A byte order mark alone could be anything.
        return (!is_damaged && !text.is_empty()).then(|| text.into_owned());
    }
    if !is_damaged {
        return Some(text.into_owned());
    }
    let strays = text.chars().filter(|sign| *sign == char::REPLACEMENT_CHARACTER).count();
    let is_text = strays * STRAYS_SHARE <= text.chars().count() && !text.contains('\0');
    is_text.then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_must_be_a_regular_text_file_of_limited_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        fs::write(&path, "\u{feff}a\r\nb").unwrap();
        assert_eq!(read_text(&path, 100).unwrap(), "a\nb");
        assert!(read_text(&path, 7).is_ok());
        assert_eq!(read_text(&path, 6).unwrap_err(), "it has more than 6 bytes");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(read_text(&path, 6).unwrap_err(), "it is not UTF-8 text");
        assert_eq!(read_text(Path::new("/dev/zero"), 6).unwrap_err(), "it is not a regular file");
    }
}
