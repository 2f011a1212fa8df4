//! The client: sends requests, follows redirects of reads, reuses connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::{Method, Url};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::proxy::ProxyRoute;
use crate::response::remaining_wait;
use crate::servers::CheckingResolver;
use crate::{
    HttpError, MaskedUrl, OutgoingRequest, Proxies, ReachableServers, RedirectPolicy,
    RedirectProblem, RequestPhase, Response, cause, tls,
};

/// Longest wait for a connection (name, address, proxy and TLS together). A host that does not
/// answer within this time is unreachable, and the next source should be tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of redirects per request. Real chains have one or two.
const REDIRECTS_MAX: usize = 10;

/// Headers that follow a redirect to another origin. All others are removed, because any of them
/// may be a secret.
const CROSS_ORIGIN_HEADERS: [HeaderName; 5] =
    [header::ACCEPT, header::ACCEPT_ENCODING, header::RANGE, header::IF_RANGE, header::USER_AGENT];

/// Whether anything may be sent at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkAccess {
    /// Requests are sent.
    Online,
    /// Each request is refused before a name is looked up.
    Offline,
}

/// The settings of a client.
#[derive(Debug, Clone)]
pub struct HttpClientSettings {
    /// The user agent.
    pub user_agent: String,
    /// Whether it may send anything.
    pub network: NetworkAccess,
    /// The proxies for requests.
    pub proxies: Proxies,
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// The servers that it may reach.
    pub servers: ReachableServers,
    /// Whether it checks the certificates of servers.
    pub certificates: CertificateCheck,
}

/// Whether a client checks the certificates of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateCheck {
    /// Only certificates that the system trusts are accepted.
    System,
    /// Any certificate is accepted. For requests without secrets, if the user agreed.
    Skipped,
}

impl Default for HttpClientSettings {
    /// Online, `jaato/VERSION`, proxies from the process's variables, 5 s to connect, any server,
    /// with a check of its certificate.
    fn default() -> Self {
        Self {
            user_agent: concat!("jaato/", env!("CARGO_PKG_VERSION")).to_owned(),
            network: NetworkAccess::Online,
            proxies: Proxies::from_variables(|name| std::env::var(name).ok()),
            connect_timeout: CONNECT_TIMEOUT,
            servers: ReachableServers::Any,
            certificates: CertificateCheck::System,
        }
    }
}

/// Sends requests. Clones share the connections. Needs tokio with I/O and time.
#[derive(Clone)]
pub struct Client {
    inner: Arc<HttpClientInner>,
}

struct HttpClientInner {
    settings: HttpClientSettings,
    /// For connections without TLS. Reads no certificates.
    plain: OnceCell<HttpEngine>,
    /// For all others.
    secure: OnceCell<HttpEngine>,
}

/// A library client, created for the first request that needs it.
struct HttpEngine {
    client: reqwest::Client,
    route: ProxyRoute,
}

impl Client {
    /// Creates a client. Opens and reads nothing.
    pub fn new(settings: HttpClientSettings) -> Self {
        let (plain, secure) = (OnceCell::new(), OnceCell::new());
        Self { inner: Arc::new(HttpClientInner { settings, plain, secure }) }
    }

    /// Returns whether requests are sent or refused.
    pub fn network(&self) -> NetworkAccess {
        self.inner.settings.network
    }

    /// Sends a request and returns once status and headers have arrived. Any status is an answer.
    ///
    /// Redirects of a `GET` or `HEAD` are followed, but never from `https` to `http`, and to
    /// another origin only with headers that hold no secret. Dropping the future ends the exchange.
    pub async fn send(&self, request: OutgoingRequest) -> Result<Response, HttpError> {
        if self.network() == NetworkAccess::Offline {
            return Err(HttpError::Offline { url: MaskedUrl::new(&request.url) });
        }
        let mut headers = request.all_headers();
        let mut visited = vec![request.url.clone()];
        let deadline = request.limits.total.map(|total| (Instant::now() + total, total));
        loop {
            let url = &visited[visited.len() - 1];
            if let ReachableServers::Public(servers) = &self.inner.settings.servers {
                servers.check_url(url, &self.inner.settings.proxies.route()?)?;
            }
            let answer = self.send_once(&request, url, headers.clone(), deadline).await?;
            let refuse =
                |problem| HttpError::Redirect { url: MaskedUrl::new(&request.url), problem };
            let Some(target) = redirect_target(&request, url, &answer).map_err(refuse)? else {
                return Response::new(answer, &request, deadline);
            };
            if visited.contains(&target) {
                return Err(refuse(RedirectProblem::Loop));
            }
            if visited.len() > REDIRECTS_MAX {
                return Err(refuse(RedirectProblem::TooMany(REDIRECTS_MAX)));
            }
            if target.origin() != url.origin() {
                headers = remove_secret_headers(&headers);
            }
            visited.push(target);
        }
    }

