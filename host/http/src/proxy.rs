//! Selects the proxy for a request from the usual variables.

use std::fmt;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{NoProxy, Url};

use crate::{HttpError, MaskedUrl};

/// Hosts that never use a proxy, because it cannot reach this machine's own servers.
const LOOPBACK: &str = "localhost,127.0.0.0/8,::1";

const SCHEMES: [&str; 5] = ["http", "https", "socks4", "socks5", "socks5h"];

/// The proxies of `http` and `https` requests, and the hosts to reach directly.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<ProxyVariable>,
    https: Option<ProxyVariable>,
    direct: String,
}

/// A variable and its value.
#[derive(Clone)]
struct ProxyVariable {
    variable: &'static str,
    value: String,
}

impl Proxies {
    /// Uses no proxy.
    pub fn without_proxies() -> Self {
        Self::default()
    }

    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`. If both spellings are set,
    /// the lower-case name wins, as with curl. An empty value means no proxy. Loopback is never
    /// proxied.
    ///
    /// Values are checked at the first request, so that a wrong one affects only requests that need
    /// it.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: &[&'static str]| {
            let found = names.iter().find_map(|name| Some((*name, lookup(name)?)));
            found
                .map(|(variable, value)| ProxyVariable { variable, value: value.trim().to_owned() })
                .filter(|setting| !setting.value.is_empty())
        };
        let all = first(&["all_proxy", "ALL_PROXY"]);
        // In a CGI program, `HTTP_PROXY` is a header that the visitor chose (CVE-2016-5385).
        let is_cgi = lookup("REQUEST_METHOD").is_some();
        let http_names: &[&'static str] =
            if is_cgi { &["http_proxy"] } else { &["http_proxy", "HTTP_PROXY"] };
        let direct = first(&["no_proxy", "NO_PROXY"]).map(|setting| setting.value);
        Self {
            http: first(http_names).or_else(|| all.clone()),
            https: first(&["https_proxy", "HTTPS_PROXY"]).or(all),
            direct: direct.as_deref().map(to_library_syntax).unwrap_or_default(),
        }
    }

    /// Checks the variables and returns the route for requests.
    pub(crate) fn route(&self) -> Result<ProxyRoute, HttpError> {
        let http = self.http.as_ref().map(ProxyVariable::url).transpose()?;
        let https = self.https.as_ref().map(ProxyVariable::url).transpose()?;
        let direct = if self.direct.is_empty() {
            LOOPBACK.to_owned()
        } else {
            format!("{},{LOOPBACK}", self.direct)
        };
        Ok(ProxyRoute { http, https, direct })
    }
}

/// Converts other programs' syntax to the library's: `*` includes addresses, and `*.corp.example`
/// is a domain.
fn to_library_syntax(direct: &str) -> String {
    let entries = direct.split(',').map(str::trim);
    let plain = entries.map(|entry| match entry.strip_prefix('*') {
        Some("") => "*,0.0.0.0/0,::/0",
        Some(domain) => domain,
        None => entry,
    });
    plain.collect::<Vec<_>>().join(",")
}

/// Shows which variables apply, but not their values.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |setting: &Option<ProxyVariable>| setting.as_ref().map(|setting| setting.variable);
        f.debug_struct("Proxies")
            .field("http", &name(&self.http))
            .field("https", &name(&self.https))
            .field("direct", &self.direct)
            .finish()
    }
}

impl ProxyVariable {
    fn url(&self) -> Result<Url, HttpError> {
        let text = if self.value.contains("://") {
            self.value.clone()
        } else {
            format!("http://{}", self.value)
        };
        let refuse = |reason: String| HttpError::BadProxy {
            variable: self.variable.to_owned(),
            value: MaskedUrl::from_unreadable(&self.value),
            reason,
        };
        let url = Url::parse(&text).map_err(|error| refuse(error.to_string()))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(refuse(format!("`{}` is not one of {}", url.scheme(), SCHEMES.join(", "))));
        }
        if url.host_str().is_none() {
            return Err(refuse("it has no host".to_owned()));
        }
        Ok(url)
    }
}

/// Checked proxies.
#[derive(Clone)]
pub(crate) struct ProxyRoute {
    http: Option<Url>,
    https: Option<Url>,
    direct: String,
}

impl ProxyRoute {
    /// Returns the proxies in the library's form.
    pub(crate) fn reqwest_proxies(&self) -> Result<Vec<reqwest::Proxy>, reqwest::Error> {
        let direct = NoProxy::from_string(&self.direct);
        let http = self.http.clone().map(reqwest::Proxy::http);
        let https = self.https.clone().map(reqwest::Proxy::https);
        let both = [http, https].into_iter().flatten();
        both.map(|proxy| Ok(proxy?.no_proxy(direct.clone()))).collect()
    }

    /// Returns true if a proxy runs on this host.
    pub(crate) fn is_proxy(&self, host: &str) -> bool {
        let is_host = |url: &Url| url.host_str().is_some_and(|it| it.eq_ignore_ascii_case(host));
        [&self.http, &self.https].into_iter().flatten().any(is_host)
    }

    /// Returns the proxy for a request, by the same rules as the library.
    pub(crate) fn proxy_of(&self, url: &Url) -> Option<Url> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        let proxy = proxy.clone()?;
        let uri: hyper::Uri = url.as_str().parse().ok()?;
        let rules = Matcher::builder().all(proxy.as_str()).no(self.direct.as_str()).build();
        rules.intercept(&uri).map(|_| proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies_from(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check_proxy(variables: &[(&str, &str)], url: &str, expected: Option<&str>) {
        let route = proxies_from(variables).route().unwrap();
        let proxy = route.proxy_of(&Url::parse(url).unwrap());
        assert_eq!(proxy.as_ref().map(Url::as_str), expected);
    }

    #[test]
    fn each_scheme_has_its_own_proxy() {
        let both = [("HTTP_PROXY", "http://a:1"), ("https_proxy", "http://b:2")];
        check_proxy(&both, "http://h.example/", Some("http://a:1/"));
        check_proxy(&both, "https://h.example/", Some("http://b:2/"));
        check_proxy(&both[..1], "https://h.example/", None);
    }

    #[test]
    fn all_proxy_applies_to_schemes_without_their_own_proxy() {
        let both = [("ALL_PROXY", "socks5://s"), ("http_proxy", "a:1")];
        check_proxy(&both, "http://h.example/", Some("http://a:1/"));
        check_proxy(&both, "https://h.example/", Some("socks5://s"));
    }

    #[test]
    fn the_lower_case_name_wins_and_empty_means_none() {
        check_proxy(
            &[("HTTP_PROXY", "a:1"), ("http_proxy", "b:2")],
            "http://h/",
            Some("http://b:2/"),
        );
        check_proxy(&[("HTTP_PROXY", "a:1"), ("http_proxy", "")], "http://h/", None);
    }

    #[test]
    fn no_proxy_takes_domains_addresses_and_the_star() {
        let with = |direct| [("http_proxy", "a:1"), ("NO_PROXY", direct)];
        check_proxy(&with("h.example, 10.0.0.0/8"), "http://sub.h.example/", None);
        check_proxy(&with("h.example, 10.0.0.0/8"), "http://10.1.2.3/", None);
        check_proxy(&with("h.example"), "http://noth.example/", Some("http://a:1/"));
        for host in ["anything", "10.0.0.0:8000", "[2001:db8::1]"] {
            check_proxy(&with("*"), &format!("http://{host}/"), None);
            check_proxy(&with("a.b, *"), &format!("http://{host}/"), None);
        }
        check_proxy(&with("*.corp.example"), "http://a.corp.example/", None);
        check_proxy(&with("*.corp.example"), "http://acorp.example/", Some("http://a:1/"));
    }

    #[test]
    fn loopback_is_never_proxied() {
        for url in ["http://localhost:11434/", "http://127.0.0.1/", "http://[::1]/"] {
            check_proxy(&[("http_proxy", "a:1")], url, None);
        }
    }

    #[test]
    fn cgi_program_ignores_uppercase_http_proxy() {
        let variables = [("HTTP_PROXY", "evil:1"), ("REQUEST_METHOD", "GET")];
        check_proxy(&variables, "http://h.example/", None);
    }

    #[test]
    fn a_bad_proxy_names_its_variable_and_hides_its_password() {
        let error = proxies_from(&[("https_proxy", "ftp://me:pw@h")]).route().err().unwrap();
        assert_eq!(
            error.to_string(),
            "cannot use the proxy `ftp://…@h` of the variable `https_proxy`: \
             `ftp` is not one of http, https, socks4, socks5, socks5h"
        );
    }

    #[test]
    fn debug_does_not_tell_a_password() {
        let shown = format!("{:?}", proxies_from(&[("https_proxy", "http://me:hunter2@h")]));
        assert!(shown.contains("https_proxy") && !shown.contains("hunter2"), "{shown}");
    }
}
