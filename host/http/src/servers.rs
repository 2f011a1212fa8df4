//! The servers that a client may reach: any, or only those with public addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::proxy::ProxyRoute;
use crate::public_addresses::is_public;
use crate::{HttpError, MaskedUrl};

/// Endings of names that lead into private networks. A proxy would resolve them.
const PRIVATE_ENDINGS: [&str; 5] =
    [".localhost", ".local", ".internal", ".home.arpa", ".localdomain"];

/// The servers that a client may reach.
#[derive(Debug, Clone, Default)]
pub enum ReachableServers {
    /// Any server.
    #[default]
    Any,
    /// Servers with public addresses, and hosts that the user named.
    Public(PublicServers),
}

/// Servers with public addresses. The client looks a name up once, and connects to an address that
/// was checked.
#[derive(Clone)]
pub struct PublicServers {
    /// Hosts that may have private addresses, in lower case.
    private_hosts: Vec<String>,
    lookup: Arc<dyn NameLookup>,
}

/// A running lookup of a name.
pub type NameLookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up names of hosts.
pub trait NameLookup: Send + Sync {
    /// Returns the addresses of a name.
    fn lookup(&self, name: &str) -> NameLookupFuture;
}

/// Looks up names as other programs of this system do.
struct SystemLookup;

impl NameLookup for SystemLookup {
    fn lookup(&self, name: &str) -> NameLookupFuture {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

impl PublicServers {
    /// Allows servers with public addresses, and these hosts with any address. A host is a name or
    /// an address as in a URL, without a port.
    pub fn new(private_hosts: impl IntoIterator<Item = String>) -> Self {
        let normalized = |host: String| host.trim_matches(['[', ']']).to_lowercase();
        let private_hosts = private_hosts.into_iter().map(normalized).collect();
        Self { private_hosts, lookup: Arc::new(SystemLookup) }
    }

    /// Looks up names in another way.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn NameLookup>) -> Self {
        Self { lookup, ..self }
    }

    /// Checks a URL before anything is sent: its parts, and its address if it contains one. Names
    /// are checked when they are looked up. A proxy looks them up itself, so for a request through
    /// a proxy the name alone decides.
    pub(crate) fn check_url(&self, url: &Url, route: &ProxyRoute) -> Result<(), HttpError> {
        let refused = |address| Err(HttpError::NotPublic { url: MaskedUrl::new(url), address });
        if !url.username().is_empty() || url.password().is_some() {
            let reason = "it contains a user name or a password".to_owned();
            return Err(HttpError::BadUrl { url: MaskedUrl::new(url), reason });
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        if self.allows_private_host(host) {
            return Ok(());
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            return if is_public(address) { Ok(()) } else { refused(Some(address)) };
        }
        let is_proxied = route.proxy_of(url).is_some();
        // The resolver accepts any address of the proxies' names.
        if route.is_proxy(host) || is_proxied && is_private_name(host) {
            return refused(None);
        }
        Ok(())
    }

    fn allows_private_host(&self, host: &str) -> bool {
        let host = host.trim_end_matches('.');
        self.private_hosts.iter().any(|named| named.eq_ignore_ascii_case(host))
    }
}

impl fmt::Debug for PublicServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PublicServers");
        shown.field("private_hosts", &self.private_hosts).finish_non_exhaustive()
    }
}

fn is_private_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    !name.contains('.') || PRIVATE_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Looks up names for the client, and returns only the addresses that it may connect to.
pub(crate) struct CheckingResolver {
    pub(crate) servers: PublicServers,
    pub(crate) route: ProxyRoute,
}

impl Resolve for CheckingResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let name = name.as_str();
        let is_named = self.servers.allows_private_host(name) || self.route.is_proxy(name);
        let found = self.servers.lookup.lookup(name);
        Box::pin(async move {
            let mut found = found.await?;
            if !is_named {
                let refused = found.first().copied();
                found.retain(|address| is_public(*address));
                if let (true, Some(address)) = (found.is_empty(), refused) {
                    return Err(NotPublicError(address).into());
                }
            }
            // The connector adds the port.
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as Addrs)
        })
    }
}