    async fn send_once(
        &self,
        request: &OutgoingRequest,
        url: &Url,
        headers: HeaderMap,
        deadline: Option<(Instant, Duration)>,
    ) -> Result<reqwest::Response, HttpError> {
        let engine = self.http_engine(url).await?;
        let mut builder = engine.client.request(request.method.clone(), url.clone());
        builder = builder.headers(headers);
        if let Some(file) = &request.file {
            builder = builder.body(file.to_reqwest_body());
        } else if !request.body.is_empty() {
            builder = builder.body(request.body.clone());
        }
        let masked = MaskedUrl::new(url);
        let (wait, after) = remaining_wait(deadline, request.limits.answer);
        let Ok(answer) = tokio::time::timeout(wait, builder.send()).await else {
            return Err(HttpError::Timeout { url: masked, phase: RequestPhase::Answer, after });
        };
        answer.map_err(|error| {
            let proxy = engine.route.proxy_of(url).map(|proxy| MaskedUrl::new(&proxy));
            cause::error_before_answer(error, masked, proxy, self.inner.settings.connect_timeout)
        })
    }

    /// Returns the engine for a URL: the one without certificates if neither the server nor the
    /// proxy needs any.
    async fn http_engine(&self, url: &Url) -> Result<&HttpEngine, HttpError> {
        let inner = &self.inner;
        let needs_tls = if url.scheme() == "https" {
            true
        } else {
            let proxy = inner.settings.proxies.route()?.proxy_of(url);
            proxy.is_some_and(|proxy| proxy.scheme() == "https")
        };
        if !needs_tls {
            let make = async || HttpEngine::new(&inner.settings, tls::config_without_roots()?);
            return inner.plain.get_or_try_init(make).await;
        }
        if inner.settings.certificates == CertificateCheck::Skipped {
            let make = async || HttpEngine::new(&inner.settings, tls::config_without_checks()?);
            return inner.secure.get_or_try_init(make).await;
        }
        let make = async || {
            let roots = tokio::task::spawn_blocking(tls::config_with_system_roots).await;
            let roots = roots.map_err(|error| HttpError::SetUp { reason: error.to_string() })?;
            HttpEngine::new(&inner.settings, roots?)
        };
        inner.secure.get_or_try_init(make).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl HttpEngine {
    fn new(settings: &HttpClientSettings, tls: rustls::ClientConfig) -> Result<Self, HttpError> {
        let set_up = |error: reqwest::Error| HttpError::SetUp { reason: error.to_string() };
        let route = settings.proxies.route()?;
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(settings.user_agent.as_str())
            .connect_timeout(settings.connect_timeout)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy();
        if let ReachableServers::Public(servers) = &settings.servers {
            let (servers, route) = (servers.clone(), route.clone());
            builder = builder.dns_resolver(CheckingResolver { servers, route });
        }
        for proxy in route.reqwest_proxies().map_err(set_up)? {
            builder = builder.proxy(proxy);
        }
        let client = builder.build().map_err(set_up)?;
        Ok(Self { client, route })
    }
}

/// Returns the target of a redirect, if the answer is one that may be followed.
///
/// Implemented here because the library removes only well-known headers for another origin, and
/// would repeat a body there.
fn redirect_target(
    request: &OutgoingRequest,
    from: &Url,
    answer: &reqwest::Response,
) -> Result<Option<Url>, RedirectProblem> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = answer.headers().get(header::LOCATION);
    let location = String::from_utf8_lossy(location.map_or(b"", |value| value.as_bytes()));
    let bad = || RedirectProblem::BadTarget(MaskedUrl::from_unreadable(&location));
    if location.is_empty() {
        return Err(bad());
    }
    let mut to = from.join(&location).map_err(|_| bad())?;
    to.set_fragment(None);
    let is_elsewhere =
        request.redirects == RedirectPolicy::SameHost && to.host_str() != from.host_str();
    match (from.scheme(), to.scheme()) {
        ("http" | "https", "http" | "https") if is_elsewhere => return Ok(None),
        (_, "https") | ("http", "http") => {}
        ("https", "http") => return Err(RedirectProblem::Downgrade(MaskedUrl::new(&to))),
        _ => return Err(bad()),
    }
    if request.redirects == RedirectPolicy::Refuse {
        return Err(RedirectProblem::Refused(MaskedUrl::new(&to)));
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(RedirectProblem::NotARead(MaskedUrl::new(&to)));
    }
    Ok(Some(to))
}

fn remove_secret_headers(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| CROSS_ORIGIN_HEADERS.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn offline_client_refuses_before_any_name_lookup() {
        let settings =
            HttpClientSettings { network: NetworkAccess::Offline, ..HttpClientSettings::default() };
        let client = Client::new(settings);
        let error =
            client.send(OutgoingRequest::get("https://h.example/").unwrap()).await.unwrap_err();
        assert_eq!(error.to_string(), "cannot reach `https://h.example/`: jaato is offline");
        assert!(!client.inner.plain.initialized() && !client.inner.secure.initialized());
    }

    #[test]
    fn only_harmless_headers_go_to_another_origin() {
        let mut headers = HeaderMap::new();
        for name in ["authorization", "x-api-key", "cookie", "range", "accept"] {
            headers.insert(name, header::HeaderValue::from_static("v"));
        }
        let kept = remove_secret_headers(&headers);
        let mut names: Vec<_> = kept.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept", "range"]);
    }
}
