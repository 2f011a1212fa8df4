//! Origins of a vendor's servers, which may differ by region. Pure.

use jaato_http::Url;
use jaato_types::{Error, ErrorKind, PluginName};

/// Origins as a plugin declares them: `https://*-aiplatform.googleapis.com`.
#[derive(Debug)]
pub(super) struct OriginPattern {
    /// The beginning of the host, before the variable part.
    begin: String,
    /// The end of the host, or `None` if `begin` is the whole host.
    end: Option<String>,
}

impl OriginPattern {
    /// Parses a declaration.
    ///
    /// # Errors
    /// `plugin_misbehaved` if it is not an https origin, or a `*` could match more than a part of
    /// one label.
    pub(super) fn parse_declaration(plugin: &PluginName, text: &str) -> Result<Self, Error> {
        let wrong = || {
            let text = format!("plugin `{plugin}` declares a credential with the origin `{text}`");
            Error::new(ErrorKind::PluginMisbehaved, text)
        };
        let host = text.strip_prefix("https://").ok_or_else(wrong)?;
        let is_sign = |sign: char| {
            sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '-' | '.' | '*')
        };
        if host.is_empty() || !host.chars().all(is_sign) {
            return Err(wrong());
        }
        let Some((begin, end)) = host.split_once('*') else {
            return Ok(Self { begin: host.to_owned(), end: None });
        };
        // The label with the `*` must be followed by a domain of at least two labels.
        let is_bound = !begin.contains('.') && !end.contains('*') && end.matches('.').count() >= 2;
        if !is_bound {
            return Err(wrong());
        }
        Ok(Self { begin: begin.to_owned(), end: Some(end.to_owned()) })
    }

    /// Returns true if a URL has one of these origins.
    pub(super) fn matches(&self, url: &Url) -> bool {
        let Some(host) = url.host_str().filter(|_| url.scheme() == "https" && url.port().is_none())
        else {
            return false;
        };
        let Some(end) = &self.end else { return host == self.begin };
        let rest = host.strip_prefix(&self.begin).and_then(|rest| rest.strip_suffix(end.as_str()));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_origin(text: &str) -> Result<OriginPattern, Error> {
        OriginPattern::parse_declaration(&PluginName::from("provider-x"), text)
    }

    #[test]
    fn star_in_an_origin_matches_part_of_one_label() {
        let pattern = parse_origin("https://*-aiplatform.googleapis.com").unwrap();
        let matches = |url: &str| pattern.matches(&Url::parse(url).unwrap());
        assert!(matches("https://us-central1-aiplatform.googleapis.com/v1"));
        for url in [
            "https://aiplatform.googleapis.com",
            "https://-aiplatform.googleapis.com",
            "https://evil.example.us-aiplatform.googleapis.com",
            "https://us-aiplatform.googleapis.com.evil.example",
            "http://us-aiplatform.googleapis.com",
            "https://us-aiplatform.googleapis.com:8443",
        ] {
            assert!(!matches(url), "{url}");
        }
        let exact = parse_origin("https://aiplatform.eu.rep.googleapis.com").unwrap();
        let matches = |url: &str| exact.matches(&Url::parse(url).unwrap());
        assert!(matches("https://aiplatform.eu.rep.googleapis.com/v1"));
        assert!(!matches("https://x.aiplatform.eu.rep.googleapis.com"));
    }

    #[test]
    fn origin_pattern_that_could_match_any_server_is_refused() {
        for text in [
            "",
            "https://",
            "https://*",
            "https://*.com",
            "https://a.*.example.com",
            "https://**.example.com",
            "http://a.example.com",
            "https://a.example.com/x",
            "https://a.example.com:1",
        ] {
            assert_eq!(parse_origin(text).unwrap_err().kind, ErrorKind::PluginMisbehaved, "{text}");
        }
        assert!(parse_origin("https://*.example.com").is_ok());
    }
}
