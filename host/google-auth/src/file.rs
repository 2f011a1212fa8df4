//! Parses a credentials file. Pure.

use jaato_types::{Error, ErrorKind};
use serde::Deserialize;

use crate::credential_sources::CredentialsFile;

/// The token server if a file does not name one.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

/// The content of a credentials file, by its `type`. Not `Debug`, because most of it is secret.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum GoogleCredentials {
    /// The key of a service account.
    ServiceAccount(ServiceAccount),
    /// The result of a user's login.
    AuthorizedUser(AuthorizedUser),
    /// A service account that another account impersonates.
    ImpersonatedServiceAccount(ImpersonatedAccount),
    /// An account with another identity provider, such as another cloud.
    ExternalAccount,
    /// The same, after a user's login.
    ExternalAccountAuthorizedUser,
    /// Any other type.
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
    #[serde(default = "default_token_url")]
    pub(crate) token_uri: String,
    #[serde(default)]
    pub(crate) quota_project_id: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ImpersonatedAccount {
    pub(crate) service_account_impersonation_url: String,
    pub(crate) source_credentials: Box<GoogleCredentials>,
    #[serde(default)]
    pub(crate) delegates: Vec<String>,
    #[serde(default)]
    pub(crate) quota_project_id: Option<String>,
}

fn default_token_url() -> String {
    TOKEN_URL.to_owned()
}

/// Parses the content of a file.
///
/// # Errors
/// `configuration` if it is not a credentials file. No error contains its content.
pub(crate) fn parse_credentials(
    text: &[u8],
    named: &CredentialsFile,
) -> Result<GoogleCredentials, Error> {
    serde_json::from_slice(text).map_err(|error| {
        // Serde's own message may repeat a value.
        let what = match error.classify() {
            serde_json::error::Category::Data => "lacks a field of a credentials file",
            _ => "is not valid JSON",
        };
        let (path, place) = (named.path.display(), &named.place);
        let text = format!("`{path}` ({place}) {what} (line {})", error.line());
        Error::new(ErrorKind::Configuration, text)
            .with_hint("download a new key, or run `gcloud auth application-default login`")
    })
}
