//! Builds URLs from a base URL as users write it.

/// The default base URL.
pub const VENDOR: &str = "https://api.anthropic.com";

/// Path endings that some users append to the server's root.
const ENDS: [&str; 3] = ["/v1/messages", "/messages", "/v1"];

/// Joins a base URL and an API path. Keeps a query, which some gateways need, and tolerates
/// trailing slashes, `/v1` and the full URL of the messages endpoint.
pub fn join_api_path(base: &str, path: &str) -> String {
    let base = base.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = base.trim_end_matches('/');
    let root = ENDS.iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base);
    format!("{}/v1/{path}{query}", root.trim_end_matches('/'))
}

/// Encodes a text as a query value.
pub fn encode_query_value(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let written = |byte: u8| {
        if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(written).collect()
}

/// Returns true if a base URL is the vendor's own.
pub fn is_vendor_url(base: &str) -> bool {
    let rest = base.trim().strip_prefix(VENDOR);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_variants_give_the_same_endpoint() {
        for base in ["http://h:1", "http://h:1/", " http://h:1/v1/ ", "http://h:1/v1/messages"] {
            assert_eq!(join_api_path(base, "messages"), "http://h:1/v1/messages");
            assert_eq!(join_api_path(base, "models"), "http://h:1/v1/models");
        }
        assert_eq!(
            join_api_path("https://h/anthropic?v=1", "models"),
            "https://h/anthropic/v1/models?v=1"
        );
    }

    #[test]
    fn query_values_are_percent_encoded() {
        assert_eq!(encode_query_value("claude-opus-4.5"), "claude-opus-4.5");
        assert_eq!(encode_query_value("a&b=c é"), "a%26b%3Dc%20%C3%A9");
    }

    #[test]
    fn vendor_is_recognized_only_by_its_exact_host() {
        assert!(is_vendor_url(VENDOR) && is_vendor_url("https://api.anthropic.com/v1"));
        for other in ["http://api.anthropic.com", "https://api.anthropic.com.evil", "https://h"] {
            assert!(!is_vendor_url(other), "{other}");
        }
    }
}
