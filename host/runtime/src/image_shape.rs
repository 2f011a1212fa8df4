//! Reads the size of PNG, JPEG, GIF and WebP images, and whether a file is complete. Pure.
//!
//! Nothing is decoded: the headers give the image's size, and the file's structure gives its end.

use jaato_types::media_type::detect_media_type;

const CUT: &str = "the file is damaged: it ends in the middle";
const NO_SIZE: &str = "the file is damaged: the size of the image is missing";

/// The kind of content in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageShape {
    /// A complete image with this many pixels.
    Image { width: u32, height: u32 },
    /// An image that no program can show, and why.
    Damaged(&'static str),
    /// Anything else.
    Unknown,
}

/// Examines all bytes of a file.
pub(crate) fn detect_image_shape(bytes: &[u8]) -> ImageShape {
    let (size, is_whole) = match detect_media_type(bytes) {
        Some("image/png") => (size_of_png(bytes), is_whole_png(bytes)),
        Some("image/jpeg") => (size_of_jpeg(bytes), is_whole_jpeg(bytes)),
        Some("image/gif") => (size_of_gif(bytes), is_whole_gif(bytes)),
        Some("image/webp") => (size_of_webp(bytes), is_whole_webp(bytes)),
        Some(_) | None => return ImageShape::Unknown,
    };
    match size {
        _ if !is_whole => ImageShape::Damaged(CUT),
        Some((width, height)) if width > 0 && height > 0 => ImageShape::Image { width, height },
        Some(_) | None => ImageShape::Damaged(NO_SIZE),
    }
}

fn size_of_png(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((read_big_endian(bytes, 16)?, read_big_endian(bytes, 20)?))
}

/// Follows the chunks up to `IEND`.
fn is_whole_png(bytes: &[u8]) -> bool {
    let mut at = 8;
    while let Some(length) = read_big_endian(bytes, at) {
        let end = at.saturating_add(length as usize).saturating_add(12);
        if end > bytes.len() {
            return false;
        }
        if bytes.get(at + 4..at + 8) == Some(b"IEND") {
            return true;
        }
        at = end;
    }
    false
}

/// Follows the segments up to the start of a frame.
fn size_of_jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        // Any number of fill bytes may precede a marker.
        let marker = bytes.get(at..)?.iter().position(|byte| *byte != 0xff).filter(|it| *it > 0)?;
        at += marker;
        match *bytes.get(at)? {
            // Huffman tables, an extension and arithmetic coding use numbers in the range of
            // frames.
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => {
                let sides = bytes.get(at + 4..at + 8)?;
                let side = |at: usize| u32::from(u16::from_be_bytes([sides[at], sides[at + 1]]));
                return Some((side(2), side(0)));
            }
            // These markers have no segment.
            0x01 | 0xd0..=0xd8 => {
                at += 1;
                continue;
            }
            // The scan or the end comes before any frame.
            0xd9 | 0xda => return None,
            _ => {}
        }
        let length = bytes.get(at + 1..at + 3)?;
        at += 1 + usize::from(u16::from_be_bytes([length[0], length[1]]));
    }
}

/// Finds the end of the image. Cameras write more data after it.
fn is_whole_jpeg(bytes: &[u8]) -> bool {
    let scan = bytes.windows(2).position(|pair| pair == [0xff, 0xda]);
    scan.is_some_and(|scan| bytes[scan..].windows(2).rev().any(|pair| pair == [0xff, 0xd9]))
}

fn size_of_gif(bytes: &[u8]) -> Option<(u32, u32)> {
    Some((read_little_endian(bytes, 6)?, read_little_endian(bytes, 8)?))
}

/// Follows the blocks up to the trailer. Viewers also show an image without a trailer.
fn is_whole_gif(bytes: &[u8]) -> bool {
    let follow = || -> Option<()> {
        let table = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
        let mut at = 13 + table(*bytes.get(10)?);
        let mut has_image = false;
        loop {
            match bytes.get(at) {
                None => return has_image.then_some(()),
                Some(0x21) => at += 2,
                Some(0x2c) => {
                    at += 11 + table(*bytes.get(at + 9)?);
                    has_image = true;
                }
                // A trailer, or a byte that viewers treat as one.
                Some(_) => return Some(()),
            }
            loop {
                let length = usize::from(*bytes.get(at)?);
                at += 1 + length;
                if length == 0 {
                    break;
                }
            }
        }
    };
    follow().is_some()
}

