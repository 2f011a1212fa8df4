//! Which credentials a user may have, and which server accepts which. Pure.
//!
//! The host adds the credentials. The plugin knows only their names.

use jaato_plugin_sdk::types::{CredentialSpec, TokenRecipe};

use crate::endpoint::{GoogleBackend, STUDIO, VERTEX};

/// The variables that may hold an API key, highest precedence first. Google's own libraries use the
/// first two.
const KEYS: [&str; 3] = ["GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_API_KEY"];

/// The variable that names a credentials file, from which the host creates tokens. If it is not
/// set, the host looks for `gcloud`'s credentials and asks the machine's metadata server.
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";

/// The variables that lead to a token. The user's own token takes precedence over created ones.
const TOKENS: [&str; 2] = ["GOOGLE_OAUTH_ACCESS_TOKEN", FILE];

/// Vertex AI's regional and multi-region servers, in addition to the global one.
const VERTEX_OTHERS: [&str; 3] = [
    "https://*-aiplatform.googleapis.com",
    "https://aiplatform.eu.rep.googleapis.com",
    "https://aiplatform.us.rep.googleapis.com",
];

/// The variable that names another server.
const BASE_URL: &str = "GOOGLE_GEMINI_BASE_URL";

/// Lists the variables that may hold a credential for a server.
pub(crate) fn credential_variables(backend: &GoogleBackend) -> &'static [&'static str] {
    match backend {
        GoogleBackend::Studio | GoogleBackend::Express => &KEYS,
        GoogleBackend::Vertex { .. } => &TOKENS,
    }
}

/// Returns the variable to name to a user who has no credential.
pub(crate) fn suggested_variable(backend: &GoogleBackend) -> &'static str {
    match backend {
        GoogleBackend::Studio | GoogleBackend::Express => KEYS[0],
        GoogleBackend::Vertex { .. } => FILE,
    }
}

/// Describes how the host creates a token from the file.
fn token_recipe() -> TokenRecipe {
    TokenRecipe {
        scope: "https://www.googleapis.com/auth/cloud-platform".to_owned(),
        project_header: "x-goog-user-project".to_owned(),
        ..TokenRecipe::default()
    }
}

/// Declares the credentials.
pub(crate) fn credential_specs() -> Vec<CredentialSpec> {
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
        mint: (variable == FILE).then(token_recipe),
        ..spec(variable, "bearer", VERTEX)
    });
    keys.into_iter().chain(tokens).collect()
}
