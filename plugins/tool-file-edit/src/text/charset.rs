//! Decodes bytes to text and encodes it again.
//!
//! Invariant: an unchanged text is encoded to the same bytes. Bytes for which this does not hold
//! are not text.
//!
//! A UTF-8 file may contain a few other bytes: a name in Latin-1, a truncated character,
//! surrogates. Each such *stray byte* becomes an unused character ([`STRAY`] plus the byte), so
//! that it can be encoded again.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The number of bytes at the start from which a binary file is detected.
const LOOK_BYTES: usize = 8 * 1024;

/// The number of bytes from which an encoding is guessed. More bytes take time without a better
/// result.
const GUESS_BYTES: usize = 1024 * 1024;

/// A non-UTF-8 file with more control characters than one per this many bytes is not text.
const BYTES_PER_CONTROL: usize = 50;

/// The encoding of a file's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset {
    encoding: &'static Encoding,
    bom: &'static [u8],
    /// Whether the text contains stray bytes.
    has_strays: bool,
}

/// The first of the last private characters of Unicode, which represent stray bytes.
const STRAY: u32 = 0x10_FF00;

/// The decoded text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText<'a> {
    /// The text, without a byte order mark.
    pub text: Cow<'a, str>,
    /// The encoding with which to write it again.
    pub charset: Charset,
}

/// The bytes are not text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotTextError;

impl Charset {
    /// The encoding of new files.
    pub const UTF_8: Self = Self { encoding: UTF_8, bom: b"", has_strays: false };

    /// Returns the encoding's name, or `None` for plain UTF-8.
    pub fn encoding_note(self) -> Option<String> {
        if self == Self::UTF_8 {
            return None;
        }
        let mut name = self.encoding.name().to_owned();
        if !self.bom.is_empty() {
            name.push_str(" with BOM");
        }
        if self.has_strays {
            name.push_str(" with other bytes, shown as � and kept");
        }
        Some(name)
    }

    /// Encodes a text.
    ///
    /// # Errors
    /// The first character that the encoding lacks.
    pub fn encode_text(self, text: Cow<'_, str>) -> Result<Vec<u8>, char> {
        // The common case, which avoids a copy.
        if self == Self::UTF_8 {
            return Ok(text.into_owned().into_bytes());
        }
        let mut bytes = self.bom.to_vec();
        if self.has_strays {
            bytes.extend(stray_text_to_bytes(&text));
        } else if self.encoding == UTF_8 {
            bytes.extend_from_slice(text.as_bytes());
        } else if self.encoding == UTF_16LE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        } else if self.encoding == UTF_16BE {
            bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
        } else {
            let (encoded, _, has_unknown) = self.encoding.encode(&text);
            if has_unknown {
                return Err(self.first_unencodable_char(&text));
            }
            bytes.extend_from_slice(&encoded);
        }
        Ok(bytes)
    }

    fn first_unencodable_char(self, text: &str) -> char {
        let mut buffer = [0; 4];
        let mut is_unknown = |c: &char| self.encoding.encode(c.encode_utf8(&mut buffer)).2;
        text.chars().find(|c| is_unknown(c)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn decode_as_charset(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let bytes = bytes.strip_prefix(self.bom)?;
        if self.has_strays {
            let text = bytes_to_stray_text(bytes);
            return (stray_text_to_bytes(&text) == bytes).then_some(Cow::Owned(text));
        }
        if self.encoding == UTF_8 {
            return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
        }
        if self.encoding == UTF_16LE {
            return decode_utf_16(bytes, u16::from_le_bytes).map(Cow::Owned);
        }
        if self.encoding == UTF_16BE {
            return decode_utf_16(bytes, u16::from_be_bytes).map(Cow::Owned);
        }
        let text = self.encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
        // Some encodings can write one character in two ways.
        (self.encode_text(Cow::Borrowed(&text)).as_deref() == Ok(bytes)).then_some(text)
    }
}

fn decode_utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(pairs.iter().copied().map(unit)).collect::<Result<_, _>>().ok()
}

