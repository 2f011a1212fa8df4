//! Shows proxies, host lists and paths without the credentials that users put into them.
//!
//! This is not a URL parser. It shows only text that is certainly not a secret. A host and port
//! that look like one stay. Everything else, and everything ambiguous, becomes `***`.

use std::net::IpAddr;

const MASKED: &str = "***";
const MASKED_USER: &str = "***:***@";

/// Proxy schemes. Any other word before `://` may be part of a secret.
const SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Characters that end the host of a URL. A password may also contain them unencoded.
const AFTER_HOST: [char; 4] = ['/', '?', '#', '\\'];

/// A proxy that is safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MaskedProxy {
    /// Scheme, `***:***@` instead of a user, host and port.
    pub(crate) shown: String,
    /// Whether the proxy has a user.
    pub(crate) has_user: bool,
}

/// Masks user and password, and drops path, query and fragment.
pub(crate) fn mask_proxy(raw: &str) -> MaskedProxy {
    let (scheme, rest) = split_scheme(raw.trim());
    // Use the last `@`, because an unencoded password may contain one too.
    let (user, after) =
        rest.rsplit_once('@').map_or((None, rest), |(user, after)| (Some(user), after));
    let host = after.split(AFTER_HOST).next().unwrap_or_default();

    // `http://host/?key=a@b` or `http://user:pass/word@host`? Only the author knows.
    let is_ambiguous = user.is_some_and(|user| user.contains(AFTER_HOST));
    let host = if !is_ambiguous && is_host(host, HostWildcard::Refused) { host } else { MASKED };
    let user = if user.is_some() { MASKED_USER } else { "" };
    MaskedProxy { shown: format!("{scheme}{user}{host}"), has_user: !user.is_empty() }
}

/// Shows a list of hosts that is separated by commas or spaces. Masks the whole text if any entry
/// is not a host: a misplaced password may contain a comma, so that the rest of it would look like
/// a host.
pub(crate) fn mask_host_list(raw: &str) -> String {
    let entries = raw.split(|char: char| char == ',' || char.is_whitespace());
    let shown: Option<Vec<_>> =
        entries.filter(|entry| !entry.is_empty()).map(parse_host_entry).collect();
    shown.map_or_else(|| MASKED.to_owned(), |entries| entries.join(","))
}

/// Returns the entry if it is a host, network or pattern. It may have a scheme, which users write
/// although it has no meaning here.
fn parse_host_entry(entry: &str) -> Option<&str> {
    let (_, host) = split_scheme(entry);
    let host = strip_prefix_length(host.strip_suffix('/').unwrap_or(host));
    (entry == "<local>" || is_host(host, HostWildcard::Allowed)).then_some(entry)
}

/// Masks a text that is not a plain path. A URL may contain a password, and several lines may be a
/// key.
pub(crate) fn mask_path(raw: &str) -> &str {
    let is_path = !raw.contains("://") && !raw.contains(char::is_control);
    if is_path { raw } else { MASKED }
}

/// Splits off a known scheme with its `://`.
fn split_scheme(raw: &str) -> (&str, &str) {
    let Some((scheme, _)) = raw.split_once("://") else { return ("", raw) };
    let is_known = SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme));
    if is_known { raw.split_at(scheme.len() + "://".len()) } else { ("", raw) }
}

