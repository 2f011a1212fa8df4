//! Which secrets a person may have, and which server takes which. Pure.
//!
//! The host adds them: the plugin knows their names alone.

use jaato_plugin_sdk::types::CredentialSpec;

use crate::endpoint::{Backend, STUDIO, VERTEX};

/// The variables that may hold a key, in the order in which they count. The first two are those of
/// Google's own libraries.
const KEYS: [&str; 3] = ["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_API_KEY"];

/// The variables that may hold a token.
const TOKENS: [&str; 1] = ["GOOGLE_OAUTH_ACCESS_TOKEN"];

/// The variable that names another server.
const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// Lists the variables that may hold a credential for a server.
pub(crate) fn variables(backend: &Backend) -> &'static [&'static str] {
    match backend {
        Backend::Studio | Backend::Express => &KEYS,
        Backend::Vertex { .. } => &TOKENS,
    }
}

/// Declares them.
pub(crate) fn specs() -> Vec<CredentialSpec> {
    let spec = |variable: &str, scheme: &str, origin: &str| CredentialSpec {
        variable: variable.to_owned(),
        scheme: scheme.to_owned(),
        origin: origin.to_owned(),
        base_url_variable: BASE_URL.to_owned(),
    };
    let keys = KEYS.map(|variable| spec(variable, "header:x-goog-api-key", STUDIO));
    let tokens = TOKENS.map(|variable| spec(variable, "bearer", VERTEX));
    keys.into_iter().chain(tokens).collect()
}
