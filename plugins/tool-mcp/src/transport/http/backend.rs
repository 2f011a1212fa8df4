//! The interface that sends HTTP requests: the host's client, or a test's own client.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

/// The chunks of a body.
pub type HttpBodyStream = BoxStream<'static, Result<Vec<u8>>>;

/// Sends HTTP requests.
pub trait HttpBackend: Send + Sync + 'static {
    /// Sends a request. A response with any status is a success. Dropping the response's body ends
    /// the exchange.
    ///
    /// The implementation must never send a header to an origin other than the requested one.
    ///
    /// # Errors
    /// The reason for the missing response.
    fn send_http_request(
        &self,
        exchange: McpHttpRequest,
    ) -> BoxFuture<'static, Result<McpHttpResponse>>;
}

/// An HTTP request.
#[derive(Clone, Default)]
pub struct McpHttpRequest {
    /// The method, in upper case.
    pub method: String,
    /// The absolute URL.
    pub url: String,
    /// The headers, in order. Any value may be a secret.
    pub headers: Vec<(String, String)>,
    /// The body, which may be empty.
    pub body: Vec<u8>,
    /// The maximum wait for the head of the response, and then for each chunk.
    pub wait: Duration,
}

/// An HTTP response.
pub struct McpHttpResponse {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: HttpBodyStream,
}

/// Hides the values of headers and the query.
impl fmt::Debug for McpHttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        let mut shown = f.debug_struct("McpHttpRequest");
        shown.field("method", &self.method).field("url", &url).finish_non_exhaustive()
    }
}

impl McpHttpRequest {
    /// Creates a request without headers and body.
    pub fn new(method: &str, url: &str, wait: Duration) -> Self {
        Self { method: method.to_owned(), url: url.to_owned(), wait, ..Self::default() }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl McpHttpResponse {
    /// Returns the first header with this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the body has this media type.
    pub fn has_media_type(&self, media_type: &str) -> bool {
        let essence = self.header("content-type").and_then(|it| it.split(';').next());
        essence.is_some_and(|it| it.trim().eq_ignore_ascii_case(media_type))
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// `limit_reached` if the body is larger, or the reason why the exchange broke off.
    pub async fn read_body(mut self, bytes_max: usize) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(piece) = self.body.next().await {
            let piece = piece?;
            if body.len() + piece.len() > bytes_max {
                let text = format!("the answer has more than {bytes_max} bytes");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            body.extend_from_slice(&piece);
            tokio::task::consume_budget().await;
        }
        Ok(body)
    }

    /// Reads the beginning of the body to show it to the user. An error ends the text.
    pub async fn read_beginning(mut self, bytes_max: usize) -> String {
        let mut body = Vec::new();
        while body.len() < bytes_max {
            let Some(Ok(piece)) = self.body.next().await else { break };
            body.extend_from_slice(&piece);
        }
        body.truncate(bytes_max);
        String::from_utf8_lossy(&body).into_owned()
    }
}