/// Decodes bytes: as UTF-8, by a byte order mark, or by a guess.
///
/// # Errors
/// An error if the bytes are not text, or the text could not be encoded to the same bytes.
pub fn decode_bytes(bytes: &[u8]) -> Result<DecodedText<'_>, NotTextError> {
    if let Some(charset) = charset_from_byte_order_mark(bytes) {
        let strays = Charset { has_strays: charset.encoding == UTF_8, ..charset };
        for charset in [charset, strays] {
            if let Some(text) = charset.decode_as_charset(bytes) {
                return Ok(DecodedText { text, charset });
            }
        }
        return Err(NotTextError);
    }
    let head = &bytes[..bytes.len().min(LOOK_BYTES)];
    if memchr::memchr(0, head).is_some() {
        return Err(NotTextError);
    }
    if let Some(text) = Charset::UTF_8.decode_as_charset(bytes) {
        return Ok(DecodedText { text, charset: Charset::UTF_8 });
    }
    if head.iter().filter(|byte| is_control_byte(**byte)).count() * BYTES_PER_CONTROL > head.len() {
        return Err(NotTextError);
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(GUESS_BYTES)], true);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    let strays = Charset { has_strays: true, ..Charset::UTF_8 };
    let legacy = |encoding| Charset { encoding, ..Charset::UTF_8 };
    // In the last charset, every byte is a character.
    let charsets = match is_mostly_utf_8(bytes, guessed.is_single_byte()) {
        true => [strays, legacy(guessed), legacy(WINDOWS_1252)],
        false => [legacy(guessed), legacy(WINDOWS_1252), strays],
    };
    for charset in &charsets[..2] {
        let charset = *charset;
        if let Some(text) = charset.decode_as_charset(bytes) {
            return Ok(DecodedText { text, charset });
        }
    }
    Err(NotTextError)
}

/// Returns true if bytes are UTF-8 with few exceptions. Text in another encoding is seldom valid
/// UTF-8 by chance: almost never for single-byte encodings, but sometimes for Chinese ones.
fn is_mostly_utf_8(bytes: &[u8], is_else_single_byte: bool) -> bool {
    let (mut characters, mut strays) = (0_usize, 0_usize);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        characters += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        let is_cut_at_end = chunks.peek().is_none() && chunk.invalid().len() > 1;
        match chunk.invalid() {
            [] => {}
            // A truncated character at the end.
            _ if is_cut_at_end => characters += 1,
            _ => strays += 1,
        }
    }
    // Surrogates, as some programs write them. Such three stray bytes are not an accident.
    let is_surrogate = |bytes: &&[u8]| {
        bytes[0] == 0xED && (0xA0..=0xBF).contains(&bytes[1]) && (0x80..=0xBF).contains(&bytes[2])
    };
    let surrogates = bytes.windows(3).filter(is_surrogate).count();
    characters += surrogates;
    strays = strays.saturating_sub(3 * surrogates);
    if is_else_single_byte { characters >= strays.max(1) } else { characters > strays }
}

fn bytes_to_stray_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(
            chunk.invalid().iter().filter_map(|byte| char::from_u32(STRAY + u32::from(*byte))),
        );
    }
    text
}

