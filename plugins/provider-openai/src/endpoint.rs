//! Builds URLs from a base URL as users write it.

use jaato_plugin_sdk::types::CompletionRequest;

use crate::config::{Config, OpenAiApi};
use crate::dialect::OpenAiDialect;
use crate::responses;

/// Paths that some users paste with the base URL.
const PASTED: [&str; 2] = ["/chat/completions", "/responses"];

/// Joins a base URL and a path. Keeps a query, which some gateways need, and tolerates trailing
/// slashes and the full URL of a protocol.
pub fn join_api_path(base: &str, path: &str) -> String {
    let base = base.trim();
    let (base, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let base = strip_pasted_path(base);
    format!("{base}/{path}{query}")
}

fn strip_pasted_path(base: &str) -> &str {
    let base = base.trim_end_matches('/');
    PASTED.iter().find_map(|path| base.strip_suffix(path)).unwrap_or(base)
}

/// Joins the server's root and a path, for servers that also have a native API at their root.
/// Returns `None` unless the base URL uses plain http and ends in `/v1`. Vendors' servers use https
/// and have no such API.
pub fn join_server_root(base: &str, path: &str) -> Option<String> {
    let base = base.trim();
    let base = strip_pasted_path(base.split('?').next().unwrap_or(base));
    let root = base.strip_suffix("/v1").filter(|root| root.starts_with("http://"))?;
    Some(format!("{root}/{path}"))
}

/// Returns true if a base URL is the vendor's own. More is known about its models than it lists.
pub fn is_vendor_url(base: &str) -> bool {
    dialect_of_server(base, OpenAiDialect::Auto) == OpenAiDialect::OpenAi
}

/// Returns the dialect of a base URL's server, unless the settings name one.
pub fn dialect_of_server(base: &str, said: OpenAiDialect) -> OpenAiDialect {
    match said {
        OpenAiDialect::Auto => {
            https_host(base).map_or(OpenAiDialect::Common, OpenAiDialect::from_host)
        }
        said => said,
    }
}

/// Chooses the protocol for a request. Only the older protocol supports a few of the options.
pub(crate) fn choose_protocol(config: &Config, request: &CompletionRequest) -> OpenAiProtocol {
    match config.api {
        OpenAiApi::Responses => OpenAiProtocol::Responses,
        OpenAiApi::Chat => OpenAiProtocol::Chat,
        OpenAiApi::Auto => {
            let has_responses = match dialect_of_server(&config.base_url, config.dialect) {
                OpenAiDialect::OpenAi => true,
                // Azure's older API, which has a deployment in its path, does not support
                // Responses.
                OpenAiDialect::Azure => !config.base_url.contains("/deployments/"),
                _ => false,
            };
            let is_chats = !responses::list_unsupported_options(request).is_empty();
            if has_responses && !is_chats {
                OpenAiProtocol::Responses
            } else {
                OpenAiProtocol::Chat
            }
        }
    }
}

/// The protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenAiProtocol {
    Responses,
    Chat,
}

/// Returns the host of an https base URL. A plain http server belongs to the user, and has no known
/// host.
fn https_host(base: &str) -> Option<&str> {
    let rest = base.trim().strip_prefix("https://")?;
    rest.split(['/', '?']).next()
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Value, json};

    use super::*;
    use crate::config::VENDOR;

    #[test]
    fn base_url_variants_give_the_same_endpoint() {
        for base in [
            "http://h:1/v1",
            "http://h:1/v1/",
            " http://h:1/v1/chat/completions/ ",
            "http://h:1/v1/responses",
        ] {
            assert_eq!(join_api_path(base, "chat/completions"), "http://h:1/v1/chat/completions");
            assert_eq!(join_api_path(base, "models"), "http://h:1/v1/models");
        }
        assert_eq!(join_api_path("https://h/x?v=1", "models"), "https://h/x/models?v=1");
    }

    #[test]
    fn server_root_is_known_only_for_self_hosted_servers() {
        for base in ["http://h:1/v1", "http://h:1/v1/", "http://h:1/v1/chat/completions?x=1"] {
            assert_eq!(join_server_root(base, "props").as_deref(), Some("http://h:1/props"));
        }
        assert_eq!(join_server_root("http://h/x/v1", "props").as_deref(), Some("http://h/x/props"));
        for base in [VENDOR, "https://h/v1", "http://h:1", "http://h/v1beta/openai"] {
            assert_eq!(join_server_root(base, "props"), None, "{base}");
        }
    }

    #[test]
    fn vendor_is_recognized_only_by_its_exact_host() {
        assert!(is_vendor_url(VENDOR) && is_vendor_url("https://api.openai.com"));
        let of = |base: &str| dialect_of_server(base, OpenAiDialect::Auto);
        assert_eq!(of(VENDOR), OpenAiDialect::OpenAi);
        assert_eq!(of("https://openrouter.ai/api/v1"), OpenAiDialect::OpenRouter);
        assert_eq!(dialect_of_server(VENDOR, OpenAiDialect::Groq), OpenAiDialect::Groq);
        for other in [
            "http://api.openai.com/v1",
            "https://api.openai.com.evil/v1",
            "https://h/api.openai.com",
        ] {
            assert!(!is_vendor_url(other), "{other}");
            assert_eq!(of(other), OpenAiDialect::Common);
        }
    }

    #[test]
    fn responses_api_is_used_only_with_servers_that_have_it() {
        let request = |options: Value| {
            let mut request = CompletionRequest::new("m", Vec::new());
            request.options = serde_json::from_value(options).unwrap();
            request
        };
        let of = |base: &str, api, options: Value| {
            let config = Config { base_url: base.to_owned(), api, ..Config::default() };
            choose_protocol(&config, &request(options))
        };
        let azure = "https://moon.openai.azure.com/openai";
        for (base, api, expected) in [
            (VENDOR, OpenAiApi::Auto, OpenAiProtocol::Responses),
            (VENDOR, OpenAiApi::Chat, OpenAiProtocol::Chat),
            (&format!("{azure}/v1"), OpenAiApi::Auto, OpenAiProtocol::Responses),
            (
                &format!("{azure}/deployments/d?api-version=1"),
                OpenAiApi::Auto,
                OpenAiProtocol::Chat,
            ),
            ("http://localhost:1/v1", OpenAiApi::Auto, OpenAiProtocol::Chat),
            ("http://localhost:1/v1", OpenAiApi::Responses, OpenAiProtocol::Responses),
        ] {
            assert_eq!(of(base, api, json!({})), expected, "{base} {api:?}");
        }
        for options in [json!({ "seed": 7 }), json!({ "stop": ["a"] })] {
            assert_eq!(of(VENDOR, OpenAiApi::Auto, options.clone()), OpenAiProtocol::Chat);
            assert_eq!(of(VENDOR, OpenAiApi::Responses, options), OpenAiProtocol::Responses);
        }
        assert_eq!(of(VENDOR, OpenAiApi::Auto, json!({ "stop": [""] })), OpenAiProtocol::Responses);
    }
}
