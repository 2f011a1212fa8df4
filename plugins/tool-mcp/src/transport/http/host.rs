//! Sends requests through the host's client, with its pool, proxies and certificates.
//!
//! On a redirect to another origin, the host forwards only a few harmless headers, and it redirects
//! only reads.

use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream;
use jaato_plugin_sdk::{Home, HttpResponse, Result};

use super::backend::{HttpBackend, McpHttpRequest, McpHttpResponse};

/// The host's client, through the instance's home.
pub struct HostHttp(pub Home);

impl HttpBackend for HostHttp {
    fn send_http_request(
        &self,
        exchange: McpHttpRequest,
    ) -> BoxFuture<'static, Result<McpHttpResponse>> {
        let home = self.0.clone();
        async move {
            let mut request = home.http(&exchange.method, exchange.url).timeout(exchange.wait);
            for (name, value) in exchange.headers {
                request = request.header(&name, value);
            }
            let response = request.body(exchange.body).send().await?;
            let (status, headers) = (response.status(), response.headers().to_vec());
            Ok(McpHttpResponse {
                status,
                headers,
                body: Box::pin(stream::try_unfold(response, read_next_chunk)),
            })
        }
        .boxed()
    }
}

async fn read_next_chunk(mut response: HttpResponse) -> Result<Option<(Vec<u8>, HttpResponse)>> {
    Ok(response.next().await?.map(|piece| (piece, response)))
}
