//! Sends requests over loopback without a host: one connection each, no TLS, no redirects.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream;
use hyper::body::{Body as _, Incoming};
use hyper_util::rt::TokioIo;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tool_mcp::transport::http::{HttpBackend, McpHttpRequest, McpHttpResponse};
use url::Url;

/// A loopback client.
pub struct HyperClient;

/// Closes the connection when the response is dropped.
struct AbortOnDropConnection(AbortHandle);

impl Drop for AbortOnDropConnection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl HttpBackend for HyperClient {
    fn send_http_request(
        &self,
        exchange: McpHttpRequest,
    ) -> BoxFuture<'static, Result<McpHttpResponse>> {
        exchange_with_hyper(exchange).boxed()
    }
}

fn unavailable_error(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unavailable, format!("no answer: {what}")).temporary()
}

async fn exchange_with_hyper(exchange: McpHttpRequest) -> Result<McpHttpResponse> {
    let url = Url::parse(&exchange.url).map_err(unavailable_error)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let port = url.port_or_known_default().unwrap_or(80);
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(unavailable_error)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(unavailable_error)?;
    let going = tokio::spawn(async move {
        let _ = connection.await;
    });
    let ends = AbortOnDropConnection(going.abort_handle());
    let target = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let mut request = http::Request::builder()
        .method(exchange.method.as_str())
        .uri(target)
        .header("host", format!("{host}:{port}"));
    for (name, value) in &exchange.headers {
        request = request.header(name, value);
    }
    let body = String::from_utf8(exchange.body).map_err(unavailable_error)?;
    let request = request.body(body).map_err(unavailable_error)?;
    let response = with_timeout(exchange.wait, sender.send_request(request))
        .await?
        .map_err(unavailable_error)?;
    let status = response.status().as_u16();
    let headers = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let headers = headers.collect();
    let held = (response.into_body(), ends, exchange.wait);
    let body = stream::try_unfold(held, |(mut body, ends, wait)| async move {
        Ok(with_timeout(wait, next_body_chunk(&mut body))
            .await??
            .map(|piece| (piece, (body, ends, wait))))
    });
    Ok(McpHttpResponse { status, headers, body: Box::pin(body) })
}

async fn next_body_chunk(body: &mut Incoming) -> Result<Option<Vec<u8>>> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose().map_err(unavailable_error)? else { return Ok(None) };
        // Trailers are ignored.
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data.to_vec()));
        }
    }
}

async fn with_timeout<T>(wait: Duration, work: impl Future<Output = T>) -> Result<T> {
    let late = || Error::new(ErrorKind::Timeout, "no answer in time").temporary();
    tokio::time::timeout(wait, work).await.map_err(|_| late())
}
