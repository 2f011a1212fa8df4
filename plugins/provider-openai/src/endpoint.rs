//! URLs below a base URL as people write it.

use crate::dialect::Dialect;

/// The base URL where nobody names another.
pub const VENDOR: &str = "https://api.openai.com/v1";

/// The path of completions, which some people paste with the base URL.
const COMPLETIONS: &str = "/chat/completions";

/// Joins a base URL and a path. Keeps a query, which some gateways want; forgives slashes at the
/// end and a whole completions URL.
pub fn below(base: &str, path: &str) -> String {
    let base = base.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix(COMPLETIONS).unwrap_or(base);
    format!("{base}/{path}{query}")
}

/// Joins the server's root and a path: where a server that speaks a protocol of its own as well has
/// that. `None` for a server that is not reached over plain http, or whose base URL does not end in
/// `/v1`: servers of one's own are, vendors are not, and have nothing there.
pub fn at_root(base: &str, path: &str) -> Option<String> {
    let base = base.trim();
    let base = base.split('?').next().unwrap_or(base).trim_end_matches('/');
    let base = base.strip_suffix(COMPLETIONS).unwrap_or(base);
    let root = base.strip_suffix("/v1").filter(|root| root.starts_with("http://"))?;
    Some(format!("{root}/{path}"))
}

/// Tells whether a base URL is the vendor's own, where a few things are spelled differently.
pub fn is_vendors(base: &str) -> bool {
    is_of(base, "api.openai.com")
}

/// Tells whose words the server of a base URL understands.
pub fn dialect(base: &str) -> Dialect {
    if is_vendors(base) {
        Dialect::Vendor
    } else if is_of(base, "openrouter.ai") {
        Dialect::Router
    } else {
        Dialect::Common
    }
}

fn is_of(base: &str, host: &str) -> bool {
    let rest = base.trim().strip_prefix("https://").and_then(|rest| rest.strip_prefix(host));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write_leads_to_the_same_place() {
        for base in ["http://h:1/v1", "http://h:1/v1/", " http://h:1/v1/chat/completions/ "] {
            assert_eq!(below(base, "chat/completions"), "http://h:1/v1/chat/completions");
            assert_eq!(below(base, "models"), "http://h:1/v1/models");
        }
        assert_eq!(below("https://h/x?v=1", "models"), "https://h/x/models?v=1");
    }

    #[test]
    fn the_root_is_that_of_a_server_of_ones_own() {
        for base in ["http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions?x=1"] {
            assert_eq!(at_root(base, "props").as_deref(), Some("http://h:1/props"));
        }
        assert_eq!(at_root("http://h/x/v1", "props").as_deref(), Some("http://h/x/props"));
        for base in [VENDOR, "https://h/v1", "http://h:1", "http://h/v1beta/openai"] {
            assert_eq!(at_root(base, "props"), None, "{base}");
        }
    }

    #[test]
    fn the_vendor_is_told_by_its_host_alone() {
        assert!(is_vendors(VENDOR) && is_vendors("https://api.openai.com"));
        assert_eq!(dialect(VENDOR), Dialect::Vendor);
        assert_eq!(dialect("https://openrouter.ai/api/v1"), Dialect::Router);
        for other in [
            "http://api.openai.com/v1",
            "https://api.openai.com.evil/v1",
            "https://h/api.openai.com",
        ] {
            assert!(!is_vendors(other), "{other}");
            assert_eq!(dialect(other), Dialect::Common);
        }
    }
}
