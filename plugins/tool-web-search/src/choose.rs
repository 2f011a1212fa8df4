//! Chooses the backend of a search by the settings and keys that the user has given.

use std::collections::BTreeMap;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{schemars, serde_json};

use crate::WebSearchState;
use crate::backend::{Backend, built_in_backends};

/// `[plugins.tool-web-search]`.
#[tool_type]
#[derive(Default)]
#[serde(default)]
pub struct WebSearchSettings {
    /// The backend: `searxng`, `brave`, `tavily`, `duckduckgo`, or one of `backends`. Without one,
    /// the first of them that is set up.
    pub backend: Option<String>,
    /// URL of a SearXNG server, whose administrator must allow JSON.
    #[schemars(extend("x-jaato-variables" = ["SEARXNG_URL"]))]
    pub searxng_url: Option<String>,
    /// Server to ask instead of a backend's own, if the backend has a key. The keys go only there.
    pub base_url: Option<String>,
    /// More backends, or other definitions of those that are built in.
    pub backends: BTreeMap<String, Backend>,
}

/// The variables of the keys, with their schemes and origins. The first is the one that `api_key`
/// sets. It is for a backend of the settings, so it has no server of its own.
pub const KEYS: [(&str, &str, &str); 3] = [
    ("WEB_SEARCH_API_KEY", "bearer", "https://web-search.invalid"),
    ("BRAVE_API_KEY", "header:x-subscription-token", "https://api.search.brave.com"),
    ("TAVILY_API_KEY", "bearer", "https://api.tavily.com"),
];

/// The variable of `base_url`.
pub const BASE_URL: &str = "WEB_SEARCH_BASE_URL";

/// The backend that needs no key and no server of the user.
pub const LAST_RESORT: &str = "duckduckgo";

/// The backends that are chosen by themselves, best first.
const BY_THEMSELVES: [&str; 3] = ["searxng", "brave", "tavily"];

/// A chosen backend.
pub struct ChosenBackend {
    /// Its name in the settings.
    pub name: String,
    /// How it is asked.
    pub backend: Backend,
    /// The server that replaces the backend's own.
    pub base: Option<String>,
}

impl WebSearchSettings {
    /// Returns the schema of the settings.
    pub fn settings_schema() -> Option<Value> {
        serde_json::to_value(schemars::schema_for!(Self)).ok()
    }

    /// Returns the URL of the user's SearXNG server.
    pub fn searxng_url(&self) -> &str {
        self.searxng_url.as_deref().unwrap_or_default()
    }
}

/// Chooses the backend.
///
/// # Errors
/// `configuration` if the settings name an unknown backend, or one that is not set up.
pub async fn choose_backend(
    cx: &Cx<WebSearchState>,
    settings: &WebSearchSettings,
) -> Result<ChosenBackend> {
    let mut known = built_in_backends()?;
    known.extend(settings.backends.clone());
    if let Some(name) = &settings.backend {
        let Some(backend) = known.remove(name) else {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let text = format!(
                "the search backend `{name}` does not exist; known are {}",
                names.join(", ")
            );
            return Err(Error::new(ErrorKind::Configuration, text));
        };
        if let Some(lacking) = missing_setting(cx, settings, &backend).await? {
            let text = format!("the search backend `{name}` needs {lacking}");
            return Err(Error::new(ErrorKind::Configuration, text));
        }
        return Ok(chosen_backend(settings, name, backend));
    }
    let own = settings.backends.keys().map(String::as_str);
    let own = own.filter(|name| *name != LAST_RESORT && !BY_THEMSELVES.contains(name));
    for name in own.chain(BY_THEMSELVES) {
        let Some(backend) = known.get(name) else { continue };
        if missing_setting(cx, settings, backend).await?.is_none() {
            return Ok(chosen_backend(settings, name, backend.clone()));
        }
    }
    let last = known.remove(LAST_RESORT).unwrap_or_default();
    Ok(chosen_backend(settings, LAST_RESORT, last))
}

fn chosen_backend(settings: &WebSearchSettings, name: &str, backend: Backend) -> ChosenBackend {
    let base = settings.base_url.clone().filter(|_| !backend.key.is_empty());
    let title = if backend.title.is_empty() { name.to_owned() } else { backend.title.clone() };
    ChosenBackend { name: name.to_owned(), backend: Backend { title, ..backend }, base }
}

/// Returns what a backend needs and the user has not set.
async fn missing_setting(
    cx: &Cx<WebSearchState>,
    settings: &WebSearchSettings,
    backend: &Backend,
) -> Result<Option<String>> {
    if backend.url.contains("{searxng_url}") && settings.searxng_url().is_empty() {
        return Ok(Some("`searxng_url` or the variable `SEARXNG_URL`".to_owned()));
    }
    if !backend.key.is_empty() && !cx.has_credential(&backend.key).await? {
        return Ok(Some(format!("a key in `{}`", backend.key)));
    }
    Ok(None)
}
