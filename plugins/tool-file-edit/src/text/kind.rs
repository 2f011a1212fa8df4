//! Detects the kind of a binary file from its first bytes, never from its name.

/// Returns the media type of an image that models can view.
pub fn detect_image_type(head: &[u8]) -> Option<&'static str> {
    let is_webp = head.len() >= 12 && head.starts_with(b"RIFF") && &head[8..12] == b"WEBP";
    let known: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1A\n", "image/png"),
        (b"\xFF\xD8\xFF", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    let found = known.into_iter().find(|(magic, _)| head.starts_with(magic));
    found.map(|(_, kind)| kind).or_else(|| is_webp.then_some("image/webp"))
}

/// Describes the kind of a binary file.
pub fn describe_binary_kind(head: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 19] = [
        (b"\x7FELF", "a program or library (ELF)"),
        (b"MZ", "a program or library (Windows)"),
        (b"\xCF\xFA\xED\xFE", "a program or library (Mach-O)"),
        (b"\xCA\xFE\xBA\xBE", "Java or Mach-O code"),
        (b"\0asm", "WebAssembly code"),
        (b"!<arch>\n", "a static library"),
        (b"%PDF-", "a PDF document"),
        (b"PK\x03\x04", "a zip archive, or a document in one"),
        (b"\x1F\x8B", "gzip data"),
        (b"\xFD7zXZ\0", "xz data"),
        (b"BZh", "bzip2 data"),
        (b"\x28\xB5\x2F\xFD", "zstd data"),
        (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"BM", "a bitmap image (BMP)"),
        (b"\0\0\x01\0", "an icon (ICO)"),
        (b"OggS", "Ogg audio or video"),
        (b"ID3", "MP3 audio"),
        (b"RIFF", "audio, video or an image (RIFF)"),
    ];
    if detect_image_type(head).is_some() {
        return "an image";
    }
    let found = KNOWN.into_iter().find(|(magic, _)| head.starts_with(magic));
    found.map_or("binary data", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_type_is_detected_by_its_first_bytes() {
        assert_eq!(detect_image_type(b"\x89PNG\r\n\x1A\n\0\0"), Some("image/png"));
        assert_eq!(detect_image_type(b"RIFF\x10\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(detect_image_type(b"RIFF\x10\0\0\0WAVE"), None);
        assert_eq!(detect_image_type(b"<svg/>"), None);
        assert_eq!(describe_binary_kind(b"\x7FELF\x02"), "a program or library (ELF)");
        assert_eq!(describe_binary_kind(b"\0\x01\x02"), "binary data");
        assert_eq!(describe_binary_kind(b""), "binary data");
    }
}
