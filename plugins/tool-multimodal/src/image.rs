//! Reads an image's type and size from its first bytes. Knows nothing about plugins.

use jaato_plugin_sdk::types::media_type::detect_media_type;

/// The largest file in bytes, which is more than vendors accept.
pub const BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Returns the media type of an image that models accept: PNG, JPEG, GIF or WebP.
pub fn image_media_type(bytes: &[u8]) -> Option<&'static str> {
    detect_media_type(bytes).filter(|media_type| media_type.starts_with("image/"))
}

/// Reads width and height in pixels, if the file states them directly.
pub fn image_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let (width, height) = match image_media_type(bytes)? {
        "image/png" => (read_big_endian(bytes.get(16..20)?), read_big_endian(bytes.get(20..24)?)),
        "image/gif" => {
            (read_little_endian(bytes.get(6..8)?), read_little_endian(bytes.get(8..10)?))
        }
        "image/jpeg" => jpeg_size(bytes)?,
        "image/webp" => webp_size(bytes)?,
        _ => return None,
    };
    (width > 0 && height > 0).then_some((width, height))
}

/// Goes from segment to segment until one starts a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        let head = bytes.get(at..at + 4)?;
        let (mark, length) = (head[1], usize::try_from(read_big_endian(&head[2..4])).ok()?);
        if head[0] != 0xff {
            return None;
        }
        match mark {
            // A fill byte.
            0xff => at += 1,
            // All start-of-frame markers. Three markers in this range have other meanings.
            0xc0..=0xcf if !matches!(mark, 0xc4 | 0xc8 | 0xcc) => {
                return Some((
                    read_big_endian(bytes.get(at + 7..at + 9)?),
                    read_big_endian(bytes.get(at + 5..at + 7)?),
                ));
            }
            // The pixels start, or the file ends.
            0xda | 0xd9 => return None,
            _ => at += 2 + length.max(2),
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u64, u64)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((
            1 + read_little_endian(bytes.get(24..27)?),
            1 + read_little_endian(bytes.get(27..30)?),
        )),
        b"VP8L" => {
            let bits = read_little_endian(bytes.get(21..25)?);
            Some((1 + (bits & 0x3fff), 1 + ((bits >> 14) & 0x3fff)))
        }
        b"VP8 " => {
            let side = |bytes| read_little_endian(bytes) & 0x3fff;
            Some((side(bytes.get(26..28)?), side(bytes.get(28..30)?)))
        }
        _ => None,
    }
}

fn read_big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn read_little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_image(bytes: &[u8], media_type: Option<&str>, size: Option<(u64, u64)>) {
        assert_eq!((image_media_type(bytes), image_size(bytes)), (media_type, size));
    }

    #[test]
    fn image_type_and_size_are_read_from_its_bytes() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\x68\x08";
        check_image(png, Some("image/png"), Some((640, 360)));
        check_image(b"GIF89a\x0a\x00\x14\x01", Some("image/gif"), Some((10, 276)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x02\xff\xc2\0\x11\x08\x01\x68\x02\x80";
        check_image(jpeg, Some("image/jpeg"), Some((640, 360)));
        let webp = |rest: &[u8]| [b"RIFF\0\0\0\0WEBP", rest].concat();
        let extended = webp(b"VP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\x67\x01\0");
        check_image(&extended, Some("image/webp"), Some((640, 360)));
        let lossless = webp(b"VP8L\x0a\0\0\0\x2f\x7f\xc2\x59\0");
        check_image(&lossless, Some("image/webp"), Some((640, 360)));
        let lossy = webp(b"VP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a\x80\x02\x68\x01");
        check_image(&lossy, Some("image/webp"), Some((640, 360)));
    }

    #[test]
    fn truncated_image_has_a_type_but_no_size() {
        check_image(b"\x89PNG\r\n\x1a\n", Some("image/png"), None);
        check_image(b"\xff\xd8\xff\xe0\0\0\0\0\0\0", Some("image/jpeg"), None);
        check_image(b"\xff\xd8\xff\xda\0\x04abcd", Some("image/jpeg"), None);
        check_image(b"RIFF\0\0\0\0WEBPVP8Z", Some("image/webp"), None);
        check_image(b"GIF89a\0\0\0\0", Some("image/gif"), None);
    }

    #[test]
    fn unsupported_formats_are_not_images() {
        for bytes in [&b""[..], b"%PDF-1.7", b"<svg/>", b"BM\0\0", b"hello"] {
            check_image(bytes, None, None);
        }
    }
}
