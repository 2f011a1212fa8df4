//! The requests of the login, by the same client as those of the protocol.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::transport::http::{Exchange, HttpBackend};

/// Longest answer: metadata and tokens have a few thousand bytes.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// Longest wait for one answer, from its begin to its end.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Sends what `rmcp` asks for.
pub struct LoginRequests(pub Arc<dyn HttpBackend>);

/// A whole answer.
pub struct Whole {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// Sends a request and reads all of its answer.
///
/// # Errors
/// What keeps the answer from coming; `timeout`; `limit_reached`.
pub async fn whole(backend: &dyn HttpBackend, exchange: Exchange) -> Result<Whole> {
    let answered = async {
        let reply = backend.send(exchange).await?;
        let (status, headers) = (reply.status, reply.headers.clone());
        Ok(Whole { status, headers, body: reply.bytes(ANSWER_BYTES_MAX).await? })
    };
    let late = || {
        let text = format!("no answer to the login within {} s", ANSWER_TIME.as_secs());
        Err(Error::new(ErrorKind::Timeout, text).temporary())
    };
    tokio::time::timeout(ANSWER_TIME, answered).await.unwrap_or_else(|_| late())
}

impl OAuthHttpClient for LoginRequests {
    fn execute(&self, asked: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let (head, body) = asked.request.into_parts();
            let mut exchange =
                Exchange::new(head.method.as_str(), &head.uri.to_string(), ANSWER_TIME);
            for (name, value) in &head.headers {
                exchange = exchange.header(name.as_str(), value.to_str()?);
            }
            exchange.body = body;
            let whole = whole(&*self.0, exchange).await?;
            let mut response = http::Response::builder().status(whole.status);
            for (name, value) in &whole.headers {
                response = response.header(name, value);
            }
            Ok(response.body(whole.body)?)
        })
    }
}
