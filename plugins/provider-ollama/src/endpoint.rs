//! Finds the server that the user configured: by URL, or by an address in Ollama's own form. Pure.

use jaato_plugin_sdk::{Error, ErrorKind, Result};

use crate::config::Config;

/// The default server.
pub const LOCAL: &str = "http://127.0.0.1:11434";

/// The default port of a server.
const PORT: &str = "11434";

/// The vendor's own server.
const CLOUD: &str = "ollama.com";

/// Path endings that some users append to the server's root.
const ENDS: [&str; 4] = ["/api/chat", "/api", "/v1/chat/completions", "/v1"];

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OllamaServer {
    /// The server's URL, without an API path and without a trailing slash.
    pub root: String,
    /// The setting that names the server.
    pub named_by: ServerNameSource,
}

/// The setting that names a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerNameSource {
    /// `base_url`, to which the host binds the user's API key.
    BaseUrl,
    /// `host` or `OLLAMA_HOST`.
    Host,
    /// No setting.
    Nothing,
}

impl OllamaServer {
    /// Finds the server.
    ///
    /// # Errors
    /// `configuration` if the host is not an address.
    pub fn from_config(config: &Config) -> Result<Self> {
        let (base_url, host) = (config.base_url.trim(), config.host.trim());
        if !base_url.is_empty() {
            let root = base_url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            let root = ENDS.iter().find_map(|end| root.strip_suffix(end)).unwrap_or(root);
            let root = root.trim_end_matches('/').to_owned();
            return Ok(Self { root, named_by: ServerNameSource::BaseUrl });
        }
        let host = host.trim_matches(['"', '\'']).trim();
        if host.is_empty() {
            return Ok(Self { root: LOCAL.to_owned(), named_by: ServerNameSource::Nothing });
        }
        let root = parse_root_url(host).ok_or_else(|| {
            let text = "`OLLAMA_HOST`, or `host` under `[plugins.provider-ollama]`, is not an \
                        address";
            Error::new(ErrorKind::Configuration, text)
                .with_hint("an address looks like `gpu-box`, `gpu-box:11434` or `https://gpu-box`")
        })?;
        Ok(Self { root, named_by: ServerNameSource::Host })
    }

    /// Returns the URL of a path of the API.
    pub fn api_url(&self, path: &str) -> String {
        format!("{}/api/{path}", self.root)
    }

    /// Returns true if the server is on this machine.
    pub fn is_on_this_machine(&self) -> bool {
        let host = self.root.split_once("://").map_or("", |(_, rest)| rest);
        ["127.0.0.1", "[::1]", "localhost"].iter().any(|here| {
            let rest = host.strip_prefix(here);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
        })
    }
}

/// Reads an address as Ollama's own client does.
fn parse_root_url(text: &str) -> Option<String> {
    let (scheme, rest, port) = match text.split_once("://") {
        None if text == CLOUD => ("https", CLOUD, ""),
        None => ("http", text, PORT),
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest, ""),
        Some(_) => return None,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, given_port) = split_host_and_port(authority);
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let port = given_port.filter(|given| is_port(given)).unwrap_or(port);
    // A server that listens on every address is reachable on this machine.
    let host = match host.trim_matches(['[', ']']) {
        "" | "0.0.0.0" => "127.0.0.1".to_owned(),
        "::" => "[::1]".to_owned(),
        address if address.contains(':') => format!("[{address}]"),
        name => name.to_owned(),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:[]%".contains(c);
    if !host.chars().all(is_plain) || path.contains(['?', '#', ' ']) {
        return None;
    }
    let port = if port.is_empty() { String::new() } else { format!(":{port}") };
    let path = path.trim_end_matches('/');
    let path = if path.is_empty() { String::new() } else { format!("/{path}") };
    Some(format!("{scheme}://{host}{port}{path}"))
}

/// Splits `host:port`. An IPv6 address without brackets has no port.
fn split_host_and_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        Some(_) | None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_for(base_url: &str, host: &str) -> Result<OllamaServer> {
        let (base_url, host) = (base_url.to_owned(), host.to_owned());
        OllamaServer::from_config(&Config { base_url, host, ..Config::default() })
    }

    #[test]
    fn host_setting_gets_a_default_scheme_and_port() {
        for (host, expected) in [
            ("", LOCAL),
            ("  ", LOCAL),
            ("0.0.0.0", LOCAL),
            ("\"0.0.0.0:8080\"", "http://127.0.0.1:8080"),
            (":8080", "http://127.0.0.1:8080"),
            ("gpu-box", "http://gpu-box:11434"),
            ("gpu-box:80/", "http://gpu-box:80"),
            ("gpu-box:moon", "http://gpu-box:11434"),
            ("gpu-box:99999", "http://gpu-box:11434"),
            ("http://gpu-box", "http://gpu-box"),
            ("https://gpu-box/ollama/", "https://gpu-box/ollama"),
            ("https://gpu-box:8443", "https://gpu-box:8443"),
            ("[::1]:1", "http://[::1]:1"),
            ("::", "http://[::1]:11434"),
            ("fe80::1", "http://[fe80::1]:11434"),
            ("ollama.com", "https://ollama.com"),
        ] {
            assert_eq!(server_for("", host).unwrap().root, expected, "{host}");
        }
        for host in ["ftp://h", "a b", "h/p?q=1"] {
            assert_eq!(server_for("", host).unwrap_err().kind, ErrorKind::Configuration, "{host}");
        }
    }

    #[test]
    fn base_url_overrides_the_host_and_drops_api_paths() {
        for end in ["", "/", "/v1", "/v1/", "/api", "/api/chat", "/v1/chat/completions"] {
            let server = server_for(&format!(" http://h:1/x{end} "), "other").unwrap();
            assert_eq!(
                (server.root.as_str(), server.named_by),
                ("http://h:1/x", ServerNameSource::BaseUrl)
            );
            assert_eq!(server.api_url("chat"), "http://h:1/x/api/chat");
        }
    }

    #[test]
    fn server_on_this_machine_is_recognized() {
        for host in ["", "localhost", "localhost:80/x", "[::1]"] {
            assert!(server_for("", host).unwrap().is_on_this_machine(), "{host}");
        }
        for host in ["gpu-box", "localhost.evil", "127.0.0.12"] {
            assert!(!server_for("", host).unwrap().is_on_this_machine(), "{host}");
        }
    }
}
