//! Media types: their syntax, and detection from the first bytes of a file.
//!
//! The host and the fake host share this code, so that both detect a wrong media type in the same
//! cases.

/// The maximum length of a media type with its parameters, in bytes.
pub const MEDIA_TYPE_BYTES_MAX: usize = 127;

/// The number of bytes at the start of a file that [`detect_media_type`] examines.
pub const MEDIA_TYPE_HEAD_BYTES: usize = 16;

/// The types that are detected by their first bytes. They include the types that models accept.
const KNOWN: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];

/// The type of arbitrary data.
const ANYTHING: &str = "application/octet-stream";

/// Returns true if a text is a media type such as `image/png`, with or without parameters, in
/// printable ASCII of at most [`MEDIA_TYPE_BYTES_MAX`] bytes.
pub fn is_media_type(text: &str) -> bool {
    let is_word = |word: &str| {
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&it);
        !word.is_empty() && word.bytes().all(is_plain)
    };
    let is_type =
        strip_parameters(text).split_once('/').is_some_and(|(of, sub)| is_word(of) && is_word(sub));
    let is_printable = text.bytes().all(|it| (b' '..=b'~').contains(&it));
    is_type && is_printable && text.len() <= MEDIA_TYPE_BYTES_MAX
}

/// Detects the media type of a file from its first bytes: PNG, JPEG, GIF, WebP or PDF. Returns
/// `None` for other types.
pub fn detect_media_type(head: &[u8]) -> Option<&'static str> {
    let [png, jpeg, gif, webp, pdf] = KNOWN;
    match head {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some(png),
        [0xff, 0xd8, 0xff, ..] => Some(jpeg),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(gif),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(webp),
        [b'%', b'P', b'D', b'F', b'-', ..] => Some(pdf),
        _ => None,
    }
}

/// Compares the declared media type of a file with its first bytes. If they differ, the error
/// contains the detected type, or `application/octet-stream` if none is detected.
///
/// Only the types that [`detect_media_type`] detects are checked. The declared type
/// `application/octet-stream` is valid for any file.
///
/// # Errors
/// The media type that the bytes have.
pub fn check_media_type(said: &str, head: &[u8]) -> Result<(), &'static str> {
    let said = strip_parameters(said).to_ascii_lowercase();
    match detect_media_type(head) {
        Some(shown) if shown == said || said == ANYTHING => Ok(()),
        Some(shown) => Err(shown),
        None if KNOWN.contains(&said.as_str()) => Err(ANYTHING),
        None => Ok(()),
    }
}

/// Returns the type without its parameters.
fn strip_parameters(text: &str) -> &str {
    text.split(';').next().unwrap_or_default().trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_needs_two_parts_and_may_have_parameters() {
        for good in ["image/png", "text/plain; charset=utf-8", "application/vnd.x+json"] {
            assert!(is_media_type(good), "{good}");
        }
        let at_most = |bytes: usize| is_media_type(&format!("a/{}", "b".repeat(bytes - 2)));
        assert!(at_most(MEDIA_TYPE_BYTES_MAX) && !at_most(MEDIA_TYPE_BYTES_MAX + 1));
        for bad in ["", "png", "/", "image/", "a/b/c", "a/b\r\nx: y", "a b/c", "ä/b", " a/b"] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    #[test]
    fn first_bytes_identify_five_media_types() {
        let webp = b"RIFF\x24\0\0\0WEBPVP8 ";
        let heads: [&[u8]; 5] = [PNG, b"\xff\xd8\xff\xe0", b"GIF89a", webp, b"%PDF-1.7"];
        for (head, name) in heads.into_iter().zip(KNOWN) {
            assert_eq!(detect_media_type(head), Some(name));
            assert_eq!(detect_media_type(&head[1..]), None, "{name}");
            assert!(head.len() <= MEDIA_TYPE_HEAD_BYTES);
        }
        for head in [&b""[..], b"RIFF\x24\0\0\0WAVEfmt ", b"P6 200", b"<svg", &PNG[..7]] {
            assert_eq!(detect_media_type(head), None);
        }
    }

    #[test]
    fn declared_media_type_must_match_the_bytes() {
        assert_eq!(check_media_type("image/png", PNG), Ok(()));
        assert_eq!(check_media_type("IMAGE/PNG; a=b", PNG), Ok(()));
        assert_eq!(check_media_type("image/jpg", b"\xff\xd8\xff\xe0"), Err("image/jpeg"));
        assert_eq!(check_media_type("application/octet-stream", PNG), Ok(()));
        assert_eq!(check_media_type("image/x-portable-pixmap", b"P6 1 1 255\n"), Ok(()));
        assert_eq!(check_media_type("text/plain", b""), Ok(()));
        assert_eq!(check_media_type("image/jpeg", PNG), Err("image/png"));
        assert_eq!(check_media_type("text/plain", PNG), Err("image/png"));
        assert_eq!(check_media_type("image/png", b"<html>"), Err("application/octet-stream"));
        assert_eq!(check_media_type("application/pdf", b""), Err("application/octet-stream"));
    }
}
