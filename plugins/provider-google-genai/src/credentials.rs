//! Which secrets a person may have, and which server takes which. Pure.
//!
//! The host adds them: the plugin knows their names alone.

use jaato_plugin_sdk::types::{CredentialSpec, TokenRecipe};

use crate::endpoint::{Backend, STUDIO, VERTEX};

/// The variables that may hold a key, in the order in which they count. The first two are those of
/// Google's own libraries.
const KEYS: [&str; 3] = ["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_API_KEY"];

/// The variable that names a file of credentials, from which the host mints tokens. Where it is not
/// set, the host looks at what `gcloud` keeps, and asks the machine.
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// The variables that lead to a token: one of a person's own counts before those that are minted.
const TOKENS: [&str; 2] = ["GOOGLE_OAUTH_ACCESS_TOKEN", FILE];

/// Where Vertex AI is beside its global server: in regions, and in groups of them.
const VERTEX_OTHERS: [&str; 3] = [
    "https://*-aiplatform.googleapis.com",
    "https://aiplatform.eu.rep.googleapis.com",
    "https://aiplatform.us.rep.googleapis.com",
];

/// The variable that names another server.
const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// Lists the variables that may hold a credential for a server.
pub(crate) fn variables(backend: &Backend) -> &'static [&'static str] {
    match backend {
        Backend::Studio | Backend::Express => &KEYS,
        Backend::Vertex { .. } => &TOKENS,
    }
}

/// Returns that of them of which a person is told who has none.
pub(crate) fn told(backend: &Backend) -> &'static str {
    match backend {
        Backend::Studio | Backend::Express => KEYS[0],
        Backend::Vertex { .. } => FILE,
    }
}

/// Says how the host makes a token out of the file.
fn recipe() -> TokenRecipe {
    TokenRecipe {
        scope: "https://www.googleapis.com/auth/cloud-platform".to_owned(),
        project_header: "x-goog-user-project".to_owned(),
        ..TokenRecipe::default()
    }
}

/// Declares them.
pub(crate) fn specs() -> Vec<CredentialSpec> {
    let spec = |variable: &str, scheme: &str, origin: &str| CredentialSpec {
        variable: variable.to_owned(),
        scheme: scheme.to_owned(),
        origin: origin.to_owned(),
        base_url_variable: BASE_URL.to_owned(),
        ..CredentialSpec::default()
    };
    let keys = KEYS.map(|variable| spec(variable, "header:x-goog-api-key", STUDIO));
    let tokens = TOKENS.map(|variable| CredentialSpec {
        origins: VERTEX_OTHERS.map(str::to_owned).to_vec(),
        mint: (variable == FILE).then(recipe),
        ..spec(variable, "bearer", VERTEX)
    });
    keys.into_iter().chain(tokens).collect()
}