fn stray_text_to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for char in text.chars() {
        match stray_byte_of_char(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    bytes
}

fn stray_byte_of_char(char: char) -> Option<u8> {
    u8::try_from(u32::from(char).checked_sub(STRAY)?).ok().filter(|byte| *byte >= 0x80)
}

/// Returns a text for display, with stray bytes as `�`.
pub fn display_text(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains(|char| stray_byte_of_char(char).is_some()) {
        true => text.replace(|char| stray_byte_of_char(char).is_some(), "\u{FFFD}").into(),
        false => text,
    }
}

/// Returns the encoding of a byte order mark.
fn charset_from_byte_order_mark(bytes: &[u8]) -> Option<Charset> {
    let known: [(&'static Encoding, &'static [u8]); 3] =
        [(UTF_8, b"\xEF\xBB\xBF"), (UTF_16LE, b"\xFF\xFE"), (UTF_16BE, b"\xFE\xFF")];
    let (encoding, bom) = known.into_iter().find(|(_, bom)| bytes.starts_with(bom))?;
    Some(Charset { encoding, bom, has_strays: false })
}

fn is_control_byte(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0C | 0x1B)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_decoding(bytes: &[u8], text: &str, remark: Option<&str>) {
        let decoded = decode_bytes(bytes).unwrap();
        assert_eq!((&*decoded.text, decoded.charset.encoding_note().as_deref()), (text, remark));
        assert_eq!(decoded.charset.encode_text(decoded.text).as_deref(), Ok(bytes));
    }

    #[test]
    fn decoded_texts_encode_to_the_same_bytes() {
        check_decoding(b"", "", None);
        check_decoding("naïve 𝄞\n".as_bytes(), "naïve 𝄞\n", None);
        check_decoding(b"\xEF\xBB\xBFa\r\n", "a\r\n", Some("UTF-8 with BOM"));
        check_decoding(b"\xFF\xFEa\0\n\0", "a\n", Some("UTF-16LE with BOM"));
        check_decoding(b"\xFE\xFF\0a\xD8\x34\xDD\x1E", "a𝄞", Some("UTF-16BE with BOM"));
        check_decoding(
            b"caf\xE9 au lait, d\xE9j\xE0 vu",
            "café au lait, déjà vu",
            Some("windows-1252"),
        );
        let (japanese, ..) = encoding_rs::SHIFT_JIS.encode("これは日本語の文章です。");
        check_decoding(&japanese, "これは日本語の文章です。", Some("Shift_JIS"));
    }

    #[test]
    fn utf8_with_a_few_invalid_bytes_is_still_utf8() {
        let strays = Some("UTF-8 with other bytes, shown as � and kept");
        for (bytes, text) in [
            (b"na\xC3\xAFve caf\xE9 x".as_slice(), "naïve caf\u{10FFE9} x"),
            (b"# \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E \xFF\n", "# 日本語 \u{10FFFF}\n"),
            (b"cut \xE6\x97", "cut \u{10FFE6}\u{10FF97}"),
            (b"cut \xC3\xA9\xC3", "cut é\u{10FFC3}"),
            (
                b"\xED\xA0\xBD\xED\xB8\x80!",
                "\u{10FFED}\u{10FFA0}\u{10FFBD}\u{10FFED}\u{10FFB8}\u{10FF80}!",
            ),
        ] {
            check_decoding(bytes, text, strays);
        }
        check_decoding(
            b"\xEF\xBB\xBF\xFF",
            "\u{10FFFF}",
            Some("UTF-8 with BOM with other bytes, shown as � and kept"),
        );
        let shown_text = display_text(decode_bytes(b"na\xC3\xAFve caf\xE9 x").unwrap().text);
        assert_eq!(shown_text, "naïve caf\u{FFFD} x");
        for (encoding, text) in [
            (encoding_rs::GBK, "配置文件路径"),
            (encoding_rs::GBK, "int main; // 中文"),
            (encoding_rs::GBK, "你好，世界。今天天气很好，我们去公园散步。"),
            (encoding_rs::BIG5, "設定檔案路徑"),
            (encoding_rs::SHIFT_JIS, "設定ファイル"),
            (encoding_rs::EUC_KR, "설정 파일"),
            (encoding_rs::EUC_JP, "設定ファイル"),
            (encoding_rs::WINDOWS_1251, "Привет, «Мир» и всё"),
            (WINDOWS_1252, "el d\u{ED}a"),
            (WINDOWS_1252, "fa\u{E7}ade d\u{E9}j\u{E0} vu"),
        ] {
            let (bytes, ..) = encoding.encode(text);
            let decoded = decode_bytes(&bytes).unwrap();
            assert!(!decoded.charset.has_strays, "{text}");
        }
    }

    #[test]
    fn random_decodable_bytes_encode_to_the_same_bytes() {
        for seed in 0..2000_u32 {
            let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
            let bytes: Vec<u8> = (0..40)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8 | 0x80
                })
                .collect();
            if let Ok(decoded) = decode_bytes(&bytes) {
                assert_eq!(decoded.charset.encode_text(decoded.text).as_deref(), Ok(&*bytes));
            }
        }
    }

    #[test]
    fn binary_data_is_refused() {
        for bytes in [
            b"\x7FELF\x02\x01\x01\0\0".as_slice(),
            b"\xFF\xFEa",
            b"\xFF\xFE\0\xD8",
            b"\x01\x02\x03\xFF\xFE\xFD",
            b"plain\0text",
        ] {
            assert_eq!(decode_bytes(bytes), Err(NotTextError), "{bytes:?}");
        }
    }

    #[test]
    fn unencodable_character_is_reported() {
        let decoded = decode_bytes(b"caf\xE9 au lait, d\xE9j\xE0 vu").unwrap();
        assert_eq!(decoded.charset.encode_text("a€ 中 文".into()), Err('中'));
    }
}
