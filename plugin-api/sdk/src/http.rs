//! HTTP through the host: one pool, its proxies and certificates, and secrets that a plugin never
//! sees.

use std::fmt;
use std::time::Duration;

use jaato_types::http::{
    HTTP_BODY, HTTP_REQUEST, HttpAnswer, HttpBody, HttpBodyAnswer, HttpRequest,
};
use jaato_types::{Error, ErrorKind, FRAME_BYTES_MAX, Result};

use crate::context::Reporter;
use crate::context::stream::Stream;

/// A request that is being put together; made by [`Reporter::http`].
#[must_use = "nothing is sent before `send`"]
pub struct HttpRequestBuilder {
    host: Reporter,
    request: HttpRequest,
    body: Vec<u8>,
    /// What follows it, where the body is put together.
    parts: Vec<BodyPart>,
}

/// A piece of a body that is put together.
enum BodyPart {
    Bytes(Vec<u8>),
    Blob { id: String, base64: bool },
}

/// Largest body that crosses with its request: a frame, less room for the request's own JSON.
const ONE_FRAME_BYTES: usize = FRAME_BYTES_MAX - 1024 * 1024;

/// Bytes of a larger body that cross at once.
const PIECE_BYTES: usize = FRAME_BYTES_MAX / 2;

/// An answer whose body is still to be read. Dropping it ends the exchange.
pub struct HttpResponse {
    head: HttpAnswer,
    body: Stream,
}

impl Reporter {
    /// Begins a request: `cx.http("POST", url)`. Nothing is sent before
    /// [`HttpRequestBuilder::send`].
    pub fn http(&self, method: &str, url: impl Into<String>) -> HttpRequestBuilder {
        let request =
            HttpRequest { method: method.to_owned(), url: url.into(), ..HttpRequest::default() };
        HttpRequestBuilder { host: self.clone(), request, body: Vec::new(), parts: Vec::new() }
    }
}

impl HttpRequestBuilder {
    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.request.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Lets the host add a credential that the plugin's description declares, by its variable.
    ///
    /// Where the person gave none, the request goes without, except to the vendor's own origin,
    /// where it fails. Where the URL is not of the person's own choice, it fails as well.
    pub fn credential(mut self, variable: &str) -> Self {
        self.request.credential = Some(variable.to_owned());
        self
    }

    /// Lets the host add a credential as [`credential`](Self::credential) does, and fail with
    /// `not_found` if the user has none of that name, wherever the server is. For a plugin that
    /// then names another one, so that nothing is sent without the credential that is there.
    pub fn required_credential(mut self, variable: &str) -> Self {
        self.request.credential_required = true;
        self.credential(variable)
    }

    /// Sets the longest wait for the answer's head, and then for each next piece of its body.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.request.timeout_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the body, at most [`HTTP_BODY_BYTES_MAX`](crate::types::http::HTTP_BODY_BYTES_MAX).
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self.parts.clear();
        self
    }

    /// Appends bytes to the body.
    pub fn append(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.parts.push(BodyPart::Bytes(bytes.into()));
        self
    }

    /// Appends a blob of the session to the body. The host reads it: its bytes do not cross.
    pub fn append_blob(mut self, id: impl Into<String>) -> Self {
        self.parts.push(BodyPart::Blob { id: id.into(), base64: false });
        self
    }

    /// Appends a blob of the session to the body as base64, which has padding and no line breaks.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn ask(cx: &Cx, image: &str) -> Result<u16> {
    /// let request = cx.http("POST", "https://vendor.example/v1/look");
    /// let request = request.append("{\"image\":\"").append_base64(image).append("\"}");
    /// Ok(request.send().await?.status())
    /// # }
    /// ```
    pub fn append_base64(mut self, id: impl Into<String>) -> Self {
        self.parts.push(BodyPart::Blob { id: id.into(), base64: true });
        self
    }

    /// Sends the request and returns once status and headers are there; any status is an answer.
    ///
    /// # Errors
    /// What keeps an answer from coming, with its retry class; `limit_reached` when the body is too
    /// large; `not_found` when the session has not a blob of it.
    pub async fn send(self) -> Result<HttpResponse> {
        let Self { host, mut request, mut body, parts } = self;
        if !parts.is_empty() || body.len() > ONE_FRAME_BYTES {
            request.body = Some(put_together(&host, &std::mem::take(&mut body), parts).await?);
        }
        let head: HttpAnswer = host.service_with_bytes(HTTP_REQUEST, &request, &body).await?;
        let body = Stream::new(host, head.handle);
        Ok(HttpResponse { head, body })
    }
}

/// Lets the host put a body together; returns its number.
async fn put_together(host: &Reporter, first: &[u8], parts: Vec<BodyPart>) -> Result<u64> {
    let mut number = None;
    // Begins also a body of nothing.
    append(host, &mut number, first).await?;
    for part in parts {
        match part {
            BodyPart::Bytes(bytes) => append(host, &mut number, &bytes).await?,
            BodyPart::Blob { id, base64 } => {
                let request =
                    HttpBody { body: number, blob: Some(id), base64, ..HttpBody::default() };
                host.service::<HttpBodyAnswer>(HTTP_BODY, &request).await?;
            }
        }
    }
    let lost = || Error::new(ErrorKind::HostBug, "the host lost a body");
    number.ok_or_else(lost)
}

async fn append(host: &Reporter, number: &mut Option<u64>, bytes: &[u8]) -> Result<()> {
    let mut rest = bytes;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(PIECE_BYTES));
        let request = HttpBody { body: *number, ..HttpBody::default() };
        let answer: HttpBodyAnswer = host.service_with_bytes(HTTP_BODY, &request, piece).await?;
        *number = Some(answer.body);
        if after.is_empty() {
            return Ok(());
        }
        rest = after;
    }
}

impl HttpResponse {
    /// Returns the status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Returns the first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns all headers, names in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.head.headers
    }

    /// Tells whether the credential that was asked for went with the request.
    pub fn with_credential(&self) -> bool {
        self.head.with_credential
    }

    /// Waits for the next piece of the body, at most 64 KiB; nothing at its end. Dropping the wait
    /// loses nothing.
    ///
    /// # Errors
    /// What broke the exchange, with its retry class.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.body.next().await
    }

    /// Reads the whole body, at most so many bytes.
    ///
    /// # Errors
    /// As [`HttpResponse::next`]; `limit_reached` when there is more.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(piece) = self.next().await? {
            if body.len() + piece.len() > bytes_max {
                let text = format!("the answer has more than {bytes_max} bytes");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// Shows no header's value: any may be a secret.
impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.head.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("HttpResponse");
        shown.field("status", &self.head.status).field("headers", &names).finish_non_exhaustive()
    }
}
