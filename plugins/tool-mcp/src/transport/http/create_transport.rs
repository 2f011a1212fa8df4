//! Creates the HTTP transport of one server from its URL, headers and limits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use super::authorize::Authorize;
use super::backend::HttpBackend;
use super::client::{HttpClient, REQUESTS_MAX};
use crate::config::HttpServerAddress;

/// The transport for `rmcp`.
pub type HttpTransport = StreamableHttpClientTransport<HttpClient>;

/// The maximum size of a message, as over lines.
const MESSAGE_BYTES_MAX: usize = super::super::lines::LINE_BYTES_MAX;
/// The maximum number of bytes read from an error page.
const ERROR_BYTES_MAX: usize = 4 * 1024;
/// The first wait before a broken stream is resumed, if the server names none.
const STREAM_AGAIN: Duration = Duration::from_secs(1);
/// The maximum number of consecutive attempts. After that, the call fails or the stream is lost.
const STREAM_ATTEMPTS_MAX: usize = 6;

/// Headers that an entry may not set, because they belong to the protocol or the connection.
const OWN_HEADERS: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// Creates the transport of a server.
///
/// # Errors
/// `configuration` for a header that is invalid or that entries may not set.
pub fn create_http_transport(
    reach: &HttpServerAddress,
    backend: Arc<dyn HttpBackend>,
    login: Option<Arc<dyn Authorize>>,
) -> Result<HttpTransport> {
    let login = login.filter(|_| !has_authorization(reach));
    let mut config = StreamableHttpClientTransportConfig::with_uri(reach.url.as_str())
        .custom_headers(parse_headers(reach)?)
        .max_concurrent_requests(REQUESTS_MAX)
        .max_sse_event_size(MESSAGE_BYTES_MAX)
        .max_json_response_size(MESSAGE_BYTES_MAX)
        .max_error_response_size(ERROR_BYTES_MAX)
        .reinit_on_expired_session(true);
    let mut again = ExponentialBackoff::default();
    again.base_duration = STREAM_AGAIN;
    again.max_times = Some(STREAM_ATTEMPTS_MAX);
    config.retry_config = Arc::new(again);
    Ok(StreamableHttpClientTransport::with_client(HttpClient::new(backend, login), config))
}

/// Returns true if the entry sets its own key.
pub fn has_authorization(reach: &HttpServerAddress) -> bool {
    reach.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
}

fn parse_headers(reach: &HttpServerAddress) -> Result<HashMap<HeaderName, HeaderValue>> {
    let wrong = |name: &str, what: &str| {
        let text = format!("the header `{name}` of its entry {what}");
        Error::new(ErrorKind::Configuration, text)
    };
    let mut headers = HashMap::new();
    for (name, value) in &reach.headers {
        let known = HeaderName::from_bytes(name.as_bytes());
        let known = known.map_err(|_| wrong(name, "has an invalid name"))?;
        if OWN_HEADERS.contains(&known.as_str()) || known.as_str().starts_with("mcp-param-") {
            return Err(wrong(name, "can only be set by jaato"));
        }
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| wrong(name, "has an invalid value"))?;
        value.set_sensitive(true);
        headers.insert(known, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_error(name: &str, value: &str) -> Option<String> {
        let reach = HttpServerAddress {
            headers: [(name.to_owned(), value.to_owned())].into(),
            ..HttpServerAddress::default()
        };
        parse_headers(&reach).err().map(|error| error.message)
    }

    #[test]
    fn entry_cannot_set_protocol_headers_and_errors_hide_header_values() {
        assert_eq!(header_error("X-Api-Key", "moonlight"), None);
        assert_eq!(
            header_error("Mcp-Session-Id", "1").as_deref(),
            Some("the header `Mcp-Session-Id` of its entry can only be set by jaato")
        );
        assert!(header_error("Host", "x").is_some() && header_error("mcp-param-a", "x").is_some());
        assert_eq!(
            header_error("X-Api-Key", "moon\nlight").as_deref(),
            Some("the header `X-Api-Key` of its entry has an invalid value")
        );
    }
}
