//! Encodings: how bytes are read as text, and written again.
//!
//! Invariant: a text that is not changed is written as the same bytes. What does not come back so
//! is no text here.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes at the beginning of a file by which a binary file is known.
const LOOK_BYTES: usize = 8 * 1024;

/// Bytes that an encoding is guessed from. More costs time and says nothing else.
const GUESS_BYTES: usize = 1024 * 1024;

/// One control character in so many bytes is too many for a text that is no UTF-8.
const BYTES_PER_CONTROL: usize = 50;

/// How a file's text is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset {
    encoding: &'static Encoding,
    bom: &'static [u8],
}

/// A file's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The text, without a mark at its beginning.
    pub text: Cow<'a, str>,
    /// How to write it again.
    pub charset: Charset,
}

/// The bytes are no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotText;

impl Charset {
    /// What new files are written in.
    pub const UTF_8: Self = Self { encoding: UTF_8, bom: b"" };

    /// Returns its name where that is worth a word: none for plain UTF-8.
    pub fn remark(self) -> Option<String> {
        if self == Self::UTF_8 {
            return None;
        }
        let name = self.encoding.name();
        Some(if self.bom.is_empty() { name.to_owned() } else { format!("{name} with BOM") })
    }

    /// Writes a text as bytes.
    ///
    /// # Errors
    /// The first character that the encoding does not have.
    pub fn encode(self, text: Cow<'_, str>) -> Result<Vec<u8>, char> {
        // Most files, and then nothing is copied.
        if self == Self::UTF_8 {
            return Ok(text.into_owned().into_bytes());
        }
        let mut bytes = self.bom.to_vec();
        if self.encoding == UTF_8 {
            bytes.extend_from_slice(text.as_bytes());
        } else if self.encoding == UTF_16LE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        } else if self.encoding == UTF_16BE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        } else {
            let (encoded, _, has_unknown) = self.encoding.encode(&text);
            if has_unknown {
                return Err(self.unknown_in(&text));
            }
            bytes.extend_from_slice(&encoded);
        }
        Ok(bytes)
    }

    fn unknown_in(self, text: &str) -> char {
        let mut buffer = [0; 4];
        let mut is_unknown = |c: &char| self.encoding.encode(c.encode_utf8(&mut buffer)).2;
        text.chars().find(|c| is_unknown(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let bytes = bytes.strip_prefix(self.bom)?;
        if self.encoding == UTF_8 {
            return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        }
        if self.encoding == UTF_16LE {
            return utf_16(bytes, u16::from_le_bytes).map(Cow::Owned);
        }
        if self.encoding == UTF_16BE {
            return utf_16(bytes, u16::from_be_bytes).map(Cow::Owned);
        }
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        // Some encodings write one character in two ways.
        (self.encode(Cow::Borrowed(&text)).as_deref() == Ok(bytes)).then_some(text)
    }
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().copied().map(unit)).collect::<Result<_, _>>().ok()
}

/// Reads bytes as text: UTF-8, what a mark at the beginning says, or what they look like.
///
/// # Errors
/// They are no text, or one that could not be written again as it was.
pub fn decode(bytes: &[u8]) -> Result<Decoded<'_>, NotText> {
    if let Some(charset) = marked(bytes) {
        let text = charset.decode(bytes).ok_or(NotText)?;
        return Ok(Decoded { text, charset });
    }
    let head = &bytes[..bytes.len().min(LOOK_BYTES)];
    if memchr::memchr(0, head).is_some() {
        return Err(NotText);
    }
    if let Some(text) = Charset::UTF_8.decode(bytes) {
        return Ok(Decoded { text, charset: Charset::UTF_8 });
    }
    if head.iter().filter(|byte| is_control(**byte)).count() * BYTES_PER_CONTROL > head.len() {
        return Err(NotText);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(GUESS_BYTES)], true);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    // In the last every byte is a character.
    for encoding in [guessed, WINDOWS_1252] {
        let charset = Charset { encoding, bom: b"" };
        if let Some(text) = charset.decode(bytes) {
            return Ok(Decoded { text, charset });
        }
    }
    Err(NotText)
}

/// The encoding that a mark at the beginning names.
fn marked(bytes: &[u8]) -> Option<Charset> {
    let known: [(&'static Encoding, &'static [u8]); 3] =
        [(UTF_8, b"\xEF\xBB\xBF"), (UTF_16LE, b"\xFF\xFE"), (UTF_16BE, b"\xFE\xFF")];
    let (encoding, bom) = known.into_iter().find(|(_, bom)| bytes.starts_with(bom))?;
    Some(Charset { encoding, bom })
}

fn is_control(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], text: &str, remark: Option<&str>) {
        let decoded = decode(bytes).unwrap();
        assert_eq!((&*decoded.text, decoded.charset.remark().as_deref()), (text, remark));
        assert_eq!(decoded.charset.encode(decoded.text).as_deref(), Ok(bytes));
    }

    #[test]
    fn texts_come_back_as_the_same_bytes() {
        check(b"", "", None);
        check("naïve 𝄞\n".as_bytes(), "naïve 𝄞\n", None);
        check(b"\xEF\xBB\xBFa\r\n", "a\r\n", Some("UTF-8 with BOM"));
        check(b"\xFF\xFEa\0\n\0", "a\n", Some("UTF-16LE with BOM"));
        check(b"\xFE\xFF\0a\xD8\x34\xDD\x1E", "a𝄞", Some("UTF-16BE with BOM"));
        check(b"caf\xE9 au lait, d\xE9j\xE0 vu", "café au lait, déjà vu", Some("windows-1252"));
        let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。");
        check(&japanese, "これは日本語の文章です。", Some("Shift_JIS"));
    }

    #[test]
    fn every_byte_that_is_taken_comes_back() {
        for seed in 0..2000_u32 {
            let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
            let bytes: Vec<u8> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8 | 0x80
                })
                .collect();
            if let Ok(decoded) = decode(&bytes) {
                assert_eq!(decoded.charset.encode(decoded.text).as_deref(), Ok(&*bytes));
            }
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for bytes in [
            b"\x7FELF\x02\x01\x01\0\0".as_slice(),
            b"\xFF\xFEa",
            b"\xFF\xFE\0\xD8",
            b"\xEF\xBB\xBF\xFF",
            b"\x01\x02\x03\xFF\xFE\xFD",
            b"plain\0text",
        ] {
            assert_eq!(decode(bytes), Err(NotText), "{bytes:?}");
        }
    }

    #[test]
    fn a_character_that_the_encoding_lacks_is_named() {
        let decoded = decode(b"caf\xE9 au lait, d\xE9j\xE0 vu").unwrap();
        assert_eq!(decoded.charset.encode("a€ 中 文".into()), Err('中'));
    }
}
