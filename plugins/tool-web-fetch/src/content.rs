//! Decides what a loaded file is.

use jaato_plugin_sdk::types::media_type::detect_media_type;
use url::Url;

use crate::cache::LoadedPage;

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// A page.
    Html,
    /// JSON.
    Json,
    /// XML, a feed or a drawing.
    Xml,
    /// Markdown.
    Markdown,
    /// Any other text.
    Text,
    /// An image that models may see.
    Image,
    /// A PDF document.
    Pdf,
    /// Anything else.
    Binary,
}

/// Endings of binary files, if the server does not name their type.
const BINARY_ENDINGS: [&str; 14] = [
    ".7z", ".bin", ".dmg", ".exe", ".gz", ".iso", ".jar", ".mp3", ".mp4", ".rar", ".tar", ".woff2",
    ".xz", ".zip",
];

impl ContentKind {
    /// Decides by the header `content-type`, the URL, and the first bytes if they are known.
    pub fn from_page(page: &LoadedPage) -> Self {
        let named = page.header("content-type").unwrap_or_default();
        let named = named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_unnamed =
            matches!(named.as_str(), "" | "application/octet-stream" | "unknown/unknown");
        if is_unnamed { Self::guess_from_page(page) } else { Self::from_media_type(&named) }
    }

    fn from_media_type(named: &str) -> Self {
        match named {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "application/json" | "text/json" => Self::Json,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "application/pdf" => Self::Pdf,
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Self::Image,
            "text/xml" | "application/xml" => Self::Xml,
            "application/javascript"
            | "application/ecmascript"
            | "application/toml"
            | "application/yaml"
            | "application/x-yaml"
            | "application/x-ndjson"
            | "application/x-sh"
            | "application/sql" => Self::Text,
            _ if named.ends_with("+json") => Self::Json,
            _ if named.ends_with("+xml") => Self::Xml,
            _ if named.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }

    fn guess_from_page(page: &LoadedPage) -> Self {
        let path = Url::parse(&page.url).map(|url| url.path().to_ascii_lowercase());
        let path = path.unwrap_or_default();
        let ends = |ending: &str| path.ends_with(ending);
        if BINARY_ENDINGS.into_iter().any(ends) {
            return Self::Binary;
        }
        if page.body.is_empty() {
            return if ends(".pdf") { Self::Pdf } else { Self::Text };
        }
        match detect_media_type(&page.body) {
            Some("application/pdf") => return Self::Pdf,
            Some(image) if image.starts_with("image/") => return Self::Image,
            Some(_) | None => {}
        }
        let start = &page.body[..page.body.len().min(1024)];
        if start.contains(&0) && !start.starts_with(b"\xff\xfe") && !start.starts_with(b"\xfe\xff")
        {
            return Self::Binary;
        }
        let start = String::from_utf8_lossy(start).trim_start().to_ascii_lowercase();
        match start.as_str() {
            _ if start.starts_with("<!doctype html") || start.starts_with("<html") => Self::Html,
            _ if start.starts_with("<?xml") => Self::Xml,
            _ if ends(".json") => Self::Json,
            _ if ends(".md") => Self::Markdown,
            _ => Self::Text,
        }
    }

    /// Returns true if the body cannot be shown, so that it need not be loaded.
    pub fn is_binary(self) -> bool {
        matches!(self, Self::Pdf | Self::Binary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_content_kind(content_type: &str, path: &str, body: &[u8], expected: ContentKind) {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        let url = format!("https://a.example{path}");
        let page = LoadedPage { url, status: 200, headers, body: body.to_vec() };
        assert_eq!(ContentKind::from_page(&page), expected, "{content_type} {path}");
    }

    #[test]
    fn kind_comes_from_the_media_type() {
        check_content_kind("text/html; charset=utf-8", "/", b"", ContentKind::Html);
        check_content_kind("application/vnd.api+json", "/", b"", ContentKind::Json);
        check_content_kind("application/rss+xml", "/", b"", ContentKind::Xml);
        check_content_kind("Text/Plain", "/", b"", ContentKind::Text);
        check_content_kind("application/pdf", "/", b"", ContentKind::Pdf);
        check_content_kind("image/png", "/", b"", ContentKind::Image);
        check_content_kind("application/vnd.ms-excel", "/", b"", ContentKind::Binary);
        check_content_kind("video/mp4", "/", b"", ContentKind::Binary);
    }

    #[test]
    fn kind_comes_from_the_bytes_if_no_type_is_named() {
        check_content_kind("", "/", b" <!DOCTYPE HTML><p>", ContentKind::Html);
        check_content_kind("application/octet-stream", "/x", b"a\0b", ContentKind::Binary);
        check_content_kind("application/octet-stream", "/x.zip", b"", ContentKind::Binary);
        check_content_kind("", "/x", b"%PDF-1.7 ...", ContentKind::Pdf);
        check_content_kind("", "/x.json", b"{}", ContentKind::Json);
        check_content_kind("", "/x", b"hello", ContentKind::Text);
    }
}
