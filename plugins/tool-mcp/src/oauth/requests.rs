//! Sends the requests of a login, with the same client as those of the protocol.

use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use crate::transport::http::{HttpBackend, McpHttpRequest};

/// The maximum size of a response. Metadata and tokens have a few thousand bytes.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// The time limit of one response, including its body.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Sends requests for `rmcp`.
pub struct LoginRequests(pub Arc<dyn HttpBackend>);

/// A complete response.
pub struct BufferedHttpResponse {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends a request and reads the whole response.
///
/// # Errors
/// The reason for the missing response, `timeout`, or `limit_reached`.
pub async fn fetch_whole_response(
    backend: &dyn HttpBackend,
    exchange: McpHttpRequest,
) -> Result<BufferedHttpResponse> {
    let answered = async {
        let reply = backend.send_http_request(exchange).await?;
        let (status, headers) = (reply.status, reply.headers.clone());
        Ok(BufferedHttpResponse { status, headers, body: reply.read_body(ANSWER_BYTES_MAX).await? })
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
                McpHttpRequest::new(head.method.as_str(), &head.uri.to_string(), ANSWER_TIME);
            for (name, value) in &head.headers {
                exchange = exchange.with_header(name.as_str(), value.to_str()?);
            }
            exchange.body = body;
            let whole = fetch_whole_response(&*self.0, exchange).await?;
            let mut response = http::Response::builder().status(whole.status);
            for (name, value) in &whole.headers {
                response = response.header(name, value);
            }
            Ok(response.body(whole.body)?)
        })
    }
}
