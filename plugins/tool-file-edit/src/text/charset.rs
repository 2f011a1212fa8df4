//! Encodings: how bytes are read as text, and written again.
//!
//! Invariant: a text that is not changed is written as the same bytes. What does not come back so
//! is no text here.
//!
//! A file of UTF-8 may have a few other bytes in it: a name in Latin-1, a character that was cut,
//! surrogates. Such a *stray byte* becomes an unused character ([`STRAY`] and the byte), so that it
//! is written again as it was.

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
    /// Whether other bytes than UTF-8 are in it.
    has_strays: bool,
}

/// The last private characters of Unicode, by the byte that each is for.
const STRAY: u32 = 0x10_FF00;

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
    pub const UTF_8: Self = Self { encoding: UTF_8, bom: b"", has_strays: false };

    /// Returns its name where that is worth a word: none for plain UTF-8.
    pub fn remark(self) -> Option<String> {
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
        if self.has_strays {
            bytes.extend(with_strays(&text));
        } else if self.encoding == UTF_8 {
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
        if self.has_strays {
            let text = text_with_strays(bytes);
            return (with_strays(&text) == bytes).then_some(Cow::Owned(text));
        }
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
        let strays = Charset { has_strays: charset.encoding == UTF_8, ..charset };
        for charset in [charset, strays] {
            if let Some(text) = charset.decode(bytes) {
                return Ok(Decoded { text, charset });
            }
        }
        return Err(NotText);
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
    let strays = Charset { has_strays: true, ..Charset::UTF_8 };
    let legacy = |encoding| Charset { encoding, ..Charset::UTF_8 };
    // In the last every byte is a character.
    let charsets = match is_mostly_utf_8(bytes, guessed.is_single_byte()) {
        true => [strays, legacy(guessed), legacy(WINDOWS_1252)],
        false => [legacy(guessed), legacy(WINDOWS_1252), strays],
    };
    for charset in &charsets[..2] {
        let charset = *charset;
        if let Some(text) = charset.decode(bytes) {
            return Ok(Decoded { text, charset });
        }
    }
    Err(NotText)
}

/// Whether bytes are UTF-8 but for a few. In another encoding, bytes are seldom a character of
/// UTF-8 by chance: almost never where each byte is a character, but now and then in Chinese.
fn is_mostly_utf_8(bytes: &[u8], is_else_single_byte: bool) -> bool {
    let (mut characters, mut strays) = (0_usize, 0_usize);
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        characters += chunk.valid().chars().filter(|char| !char.is_ascii()).count();
        let is_cut_at_end = chunks.peek().is_none() && chunk.invalid().len() > 1;
        match chunk.invalid() {
            [] => {}
            // A character that was cut.
            _ if is_cut_at_end => characters += 1,
            _ => strays += 1,
        }
    }
    // Surrogates, as some programs write them: three stray bytes that are no accident.
    let is_surrogate = |bytes: &&[u8]| {
        bytes[0] == 0xED && (0xA0..=0xBF).contains(&bytes[1]) && (0x80..=0xBF).contains(&bytes[2])
    };
    let surrogates = bytes.windows(3).filter(is_surrogate).count();
    characters += surrogates;
    strays = strays.saturating_sub(3 * surrogates);
    if is_else_single_byte { characters >= strays.max(1) } else { characters > strays }
}

fn text_with_strays(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(
            chunk.invalid().iter().filter_map(|byte| char::from_u32(STRAY + u32::from(*byte))),
        );
    }
    text
}

fn with_strays(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut buffer = [0; 4];
    for char in text.chars() {
        match stray(char) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(char.encode_utf8(&mut buffer).as_bytes()),
        }
    }
    bytes
}

fn stray(char: char) -> Option<u8> {
    u8::try_from(u32::from(char).checked_sub(STRAY)?).ok().filter(|byte| *byte >= 0x80)
}

/// A text as it is shown: stray bytes as `�`.
pub fn shown(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains(|char| stray(char).is_some()) {
        true => text.replace(|char| stray(char).is_some(), "\u{FFFD}").into(),
        false => text,
    }
}

/// The encoding that a mark at the beginning names.
fn marked(bytes: &[u8]) -> Option<Charset> {
    let known: [(&'static Encoding, &'static [u8]); 3] =
        [(UTF_8, b"\xEF\xBB\xBF"), (UTF_16LE, b"\xFF\xFE"), (UTF_16BE, b"\xFE\xFF")];
    let (encoding, bom) = known.into_iter().find(|(_, bom)| bytes.starts_with(bom))?;
    Some(Charset { encoding, bom, has_strays: false })
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
    fn utf_8_with_a_few_other_bytes_is_utf_8() {
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
            check(bytes, text, strays);
        }
        check(
            b"\xEF\xBB\xBF\xFF",
            "\u{10FFFF}",
            Some("UTF-8 with BOM with other bytes, shown as � and kept"),
        );
        let shown_text = shown(decode(b"na\xC3\xAFve caf\xE9 x").unwrap().text);
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
            let decoded = decode(&bytes).unwrap();
            assert!(!decoded.charset.has_strays, "{text}");
        }
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
