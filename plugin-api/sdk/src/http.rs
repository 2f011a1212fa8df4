//! HTTP through the host, with its connection pool, proxies and certificates, and with secrets that
//! the plugin never sees.

use std::fmt;
use std::time::Duration;

use jaato_types::http::{
    HTTP_BODY, HTTP_CREDENTIAL, HTTP_REQUEST, HttpAnswer, HttpBody, HttpBodyAnswer, HttpCredential,
    HttpCredentialAnswer, HttpPurpose, HttpRequest,
};
use jaato_types::{Error, ErrorKind, FRAME_BYTES_MAX, Result};

use crate::context::Reporter;
use crate::context::stream::ServiceStream;

/// A builder for a request. Made by [`Reporter::http`].
#[must_use = "nothing is sent before `send`"]
pub struct HttpRequestBuilder {
    host: Reporter,
    request: HttpRequest,
    body: Vec<u8>,
    /// The parts that follow `body`, if the host assembles the body.
    parts: Vec<BodyPart>,
}

/// A part of a body that the host assembles.
enum BodyPart {
    Bytes(Vec<u8>),
    Blob { id: String, base64: bool },
}

/// The maximum size of a body that fits into its request's frame: the frame size without 1 MiB for
/// the request's JSON.
const ONE_FRAME_BYTES: usize = FRAME_BYTES_MAX - 1024 * 1024;

/// The number of bytes of a larger body in one request.
const PIECE_BYTES: usize = FRAME_BYTES_MAX / 2;

/// A response whose body has not been read yet. Dropping it ends the exchange.
pub struct HttpResponse {
    head: HttpAnswer,
    body: ServiceStream,
}

impl Reporter {
    /// Creates a request: `cx.http("POST", url)`. [`HttpRequestBuilder::send`] sends it.
    pub fn http(&self, method: &str, url: impl Into<String>) -> HttpRequestBuilder {
        let request =
            HttpRequest { method: method.to_owned(), url: url.into(), ..HttpRequest::default() };
        HttpRequestBuilder { host: self.clone(), request, body: Vec::new(), parts: Vec::new() }
    }

    /// Returns true if the user has set a credential of the plugin's description, named by its
    /// variable, and the plugin may use it.
    ///
    /// # Errors
    /// `invalid_arguments` if the description has no such credential.
    pub async fn has_credential(&self, variable: &str) -> Result<bool> {
        let request = HttpCredential { variable: variable.to_owned(), ..HttpCredential::default() };
        Ok(self.service::<HttpCredentialAnswer>(HTTP_CREDENTIAL, &request).await?.is_set)
    }

    /// Creates a read from anywhere on the public web, with the restrictions of
    /// [`HttpPurpose::Web`]. [`HttpRequestBuilder::timeout`] limits the whole exchange.
    pub fn web(&self, url: impl Into<String>) -> HttpRequestBuilder {
        let mut builder = self.http("GET", url);
        builder.request.purpose = HttpPurpose::Web;
        builder
    }
}

impl HttpRequestBuilder {
    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.request.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Makes the host add a credential from the plugin's description, named by its variable.
    ///
    /// If the user has not set the credential, the host sends the request without it. The request
    /// fails instead if it goes to the vendor's own origin, or to a URL that the user did not
    /// choose.
    pub fn credential(mut self, variable: &str) -> Self {
        self.request.credential = Some(variable.to_owned());
        self
    }

    /// Makes the host add a credential as [`credential`](Self::credential) does, but fail with
    /// `not_found` for any server if the user has not set it. A plugin can then try another
    /// credential, so that it sends nothing without the one that is set.
    pub fn required_credential(mut self, variable: &str) -> Self {
        self.request.credential_required = true;
        self.credential(variable)
    }

    /// Accepts any certificate of the server. Only for [`Reporter::web`], and only if the user
    /// agreed.
    pub fn insecure(mut self) -> Self {
        self.request.insecure = true;
        self
    }

    /// Goes to the server directly, without the user's proxy. Only for [`Reporter::web`].
    pub fn no_proxy(mut self) -> Self {
        self.request.no_proxy = true;
        self
    }

    /// Sets the maximum wait for the response's head, and for each piece of its body.
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

    /// Appends a blob of the session to the body. The host reads the blob, so its bytes do not
    /// cross the boundary.
    pub fn append_blob(mut self, id: impl Into<String>) -> Self {
        self.parts.push(BodyPart::Blob { id: id.into(), base64: false });
        self
    }

    /// Appends a blob of the session to the body as base64, with padding and without line breaks.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # async fn ask(cx: &Cx, image: &str) -> Result<u16> {
    /// let request = cx.http("POST", "https://vendor.example/v1/look");
    /// let request = request.append("{\"image\":\"").append_base64(image);
    /// let request = request.append("\"}");
    /// Ok(request.send().await?.status())
    /// # }
    /// ```
    pub fn append_base64(mut self, id: impl Into<String>) -> Self {
        self.parts.push(BodyPart::Blob { id: id.into(), base64: true });
        self
    }

    /// Sends the request and returns when status and headers have arrived. Any status is a
    /// response.
    ///
    /// # Errors
    /// If no response arrived, an error with a retry class. `limit_reached` if the body is too
    /// large. `not_found` if the session does not have a blob of the body.
    pub async fn send(self) -> Result<HttpResponse> {
        let Self { host, mut request, mut body, parts } = self;
        if !parts.is_empty() || body.len() > ONE_FRAME_BYTES {
            request.body = Some(upload_body(&host, &std::mem::take(&mut body), parts).await?);
        }
        let head: HttpAnswer = host.service_with_bytes(HTTP_REQUEST, &request, &body).await?;
        let body = ServiceStream::new(host, head.handle);
        Ok(HttpResponse { head, body })
    }
}

/// Makes the host assemble a body. Returns the body's number.
async fn upload_body(host: &Reporter, first: &[u8], parts: Vec<BodyPart>) -> Result<u64> {
    let mut number = None;
    // This also starts an empty body.
    append_to_body(host, &mut number, first).await?;
    for part in parts {
        match part {
            BodyPart::Bytes(bytes) => append_to_body(host, &mut number, &bytes).await?,
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

async fn append_to_body(host: &Reporter, number: &mut Option<u64>, bytes: &[u8]) -> Result<()> {
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

    /// Returns the first header with this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.head.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns all headers. Their names are in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.head.headers
    }

    /// Returns the URL that answered, after redirects. Empty unless the request was made by
    /// [`Reporter::web`].
    pub fn url(&self) -> &str {
        &self.head.url
    }

    /// Returns true if the host sent the requested credential with the request.
    pub fn has_credential(&self) -> bool {
        self.head.with_credential
    }

    /// Waits for the next piece of the body, at most 64 KiB. Returns `None` at the end. Dropping
    /// the wait loses nothing.
    ///
    /// # Errors
    /// The error that broke the exchange, with its retry class.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        self.body.next().await
    }

    /// Reads the whole body, at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`HttpResponse::next`]; `limit_reached` if the body is larger.
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

/// Omits all header values, because any of them may be a secret.
impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.head.headers.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("HttpResponse");
        shown.field("status", &self.head.status).field("headers", &names).finish_non_exhaustive()
    }
}