fn size_of_webp(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => {
            Some((read_little_endian(bytes, 26)? & 0x3fff, read_little_endian(bytes, 28)? & 0x3fff))
        }
        b"VP8L" => {
            let bits = u32::from_le_bytes(bytes.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
        }
        b"VP8X" => {
            let side = |at: usize| {
                let three = bytes.get(at..at + 3)?;
                Some(u32::from_le_bytes([three[0], three[1], three[2], 0]) + 1)
            };
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

fn is_whole_webp(bytes: &[u8]) -> bool {
    let length = bytes.get(4..8).and_then(|four| four.try_into().ok()).map(u32::from_le_bytes);
    length.is_some_and(|length| bytes.len() >= length as usize + 8)
}

fn read_big_endian(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn read_little_endian(bytes: &[u8], at: usize) -> Option<u32> {
    let two = bytes.get(at..at + 2)?;
    Some(u32::from(u16::from_le_bytes(two.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_bytes(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        bytes.extend(b"\x08\x02\0\0\0....\0\0\0\x02IDATxx....\0\0\0\0IEND....");
        bytes
    }

    fn jpeg_bytes() -> Vec<u8> {
        let mut bytes =
            b"\xff\xd8\xff\xe0\x00\x04JF\xff\xc4\x00\x03\0\xff\xff\xc0\x00\x0b\x08".to_vec();
        bytes.extend(b"\x00\x14\x23\x29\x01\x01\x11\0\xff\xda\x00\x02abc\xff\xd9behind");
        bytes
    }

    const GIF: &[u8] = b"GIF89a\x07\0\x05\0\x80\0\0abcdef\x21\xf9\x04\0\0\0\0\0\
                         \x2c\0\0\0\0\x07\0\x05\0\0\x02\x02\x44\x01\0\x3b";

    fn webp_bytes(kind: &[u8; 4], head: &[u8]) -> Vec<u8> {
        let length = u32::try_from(12 + head.len()).unwrap();
        let parts: [&[u8]; 5] = [b"RIFF", &length.to_le_bytes(), b"WEBP", kind, &[0; 4]];
        [&parts.concat(), head].concat()
    }

    #[test]
    fn image_size_is_read_for_every_format() {
        let lossy = webp_bytes(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\x80\x20\0");
        let lossless = webp_bytes(b"VP8L", b"\x2f\x0f\xc0\x07\0");
        let extended = webp_bytes(b"VP8X", b"\0\0\0\0\x0f\0\0\x1f\0\0");
        for (bytes, width, height) in [
            (png_bytes(9001, 20), 9001, 20),
            (jpeg_bytes(), 9001, 20),
            (GIF.to_vec(), 7, 5),
            (lossy, 16, 32),
            (lossless, 16, 32),
            (extended, 16, 32),
        ] {
            assert_eq!(
                detect_image_shape(&bytes),
                ImageShape::Image { width, height },
                "{bytes:?}"
            );
            let behind = [&bytes[..], b"more"].concat();
            assert_eq!(detect_image_shape(&behind), ImageShape::Image { width, height });
        }
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_damaged_and_never_panics() {
        let lossless = webp_bytes(b"VP8L", b"\x2f\x0f\xc0\x07\0");
        for whole in [png_bytes(3, 4), jpeg_bytes(), GIF.to_vec(), lossless] {
            let rest = if whole.starts_with(b"\xff") { 7 } else { 2 };
            let end = whole.len() - rest;
            for length in 0..=end {
                let shape = detect_image_shape(&whole[..length]);
                assert!(!matches!(shape, ImageShape::Image { .. }), "{length}: {shape:?}");
            }
        }
    }

    #[test]
    fn data_that_is_not_an_image_has_an_unknown_shape() {
        for bytes in [&b""[..], b"%PDF-1.7", b"hello", b"RIFF"] {
            assert_eq!(detect_image_shape(bytes), ImageShape::Unknown);
        }
        assert_eq!(detect_image_shape(&png_bytes(0, 9)), ImageShape::Damaged(NO_SIZE));
        assert_eq!(
            detect_image_shape(b"\xff\xd8\xff\xda\x00\x02\xff\xd9"),
            ImageShape::Damaged(NO_SIZE)
        );
    }
}
