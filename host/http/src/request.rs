//! A request: method, URL, headers, body, range and limits.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, RANGE};
use reqwest::{Method, Url};

use crate::{FileBody, HttpError, MaskedUrl};

/// A request. Plain data, so that it can be created from a plugin's request.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// The method.
    pub method: Method,
    /// The URL, `http` or `https`.
    pub url: Url,
    /// Headers in addition to those that the client sets itself (`host`, `user-agent`, lengths).
    pub headers: HeaderMap,
    /// The body, empty for none.
    pub body: Bytes,
    /// The body in a file, instead of `body`, if it is too large for memory.
    pub file: Option<FileBody>,
    /// The requested part of the resource.
    pub range: ByteRange,
    /// The handling of redirects.
    pub redirects: RedirectPolicy,
    /// The handling of compressed bodies.
    pub decoding: BodyDecoding,
    /// The limits on time and size.
    pub limits: ExchangeLimits,
}

/// The handling of redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectPolicy {
    /// Redirects of plain reads are followed, to another origin without headers that may be secret.
    Follow,
    /// A redirect is an error, for requests whose URL or headers hold a secret for one server.
    Refuse,
    /// Redirects of plain reads are followed on the same host. A redirect to another host is the
    /// answer, so that the caller can decide about the host.
    SameHost,
}

/// Whether a compressed body is decompressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyDecoding {
    /// The body is returned as the server sent it.
    AsSent,
    /// The client asks for gzip or brotli, and returns the decompressed body. The limit on its
    /// size counts decompressed bytes.
    Decompress,
}

/// A part of a resource, in bytes from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// All of it.
    Whole,
    /// From this byte to the end.
    From(u64),
    /// From the first to the last byte, both included.
    Between(u64, u64),
}

/// Limits of one exchange. Connecting has its own limit in the client's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Longest wait for status and headers, including connecting.
    pub answer: Duration,
    /// Longest wait for the next bytes of the body.
    pub idle: Duration,
    /// Longest time for the whole exchange, with redirects and the body.
    pub total: Option<Duration>,
    /// Maximum bytes of a body.
    pub body_bytes_max: u64,
}

impl Default for ExchangeLimits {
    /// 60 s for an answer, 30 s of silence, 16 MiB, no limit in total. Enough for APIs, and larger
    /// downloads set their own limits.
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(60),
            idle: Duration::from_secs(30),
            total: None,
            body_bytes_max: 16 * 1024 * 1024,
        }
    }
}

impl OutgoingRequest {
    /// Creates a `GET` without headers. Fails if the URL cannot be parsed or is not `http(s)`.
    pub fn get(url: &str) -> Result<Self, HttpError> {
        Self::new(Method::GET, url)
    }

    /// Creates a request without headers and body. Fails as [`OutgoingRequest::get`] does.
    pub fn new(method: Method, url: &str) -> Result<Self, HttpError> {
        Ok(Self {
            method,
            url: parse_url(url)?,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            file: None,
            range: ByteRange::Whole,
            redirects: RedirectPolicy::Follow,
            decoding: BodyDecoding::AsSent,
            limits: ExchangeLimits::default(),
        })
    }

    /// Returns the length of the body.
    pub fn body_bytes(&self) -> u64 {
        self.file.as_ref().map_or(self.body.len() as u64, FileBody::bytes)
    }

    /// Returns the headers to send.
    pub(crate) fn all_headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        if self.decoding == BodyDecoding::Decompress {
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        }
        let range = match self.range {
            ByteRange::Whole => return headers,
            ByteRange::From(first) => format!("bytes={first}-"),
            ByteRange::Between(first, last) => format!("bytes={first}-{last}"),
        };
        if let Ok(value) = HeaderValue::from_str(&range) {
            headers.insert(RANGE, value);
        } else {
            unreachable!("digits and a dash are a valid header value");
        }
        headers
    }
}

/// Shows the masked URL and the names of the headers, because their values may be secrets.
impl fmt::Debug for OutgoingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("method", &self.method)
            .field("url", &MaskedUrl::new(&self.url).to_string())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("body_bytes", &self.body_bytes())
            .field("range", &self.range)
            .field("redirects", &self.redirects)
            .field("limits", &self.limits)
            .finish()
    }
}

fn parse_url(text: &str) -> Result<Url, HttpError> {
    let refuse =
        |reason: String| HttpError::BadUrl { url: MaskedUrl::from_unreadable(text), reason };
    let url = Url::parse(text).map_err(|error| refuse(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse(format!("`{}` is neither http nor https", url.scheme())));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_and_https_urls_are_accepted() {
        let error = OutgoingRequest::get("file:///etc/passwd?x=1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use the url `file:///etc/passwd?…`: `file` is neither http nor https"
        );
        assert_eq!(
            OutgoingRequest::get("weights.gguf").unwrap_err().to_string(),
            "cannot use the url `weights.gguf`: relative URL without a base"
        );
    }

    #[test]
    fn debug_tells_no_secret() {
        let mut request = OutgoingRequest::get("https://me:pw-1@h.example/?key=pw-2").unwrap();
        request.headers.insert("authorization", HeaderValue::from_static("Bearer pw-3"));
        let shown = format!("{request:?}");
        assert!(shown.contains("authorization") && !shown.contains("pw-"), "{shown}");
    }
}
