//! Reads a file of credentials. Pure.

use jaato_types::{Error, ErrorKind};
use serde::Deserialize;

use crate::places::Named;

/// Where tokens are asked for where a file does not say.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// What a file of credentials holds, by its `type`. No `Debug`: most of it is secret.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Credentials {
    /// The key of an account that is no person's.
    ServiceAccount(ServiceAccount),
    /// What a person's login leaves.
    AuthorizedUser(AuthorizedUser),
    /// An account in whose name one of the others acts.
    ImpersonatedServiceAccount(Impersonated),
    /// An account elsewhere, such as with another cloud.
    ExternalAccount,
    /// The same, after a person's login.
    ExternalAccountAuthorizedUser,
    /// What else there is.
    #[serde(other)]
    Other,
}

#[derive(Clone, Deserialize)]
pub(crate) struct ServiceAccount {
    pub(crate) client_email: String,
    pub(crate) private_key: String,
    #[serde(default)]
    pub(crate) private_key_id: String,
}

#[derive(Deserialize)]
pub(crate) struct AuthorizedUser {
    pub(crate) client_id: String,
    pub(crate) client_secret: String,
    pub(crate) refresh_token: String,
    #[serde(default = "token_url")]
    pub(crate) token_uri: String,
    #[serde(default)]
    pub(crate) quota_project_id: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Impersonated {
    pub(crate) service_account_impersonation_url: String,
    pub(crate) source_credentials: Box<Credentials>,
    #[serde(default)]
    pub(crate) delegates: Vec<String>,
    #[serde(default)]
    pub(crate) quota_project_id: Option<String>,
}

fn token_url() -> String {
    TOKEN_URL.to_owned()
}

/// Reads what a file holds.
///
/// # Errors
/// `configuration` for what is no such file. No error tells what it holds.
pub(crate) fn read(text: &[u8], named: &Named) -> Result<Credentials, Error> {
    serde_json::from_slice(text).map_err(|error| {
        // Serde's own words may repeat a value.
        let what = match error.classify() {
            serde_json::error::Category::Data => "lacks what a file of credentials has",
            _ => "is no JSON",
        };
        let (path, place) = (named.path.display(), &named.place);
        let text = format!("`{path}` ({place}) {what} (line {})", error.line());
        Error::new(ErrorKind::Configuration, text)
            .with_hint("download a new key, or run `gcloud auth application-default login`")
    })
}
