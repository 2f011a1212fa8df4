//! A response: status, headers and a body that is read piece by piece.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, HeaderMap, RETRY_AFTER};
use reqwest::{StatusCode, Url};
use tokio::time::Instant;

use crate::decode::{BodyDecoder, DecodeProblem};
use crate::{
    BodyDecoding, ExchangeLimits, HttpError, MaskedUrl, OutgoingRequest, RequestPhase, cause,
};

/// Longest wait to accept from a server's `retry-after`. More is a mistake or an attack.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A response with an unread body. Dropping it ends the connection.
pub struct Response {
    inner: reqwest::Response,
    url: MaskedUrl,
    limits: ExchangeLimits,
    received: u64,
    expected: Option<u64>,
    decoder: BodyDecoder,
    /// When the whole exchange must be over, and the time that it had.
    deadline: Option<(Instant, Duration)>,
    is_finished: bool,
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

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl Response {
    /// Creates a response. Rejects a body whose announced length exceeds the limit, before reading
    /// any of it.
    pub(crate) fn new(
        inner: reqwest::Response,
        request: &OutgoingRequest,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<Self, HttpError> {
        let (url, limits) = (MaskedUrl::new(inner.url()), request.limits);
        let expected = inner.content_length();
        if expected.is_some_and(|bytes| bytes > limits.body_bytes_max) {
            return Err(HttpError::TooLarge { url, bytes_max: limits.body_bytes_max });
        }
        let decoder = match request.decoding {
            BodyDecoding::AsSent => BodyDecoder::Plain,
            BodyDecoding::Decompress => decoder_for(&inner, &url, limits)?,
        };
        let (received, is_finished) = (0, false);
        Ok(Self { inner, url, limits, received, expected, decoder, deadline, is_finished })
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

    /// Reads the next bytes of the body, or `None` at its end. Dropping a waiting `chunk` loses
    /// nothing.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let Some(sent) = self.next_received().await? else {
                // The body of a `HEAD` is empty, however it is encoded.
                if std::mem::replace(&mut self.is_finished, true) || self.received == 0 {
                    return Ok(None);
                }
                let rest = self.decoder.finish().map_err(|problem| self.decode_error(problem))?;
                return Ok((!rest.is_empty()).then(|| rest.into()));
            };
            if matches!(self.decoder, BodyDecoder::Plain) {
                return Ok(Some(sent));
            }
            let piece = self.decoder.push(&sent).map_err(|problem| self.decode_error(problem))?;
            if !piece.is_empty() {
                return Ok(Some(piece.into()));
            }
        }
    }

    /// Reads the next bytes of the body as sent.
    async fn next_received(&mut self) -> Result<Option<Bytes>, HttpError> {
        let (wait, after) = remaining_wait(self.deadline, self.limits.idle);
        let Ok(next) = tokio::time::timeout(wait, self.inner.chunk()).await else {
            return Err(HttpError::Timeout {
                url: self.url.clone(),
                phase: RequestPhase::Body,
                after,
            });
        };
        let chunk = next.map_err(|error| {
            cause::error_in_body(error, self.url.clone(), self.received, self.expected)
        })?;
        if let Some(chunk) = &chunk {
            self.received += chunk.len() as u64;
        }
        if self.received > self.limits.body_bytes_max {
            return Err(self.decode_error(DecodeProblem::TooLarge));
        }
        Ok(chunk)
    }

    fn decode_error(&self, problem: DecodeProblem) -> HttpError {
        let url = self.url.clone();
        match problem {
            DecodeProblem::TooLarge => {
                HttpError::TooLarge { url, bytes_max: self.limits.body_bytes_max }
            }
            DecodeProblem::Invalid(reason) => {
                HttpError::Transfer { url, reason: format!("cannot decompress the body: {reason}") }
            }
        }
    }

    /// Reads the whole body into memory, within the request's limit.
    pub async fn bytes(mut self) -> Result<Bytes, HttpError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.next_chunk().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }
}

/// Returns the decoder for the encoding that the server used.
fn decoder_for(
    inner: &reqwest::Response,
    url: &MaskedUrl,
    limits: ExchangeLimits,
) -> Result<BodyDecoder, HttpError> {
    let encoding = inner.headers().get(CONTENT_ENCODING);
    let encoding = String::from_utf8_lossy(encoding.map_or(b"", |value| value.as_bytes()));
    BodyDecoder::for_encoding(&encoding, limits.body_bytes_max).ok_or_else(|| {
        let encoding: String = encoding.chars().filter(|it| !it.is_control()).take(40).collect();
        let reason = format!("the body has the encoding `{encoding}`, which was not requested");
        HttpError::Transfer { url: url.clone(), reason }
    })
}

/// Returns how long to wait: at most `longest`, and not beyond the deadline. The second value is
/// the time to name in an error.
pub(crate) fn remaining_wait(
    deadline: Option<(Instant, Duration)>,
    longest: Duration,
) -> (Duration, Duration) {
    match deadline {
        Some((at, total)) => {
            let rest = at.saturating_duration_since(Instant::now());
            if rest < longest { (rest, total) } else { (longest, longest) }
        }
        None => (longest, longest),
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
