//! Decodes bytes to text.

use encoding_rs::{Encoding, UTF_8};

/// The part of a page in which its charset must be declared.
const DECLARED_WITHIN: usize = 1024;

/// Decodes a body. The charset is that of a byte order mark, of the header `content-type`, of the
/// page itself, or a guess.
pub fn decode_body(bytes: &[u8], content_type: &str) -> String {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding.decode(bytes).0.into_owned();
    }
    let declared = parse_label_after(content_type, "charset=").and_then(encoding_for_label);
    let encoding =
        declared.or_else(|| declared_encoding(bytes)).unwrap_or_else(|| guess_encoding(bytes));
    encoding.decode_without_bom_handling(bytes).0.into_owned()
}

fn encoding_for_label(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
}

/// Reads `<meta charset=…>`, `<meta … content="…; charset=…">` or an XML declaration.
fn declared_encoding(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(DECLARED_WITHIN)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let in_meta = start.split("<meta").skip(1).find_map(|rest| {
        let tag = rest.split('>').next().unwrap_or(rest);
        parse_label_after(tag, "charset=").and_then(encoding_for_label)
    });
    let in_xml = || {
        let declaration = start.trim_start().strip_prefix("<?xml")?.split("?>").next()?;
        parse_label_after(declaration, "encoding=").and_then(encoding_for_label)
    };
    // The page was read as ASCII up to here, so it cannot be UTF-16.
    let found = in_meta.or_else(in_xml)?;
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

/// Returns the label after a word, without quotes.
fn parse_label_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let at = text.to_ascii_lowercase().find(word)?;
    let label = text[at + word.len()..].trim_start_matches(['"', '\'', ' ']);
    let is_end = |letter: char| letter.is_whitespace() || "\"';,>/".contains(letter);
    label.split(is_end).next().filter(|label| !label.is_empty())
}

fn guess_encoding(bytes: &[u8]) -> &'static Encoding {
    if std::str::from_utf8(bytes).is_ok() {
        return UTF_8;
    }
    let options = chardetng::Iso2022JpDetection::Deny;
    let mut detector = chardetng::EncodingDetector::new(options);
    detector.feed(bytes, true);
    detector.guess(None, chardetng::Utf8Detection::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charset_comes_from_mark_header_page_or_guess() {
        assert_eq!(decode_body(b"\xef\xbb\xbfh\xc3\xa9", "text/html; charset=iso-8859-1"), "hé");
        assert_eq!(decode_body(b"\xff\xfeh\0", ""), "h");
        assert_eq!(decode_body(b"h\xe9", "text/html; Charset=\"ISO-8859-1\""), "hé");
        let meta = b"<html><meta charset='windows-1251'>\xcf\xf0\xe8\xe2\xe5\xf2";
        assert!(decode_body(meta, "text/html").ends_with("Привет"));
        let old =
            b"<meta http-equiv=content-type content=\"text/html; charset=shift_jis\">\x93\xfa";
        assert!(decode_body(old, "text/html").ends_with('日'));
        let xml = b"<?xml version='1.0' encoding='iso-8859-2'?><a>\xb1</a>";
        assert!(decode_body(xml, "text/xml").contains('ą'));
        assert_eq!(decode_body("grün".as_bytes(), "text/plain"), "grün");
        assert_eq!(
            decode_body(b"gr\xfcn und sch\xf6n, \xfcber die Stra\xdfe", ""),
            "grün und schön, über die Straße"
        );
    }

    #[test]
    fn unknown_charset_and_broken_text_still_give_text() {
        assert_eq!(decode_body(b"plain", "text/html; charset=klingon"), "plain");
        assert_eq!(decode_body(b"a\xffb", "text/html; charset=utf-8"), "a\u{fffd}b");
        assert_eq!(decode_body(b"<meta charset=utf-16>x", ""), "<meta charset=utf-16>x");
        assert_eq!(decode_body(b"", ""), "");
    }
}