/// A name leads to no public address.
#[derive(Debug, thiserror::Error)]
#[error("the address {0} is not public")]
pub(crate) struct NotPublicError(pub(crate) IpAddr);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{Client, HttpClientSettings, HttpErrorKind, OutgoingRequest, Proxies};

    /// Answers the first lookup with the first addresses, the second with the second, and so on.
    struct ChangingLookup {
        answers: Vec<Vec<&'static str>>,
        asked: AtomicUsize,
    }

    impl NameLookup for ChangingLookup {
        fn lookup(&self, _: &str) -> NameLookupFuture {
            let at = self.asked.fetch_add(1, Ordering::Relaxed);
            let found = self.answers[at.min(self.answers.len() - 1)].clone();
            Box::pin(async move { Ok(found.iter().map(|text| text.parse().unwrap()).collect()) })
        }
    }

    fn lookup_with(answers: &[&[&'static str]]) -> Arc<ChangingLookup> {
        let answers = answers.iter().map(|found| found.to_vec()).collect();
        Arc::new(ChangingLookup { answers, asked: AtomicUsize::new(0) })
    }

    fn route(proxies: &Proxies) -> ProxyRoute {
        proxies.route().unwrap()
    }

    async fn resolve(resolver: &CheckingResolver, name: &str) -> Result<Vec<IpAddr>, String> {
        let found = resolver.resolve(name.parse().unwrap()).await;
        found.map(|found| found.map(|it| it.ip()).collect()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn each_lookup_is_checked_and_its_result_is_the_one_that_is_used() {
        let lookup =
            lookup_with(&[&["93.184.216.34"], &["127.0.0.1"], &["10.0.0.1", "93.184.216.34"]]);
        let servers = PublicServers::new([]).with_lookup(lookup.clone());
        let resolver = CheckingResolver { servers, route: route(&Proxies::without_proxies()) };
        let public: IpAddr = "93.184.216.34".parse().unwrap();
        assert_eq!(resolve(&resolver, "a.example").await, Ok(vec![public]));
        let refused = resolve(&resolver, "a.example").await.unwrap_err();
        assert_eq!(refused, "the address 127.0.0.1 is not public");
        assert_eq!(resolve(&resolver, "a.example").await, Ok(vec![public]));
        assert_eq!(lookup.asked.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn name_that_becomes_private_after_the_first_request_is_refused() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://rebind.example:{}/", listener.local_addr().unwrap().port());
        let lookup = lookup_with(&[&["127.0.0.1"]]);
        let servers = PublicServers::new([]).with_lookup(lookup.clone());
        let client = Client::new(HttpClientSettings {
            proxies: Proxies::without_proxies(),
            servers: ReachableServers::Public(servers),
            ..HttpClientSettings::default()
        });
        let error = client.send(OutgoingRequest::get(&url).unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), HttpErrorKind::NotPublic);
        let text = format!("cannot reach `{url}`: its address 127.0.0.1 is not public");
        assert_eq!(error.to_string(), text);
        // One lookup, and no connection.
        assert_eq!(lookup.asked.load(Ordering::Relaxed), 1);
        let accepted = tokio::time::timeout(std::time::Duration::ZERO, listener.accept()).await;
        assert!(accepted.is_err());
    }

    #[test]
    fn urls_with_private_addresses_are_refused_in_every_spelling() {
        let servers = PublicServers::new(["LOCALHOST".to_owned(), "[::1]".to_owned()]);
        let check = |url: &str| {
            let url = Url::parse(url).unwrap();
            servers
                .check_url(&url, &route(&Proxies::without_proxies()))
                .map_err(|error| error.kind())
        };
        for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:7f00:1]", "10.1"] {
            let refused = check(&format!("http://{host}/"));
            assert_eq!(refused, Err(HttpErrorKind::NotPublic), "{host}");
        }
        for host in ["1.1.1.1", "localhost:8080", "[::1]", "a.example"] {
            assert_eq!(check(&format!("http://{host}/")), Ok(()), "{host}");
        }
        assert_eq!(check("http://me:pw@a.example/"), Err(HttpErrorKind::BadUrl));
    }

    #[test]
    fn proxies_do_not_get_private_names() {
        let proxies = Proxies::from_variables(|name| {
            (name == "http_proxy").then(|| "http://proxy.corp.example:3128".to_owned())
        });
        let servers = PublicServers::new(["wiki.internal".to_owned()]);
        let check = |url: &str| {
            let url = Url::parse(url).unwrap();
            servers.check_url(&url, &route(&proxies)).is_ok()
        };
        assert!(check("http://a.example/") && check("http://wiki.internal/"));
        for host in ["db.internal", "printer", "x.local", "proxy.corp.example"] {
            assert!(!check(&format!("http://{host}/")), "{host}");
        }
    }
}