/// Returns `10.0.0.0` for `10.0.0.0/8`.
fn strip_prefix_length(entry: &str) -> &str {
    match entry.split_once('/') {
        Some((network, bits)) if is_number(bits) => network,
        _ => entry,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HostWildcard {
    Allowed,
    Refused,
}

/// Returns true if the text is only a name or an address, with or without a port.
fn is_host(text: &str, wildcard: HostWildcard) -> bool {
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    if let Some(text) = text.strip_prefix('[') {
        let Some((address, port)) = text.split_once(']') else { return false };
        return is_address(address) && (port.is_empty() || is_port(port.strip_prefix(':')));
    }
    if wildcard == HostWildcard::Allowed && is_address(text) {
        return true;
    }
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let is_name_char = |char: char| {
        char.is_ascii_alphanumeric()
            || matches!(char, '.' | '-' | '_')
            || (wildcard == HostWildcard::Allowed && char == '*')
    };
    !name.is_empty() && name.chars().all(is_name_char) && (port.is_none() || is_port(port))
}

fn is_port(port: Option<&str>) -> bool {
    port.is_some_and(|port| is_number(port) && port.parse::<u16>().is_ok())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_shown_proxy(raw: &str, expected: &str) {
        assert_eq!(mask_proxy(raw).shown, expected, "{raw}");
    }

    #[test]
    fn proxy_without_credentials_is_shown_unchanged() {
        for raw in [
            "http://proxy.corp.com:8080",
            "https://proxy",
            "HTTP://Proxy_1:3128",
            "socks5h://127.0.0.1:1080",
            "http://[::1]:8080",
            "http://[fe80::1]",
            "proxy.corp.com:8080",
            "proxy",
        ] {
            assert_eq!(mask_proxy(raw), MaskedProxy { shown: raw.to_owned(), has_user: false });
        }
        check_shown_proxy(" http://proxy:8080/ ", "http://proxy:8080");
        check_shown_proxy("http://proxy:8080/path?key=secret#part", "http://proxy:8080");
    }

    #[test]
    fn user_and_password_are_masked_and_the_host_stays() {
        for raw in [
            "http://user:s3cret@proxy.corp.com:8080",
            "http://admin:p%40ss%2Fw0rd@proxy.corp.com:8080/",
            "http://user:s3@cr:et@proxy.corp.com:8080",
            "http://token@proxy.corp.com:8080",
            "http://:s3cret@proxy.corp.com:8080",
            "http://user:a b,c;d=e@proxy.corp.com:8080?x=y",
        ] {
            check_shown_proxy(raw, "http://***:***@proxy.corp.com:8080");
            assert!(mask_proxy(raw).has_user);
        }
        check_shown_proxy("user:s3cret@proxy:8080", "***:***@proxy:8080");
        check_shown_proxy("http:user:s3cret@proxy:8080", "***:***@proxy:8080");
        check_shown_proxy("http=u:s3cret@a:80;https=u:s3cret@b:80", "***:***@b:80");
        check_shown_proxy("http://user:s3cret@[::1]:8080", "http://***:***@[::1]:8080");
    }

    #[test]
    fn ambiguous_proxy_is_masked_completely() {
        check_shown_proxy("http://user:s3/cret@proxy:8080", "http://***:***@***");
        check_shown_proxy("http://user:s3?cret@proxy:8080", "http://***:***@***");
        check_shown_proxy("http://user:s3#cret@proxy:8080", "http://***:***@***");
        check_shown_proxy("http://user:pw@proxy/?key=s3@cret", "http://***:***@***");
        check_shown_proxy(r"http:\\user:s3cret@proxy", "***:***@***");
        check_shown_proxy("http:/user:s3cret@proxy", "***:***@***");
        check_shown_proxy("http://http://user:s3cret@proxy", "http://***:***@***");
    }

    #[test]
    fn malformed_proxy_is_masked_completely() {
        for raw in [
            "http://user:s3cret",
            "http://user:s3cret/",
            "http://user%3As3cret%40proxy:8080",
            "http://user:s3cret%40proxy:8080",
            "http://s3cret proxy",
            "http://proxy:8080\nkey: s3cret",
            "http://proxy:99999",
            "http://[s3cret]:80",
            "http://[::1",
            "http://",
        ] {
            check_shown_proxy(raw, "http://***");
        }
        check_shown_proxy("s3cret://proxy:8080", "***");
        check_shown_proxy("s3cret://user:pw@proxy:8080", "***:***@***");
        check_shown_proxy("Basic dXNlcjpwYXNz==", "***");
        check_shown_proxy("", "***");
        check_shown_proxy("@", "***:***@***");
    }

    #[test]
    fn proxy_secret_is_never_shown_in_any_spelling() {
        let starts =
            ["", "http://", "HTTPS://", "x://", "http:", "http:/", "//", "http=", "[", "a,"];
        let secrets =
            ["w", "w/w", "w@w", "w%40w", "w:w", "w w", "w#w", "w?w", "w,w", "w\\w", "w\nw", "ẅw"];
        let ends =
            ["", "/", "@host:80", "@host/", "%40host:80", "@host/?a@b", "@", ":80", "@[::1]:1"];
        for start in starts {
            for secret in secrets {
                for end in ends {
                    // `user:one@two` always reads as a user and a host.
                    if secret.contains('@') && !end.starts_with('@') {
                        continue;
                    }
                    let raw = format!("{start}ww:{secret}{end}");
                    let shown = [mask_proxy(&raw).shown, mask_host_list(&raw)];
                    assert!(!shown.iter().any(|text| text.contains('w')), "{raw}: {shown:?}");
                }
            }
        }
    }

    #[test]
    fn a_list_of_hosts_is_shown_and_anything_else_is_masked_whole() {
        for (raw, expected) in [
            ("localhost,127.0.0.1,.corp.com", "localhost,127.0.0.1,.corp.com"),
            ("localhost, *.corp.com  10.0.0.0/8", "localhost,*.corp.com,10.0.0.0/8"),
            ("::1,[::1]:80,fd00::/8,host:8080,*", "::1,[::1]:80,fd00::/8,host:8080,*"),
            ("<local>,,a", "<local>,a"),
            ("http://host/,a", "http://host/,a"),
            ("user:s3cret,a", "***"),
            ("a,user:12,34@host", "***"),
            ("http://user:s3cret@host,a", "***"),
            ("a,s3cret=x", "***"),
        ] {
            assert_eq!(mask_host_list(raw), expected, "{raw}");
        }
    }

    #[test]
    fn path_is_shown_and_a_non_path_is_masked() {
        for raw in ["/etc/ssl/custom-ca.pem", r"C:\certs\ca.pem", "/home/me@corp/ca.pem"] {
            assert_eq!(mask_path(raw), raw);
        }
        for raw in ["https://user:s3cret@host/ca.pem", "-----BEGIN KEY-----\ns3cret"] {
            assert_eq!(mask_path(raw), "***");
        }
    }
}
