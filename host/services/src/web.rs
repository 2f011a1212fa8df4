//! The purpose `web` of `http.request`: reads from anywhere on the public web, without secrets.

use std::sync::Arc;
use std::time::Duration;

use jaato_http::{
    BodyDecoding, CertificateCheck, Client, ExchangeLimits, HttpClientSettings, Method,
    NetworkAccess, OutgoingRequest, Proxies, PublicServers, ReachableServers, RedirectPolicy,
    Response,
};
use jaato_types::Error;
use jaato_types::http::{HTTP_WEB_BYTES_MAX, HttpRequest};

use crate::http::{bad_request_error, http_to_plugin_error, parse_header};

/// Default time for a whole exchange.
const TOTAL: Duration = Duration::from_secs(30);

/// Longest time that a request may set for a whole exchange.
const TOTAL_MAX: Duration = Duration::from_secs(10 * 60);

/// Parts of names of headers that contain secrets, or that tell a server about others.
const SECRET_PARTS: [&str; 9] =
    ["auth", "cookie", "credential", "key", "password", "referer", "secret", "session", "token"];

/// The clients for requests to the web. Clones share their connections.
#[derive(Debug, Clone)]
pub(crate) struct WebClients {
    /// By `insecure` and `no_proxy`, because each combination has its own connections.
    clients: Arc<[[Client; 2]; 2]>,
}

impl WebClients {
    /// Creates them. Opens and reads nothing.
    pub(crate) fn new(network: NetworkAccess, private_hosts: &[String]) -> Self {
        let servers = PublicServers::new(private_hosts.iter().cloned());
        let client = |certificates, proxies: Option<Proxies>| {
            let defaults = HttpClientSettings::default();
            let proxies = proxies.unwrap_or(defaults.proxies);
            let servers = ReachableServers::Public(servers.clone());
            Client::new(HttpClientSettings { network, proxies, servers, certificates, ..defaults })
        };
        let checks = [CertificateCheck::System, CertificateCheck::Skipped];
        let clients = checks
            .map(|check| [client(check, None), client(check, Some(Proxies::without_proxies()))]);
        Self { clients: Arc::new(clients) }
    }

    /// Sends a request and returns once status and headers have arrived.
    ///
    /// # Errors
    /// `invalid_arguments` for a request that the purpose does not allow, `permission_denied` for a
    /// host that is not public.
    pub(crate) async fn send(&self, asked: &HttpRequest, bytes: &[u8]) -> Result<Response, Error> {
        let request = build_request(asked, bytes)?;
        let client = &self.clients[usize::from(asked.insecure)][usize::from(asked.no_proxy)];
        client.send(request).await.map_err(|error| http_to_plugin_error(&error))
    }
}

/// Builds the request, and refuses what the purpose does not allow.
fn build_request(asked: &HttpRequest, bytes: &[u8]) -> Result<OutgoingRequest, Error> {
    let method = match asked.method.as_str() {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        other => {
            let text = format!("the purpose `web` allows only `GET` and `HEAD`, not `{other}`");
            return Err(bad_request_error(&text));
        }
    };
    if asked.credential.is_some() || asked.credential_required {
        return Err(bad_request_error(&"a request with the purpose `web` has no credential"));
    }
    if asked.body.is_some() || !bytes.is_empty() {
        return Err(bad_request_error(&"a request with the purpose `web` has no body"));
    }
    let mut request =
        OutgoingRequest::new(method, &asked.url).map_err(|error| http_to_plugin_error(&error))?;
    for (name, value) in &asked.headers {
        let (name, value) = parse_header(name, value)?;
        let lower = name.as_str();
        if SECRET_PARTS.iter().any(|part| lower.contains(part)) || lower == "accept-encoding" {
            let text = format!("the header `{name}` is not allowed with the purpose `web`");
            return Err(bad_request_error(&text));
        }
        request.headers.append(name, value);
    }
    request.redirects = RedirectPolicy::SameHost;
    request.decoding = BodyDecoding::Decompress;
    let total = asked.timeout_ms.map_or(TOTAL, Duration::from_millis).min(TOTAL_MAX);
    request.limits = ExchangeLimits {
        answer: total,
        idle: total,
        total: Some(total),
        body_bytes_max: HTTP_WEB_BYTES_MAX,
    };
    Ok(request)
}

#[cfg(test)]
mod tests {
    use jaato_types::ErrorKind;
    use jaato_types::http::HttpPurpose;

    use super::*;

    fn web_request() -> HttpRequest {
        HttpRequest {
            method: "GET".to_owned(),
            url: "https://docs.example/".to_owned(),
            purpose: HttpPurpose::Web,
            ..HttpRequest::default()
        }
    }

    #[track_caller]
    fn assert_refused(asked: &HttpRequest, bytes: &[u8]) {
        let error = build_request(asked, bytes).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
    }

    #[test]
    fn request_is_a_read_without_secrets() {
        for method in ["POST", "PUT", "DELETE", "get"] {
            assert_refused(&HttpRequest { method: method.to_owned(), ..web_request() }, b"");
        }
        assert_refused(&HttpRequest { credential: Some("KEY".to_owned()), ..web_request() }, b"");
        assert_refused(&HttpRequest { credential_required: true, ..web_request() }, b"");
        assert_refused(&HttpRequest { body: Some(1), ..web_request() }, b"");
        assert_refused(&web_request(), b"body");
        assert_refused(&HttpRequest { url: "ftp://a.example/".to_owned(), ..web_request() }, b"");
        for name in ["Authorization", "Cookie", "Referer", "X-Api-Key", "X-Auth-Token", "Host"] {
            let headers = vec![(name.to_owned(), "x".to_owned())];
            assert_refused(&HttpRequest { headers, ..web_request() }, b"");
        }
    }

    #[test]
    fn exchange_is_limited_in_time_and_size() {
        let headers = vec![("accept".to_owned(), "text/html".to_owned())];
        let request = build_request(&HttpRequest { headers, ..web_request() }, b"").unwrap();
        assert_eq!(request.redirects, RedirectPolicy::SameHost);
        assert_eq!(request.decoding, BodyDecoding::Decompress);
        assert_eq!(request.limits.total, Some(TOTAL));
        assert_eq!(request.limits.body_bytes_max, HTTP_WEB_BYTES_MAX);
        let long = HttpRequest { timeout_ms: Some(u64::MAX), ..web_request() };
        assert_eq!(build_request(&long, b"").unwrap().limits.total, Some(TOTAL_MAX));
    }
}
