//! What sends one request over HTTP: the host, or in tests a client of theirs.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _};
use jaato_plugin_sdk::{Error, ErrorKind, Result};

/// The pieces of a body, as they come.
pub type Body = BoxStream<'static, Result<Vec<u8>>>;

/// Sends requests.
pub trait HttpBackend: Send + Sync + 'static {
    /// Sends one. Any status is an answer. Dropping the answer's body ends the exchange.
    ///
    /// It must never bring a header to another origin than the one that is asked.
    ///
    /// # Errors
    /// What keeps an answer from coming.
    fn send(&self, exchange: Exchange) -> BoxFuture<'static, Result<Reply>>;
}

/// A request.
#[derive(Clone, Default)]
pub struct Exchange {
    /// In upper case.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In order. Any value may be a secret.
    pub headers: Vec<(String, String)>,
    /// Empty for none.
    pub body: Vec<u8>,
    /// Longest wait for the answer's head, and then for each next piece.
    pub wait: Duration,
}

/// What comes back.
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: Body,
}

/// Shows no header's value and no query.
impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        let mut shown = f.debug_struct("Exchange");
        shown.field("method", &self.method).field("url", &url).finish_non_exhaustive()
    }
}

impl Exchange {
    /// Begins one without headers and body.
    pub fn new(method: &str, url: &str, wait: Duration) -> Self {
        Self { method: method.to_owned(), url: url.to_owned(), wait, ..Self::default() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

impl Reply {
    /// Returns the first header of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the body is of this media type.
    pub fn is_of(&self, media_type: &str) -> bool {
        let essence = self.header("content-type").and_then(|it| it.split(';').next());
        essence.is_some_and(|it| it.trim().eq_ignore_ascii_case(media_type))
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// `limit_reached` where it has more bytes; what broke the exchange.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Vec<u8>> {
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

    /// Reads the beginning of the body, for a person to see. What breaks it ends it.
    pub async fn beginning(mut self, bytes_max: usize) -> String {
        let mut body = Vec::new();
        while body.len() < bytes_max {
            let Some(Ok(piece)) = self.body.next().await else { break };
            body.extend_from_slice(&piece);
        }
        body.truncate(bytes_max);
        String::from_utf8_lossy(&body).into_owned()
    }
}
