//! A response: status, headers and a body that is read piece by piece.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_RANGE, HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};

use crate::{ExchangeLimits, HttpError, MaskedUrl, RequestPhase, cause};

/// Longest wait to accept from a server's `retry-after`. More is a mistake or an attack.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A response with an unread body. Dropping it ends the connection.
#[derive(Debug)]
pub struct Response {
    inner: reqwest::Response,
    url: MaskedUrl,
    limits: ExchangeLimits,
    received: u64,
    expected: Option<u64>,
}

/// The part of the resource in a `206` response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// First byte.
    pub first: u64,
    /// Last byte, included.
    pub last: u64,
    /// Size of the whole resource, if the server knows it.
    pub total: Option<u64>,
}

impl Response {
    /// Creates a response. Rejects a body whose announced length exceeds the limit, before reading
    /// any of it.
    pub(crate) fn new(inner: reqwest::Response, limits: ExchangeLimits) -> Result<Self, HttpError> {
        let url = MaskedUrl::new(inner.url());
        let expected = inner.content_length();
        if expected.is_some_and(|bytes| bytes > limits.body_bytes_max) {
            return Err(HttpError::TooLarge { url, bytes_max: limits.body_bytes_max });
        }
        Ok(Self { inner, url, limits, received: 0, expected })
    }

    /// Returns the status. Any status is an answer.
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// Returns the URL that answered, after redirects. It may hold secrets, so display only the
    /// masked one.
    pub fn url(&self) -> &Url {
        self.inner.url()
    }

    /// Returns the announced length of the body.
    pub fn content_length(&self) -> Option<u64> {
        self.expected
    }

    /// Returns the part of the resource in the body, if the header is present and valid.
    pub fn content_range(&self) -> Option<ContentRange> {
        parse_content_range(self.headers().get(CONTENT_RANGE)?.to_str().ok()?)
    }

    /// Returns how long the server asks to wait, if it says so in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
    }

    /// Turns every status except 2xx into an error.
    pub fn require_success(self) -> Result<Self, HttpError> {
        if self.status().is_success() {
            return Ok(self);
        }
        let (status, retry_after) = (self.status().as_u16(), self.retry_after());
        Err(HttpError::Status { url: self.url, status, retry_after })
    }

    /// Reads the next bytes of the body as sent (without decompression), or `None` at its end.
    /// Dropping a waiting `chunk` loses nothing.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        let next = tokio::time::timeout(self.limits.idle, self.inner.chunk()).await;
        let Ok(next) = next else {
            let (phase, after) = (RequestPhase::Body, self.limits.idle);
            return Err(HttpError::Timeout { url: self.url.clone(), phase, after });
        };
        let chunk = next.map_err(|error| {
            cause::error_in_body(error, self.url.clone(), self.received, self.expected)
        })?;
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
        }
        if self.received > self.limits.body_bytes_max {
            let bytes_max = self.limits.body_bytes_max;
            return Err(HttpError::TooLarge { url: self.url.clone(), bytes_max });
        }
        Ok(chunk)
    }

    /// Reads the whole body into memory, within the request's limit.
    pub async fn bytes(mut self) -> Result<Bytes, HttpError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

fn parse_content_range(text: &str) -> Option<ContentRange> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let total = match total.trim() {
        "*" => None,
        digits => Some(digits.parse().ok()?),
    };
    (first <= last && total.is_none_or(|total| last < total)).then_some(ContentRange {
        first,
        last,
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_is_read_or_refused() {
        let range = |first, last, total| Some(ContentRange { first, last, total });
        assert_eq!(parse_content_range("bytes 5-9/10"), range(5, 9, Some(10)));
        assert_eq!(parse_content_range("bytes 0-0/*"), range(0, 0, None));
        for bad in ["bytes */10", "5-9/10", "bytes 9-5/10", "bytes 5-9/9", "bytes a-b/c", ""] {
            assert_eq!(parse_content_range(bad), None, "{bad}");
        }
    }
}
