//! URLs below a base URL as people write it.

use jaato_plugin_sdk::types::Request;

use crate::config::{Api, Config};
use crate::dialect::Dialect;
use crate::responses;

/// Paths that some people paste with the base URL.
const PASTED: [&str; 2] = ["/chat/completions", "/responses"];

/// Joins a base URL and a path. Keeps a query, which some gateways want; forgives slashes at the
/// end and the whole URL of a protocol.
pub fn below(base: &str, path: &str) -> String {
    let base = base.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = unpasted(base);
    format!("{base}/{path}{query}")
}

fn unpasted(base: &str) -> &str {
    let base = base.trim_end_matches('/');
    PASTED.iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base)
}

/// Joins the server's root and a path: where a server that speaks a protocol of its own as well has
/// that. `None` for a server that is not reached over plain http, or whose base URL does not end in
/// `/v1`: servers of one's own are, vendors are not, and have nothing there.
pub fn at_root(base: &str, path: &str) -> Option<String> {
    let base = base.trim();
    let base = unpasted(base.split('?').next().unwrap_or(base));
    let root = base.strip_suffix("/v1").filter(|root| root.starts_with("http://"))?;
    Some(format!("{root}/{path}"))
}

/// Tells whether a base URL is the vendor's own, of whose models more is known than it lists.
pub fn is_vendors(base: &str) -> bool {
    dialect(base, Dialect::Auto) == Dialect::OpenAi
}

/// Tells whose words the server of a base URL understands, where the settings do not say so.
pub fn dialect(base: &str, said: Dialect) -> Dialect {
    match said {
        Dialect::Auto => host(base).map_or(Dialect::Common, Dialect::of_host),
        said => said,
    }
}

/// Tells by which of its protocols a server is asked, for this request: a few options are
/// understood by the older one alone.
pub(crate) fn protocol(config: &Config, request: &Request) -> Protocol {
    match config.api {
        Api::Responses => Protocol::Responses,
        Api::Chat => Protocol::Chat,
        Api::Auto => {
            let has_responses = match dialect(&config.base_url, config.dialect) {
                Dialect::OpenAi => true,
                // The older form of Azure names a deployment in its path, and has no other.
                Dialect::Azure => !config.base_url.contains("/deployments/"),
                _ => false,
            };
            let is_chats = !responses::not_taken(request).is_empty();
            if has_responses && !is_chats { Protocol::Responses } else { Protocol::Chat }
        }
    }
}

/// The protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Responses,
    Chat,
}

/// The host of a base URL that is reached by https: a server of one's own is nobody's.
fn host(base: &str) -> Option<&str> {
    let rest = base.trim().strip_prefix("https://")?;
    rest.split(['/', '?']).next()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Value, json};

    use super::*;
    use crate::config::VENDOR;

    #[test]
    fn what_people_write_leads_to_the_same_place() {
        for base in [
            "http://h:1/v1",
            "http://h:1/v1/",
            " http://h:1/v1/chat/completions/ ",
            "http://h:1/v1/responses",
        ] {
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
        let of = |base: &str| dialect(base, Dialect::Auto);
        assert_eq!(of(VENDOR), Dialect::OpenAi);
        assert_eq!(of("https://openrouter.ai/api/v1"), Dialect::OpenRouter);
        assert_eq!(dialect(VENDOR, Dialect::Groq), Dialect::Groq);
        for other in [
            "http://api.openai.com/v1",
            "https://api.openai.com.evil/v1",
            "https://h/api.openai.com",
        ] {
            assert!(!is_vendors(other), "{other}");
            assert_eq!(of(other), Dialect::Common);
        }
    }

    #[test]
    fn responses_are_asked_of_those_who_have_them() {
        let request = |options: Value| {
            let mut request = Request::new("m", Vec::new());
            request.options = serde_json::from_value(options).unwrap();
            request
        };
        let of = |base: &str, api, options: Value| {
            let config = Config { base_url: base.to_owned(), api, ..Config::default() };
            protocol(&config, &request(options))
        };
        let azure = "https://moon.openai.azure.com/openai";
        for (base, api, expected) in [
            (VENDOR, Api::Auto, Protocol::Responses),
            (VENDOR, Api::Chat, Protocol::Chat),
            (&format!("{azure}/v1"), Api::Auto, Protocol::Responses),
            (&format!("{azure}/deployments/d?api-version=1"), Api::Auto, Protocol::Chat),
            ("http://localhost:1/v1", Api::Auto, Protocol::Chat),
            ("http://localhost:1/v1", Api::Responses, Protocol::Responses),
        ] {
            assert_eq!(of(base, api, json!({})), expected, "{base} {api:?}");
        }
        for options in [json!({ "seed": 7 }), json!({ "stop": ["a"] })] {
            assert_eq!(of(VENDOR, Api::Auto, options.clone()), Protocol::Chat);
            assert_eq!(of(VENDOR, Api::Responses, options), Protocol::Responses);
        }
        assert_eq!(of(VENDOR, Api::Auto, json!({ "stop": [""] })), Protocol::Responses);
    }
}
