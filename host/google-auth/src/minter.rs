//! Mints tokens, and keeps the current one.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jaato_http::Client;
use jaato_types::{Error, ErrorKind};
use tokio::sync::Mutex;

use crate::credential_sources::{CredentialsFile, GoogleCredentialSources};
use crate::file::{GoogleCredentials, ServiceAccount};
use crate::token::{AccessToken, MintedToken};
use crate::{exchange, file, jwt, metadata};

/// The maximum number of bytes of a credentials file. Real ones have 3,000.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Mints tokens from the credentials at these places.
pub struct TokenMinter {
    places: GoogleCredentialSources,
    kept: Mutex<TokenCache>,
}

#[derive(Default)]
struct TokenCache {
    minted: Option<MintedToken>,
    /// Whether the machine is known to have no token server.
    is_machine_asked: bool,
    /// Whether the machine's metadata server has ever returned a token.
    has_machine: bool,
}

impl fmt::Debug for TokenMinter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenMinter").field("places", &self.places).finish_non_exhaustive()
    }
}

impl TokenMinter {
    /// Creates a minter, without reading or requesting anything.
    pub fn new(places: GoogleCredentialSources) -> Self {
        Self { places, kept: Mutex::default() }
    }

    /// Returns the file that is used. Returns `None` if there is none, although the machine may
    /// have an account.
    pub fn used_file(&self) -> Option<String> {
        self.places.file().map(|named| named.place)
    }

    /// Describes the places that are searched besides the file that the user names.
    pub fn searched_places(&self) -> String {
        self.places.searched_places()
    }

    /// Returns a token that is valid for at least some minutes. `refused` is a token that a server
    /// refused, so that a new one is minted.
    ///
    /// # Errors
    /// `not_found` if no credentials exist. `configuration` if they cannot be used. `provider`
    /// if a server does not answer.
    pub async fn token(
        &self,
        client: &Client,
        refused: Option<&str>,
    ) -> Result<AccessToken, Error> {
        let mut kept = self.kept.lock().await;
        if let Some(minted) = &kept.minted
            && minted.fresh_until > Instant::now()
            && refused != Some(&minted.token.text)
        {
            return Ok(minted.token.clone());
        }
        kept.minted = None;
        let mut minted = match self.places.file() {
            Some(named) => mint_from_file(&named, &self.places.scope, client).await?,
            None => self.mint_from_machine(&mut kept, client).await?,
        };
        if let Some(project) = &self.places.quota_project {
            minted.token.quota_project = Some(project.clone());
        }
        let token = minted.token.clone();
        kept.minted = Some(minted);
        Ok(token)
    }

    async fn mint_from_machine(
        &self,
        kept: &mut TokenCache,
        client: &Client,
    ) -> Result<MintedToken, Error> {
        if let Some(host) = self.places.metadata.as_ref().filter(|_| !kept.is_machine_asked) {
            if let Some(minted) = metadata::request_machine_token(host, client.network()).await? {
                kept.has_machine = true;
                return Ok(minted);
            }
            if kept.has_machine {
                let text = "the machine's metadata server did not return a token in time";
                return Err(Error::new(ErrorKind::Provider, text).temporary());
            }
            kept.is_machine_asked = true;
        }
        let text = "there are no credentials for Google Cloud: \
                    `GOOGLE_APPLICATION_CREDENTIALS` is not set";
        let looked_at = self.searched_places();
        let also = if looked_at.is_empty() { looked_at } else { format!(", no {looked_at}") };
        Err(Error::new(ErrorKind::NotFound, format!("{text}{also}")).with_hint(
            "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` \
             to the key file of a service account: docs/gcp-setup.md",
        ))
    }
}

/// Mints a token from a file.
async fn mint_from_file(
    named: &CredentialsFile,
    scope: &str,
    client: &Client,
) -> Result<MintedToken, Error> {
    let wrong = |what: &dyn fmt::Display| {
        let text = format!("`{}` ({}) {what}", named.path.display(), named.place);
        Error::new(ErrorKind::Configuration, text)
    };
    let about = tokio::fs::metadata(&named.path).await;
    let about = about.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    if !about.is_file() || about.len() > FILE_BYTES_MAX {
        return Err(wrong(&"is not a credentials file"));
    }
    let text = tokio::fs::read(&named.path).await;
    let text = text.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let not_yet = || {
        wrong(&"contains credentials of a type that jaato does not support")
            .with_hint("use a service account, or run `gcloud auth application-default login`")
    };
    match file::parse_credentials(&text, named)? {
        GoogleCredentials::ServiceAccount(account) => {
            mint_from_service_account(account, scope).await
        }
        GoogleCredentials::AuthorizedUser(user) => {
            exchange::request_user_token(client, &user).await
        }
        GoogleCredentials::ImpersonatedServiceAccount(account) => {
            let own = match *account.source_credentials {
                GoogleCredentials::ServiceAccount(ref own) => {
                    mint_from_service_account(own.clone(), scope).await?
                }
                GoogleCredentials::AuthorizedUser(ref user) => {
                    exchange::request_user_token(client, user).await?
                }
                _ => return Err(not_yet()),
            };
            exchange::request_impersonated_token(client, &account, (&own.token.text, scope)).await
        }
        GoogleCredentials::ExternalAccount
        | GoogleCredentials::ExternalAccountAuthorizedUser
        | GoogleCredentials::Other => Err(not_yet()),
    }
}

/// Signs a token. Runs on its own thread, because that takes milliseconds.
async fn mint_from_service_account(
    account: ServiceAccount,
    scope: &str,
) -> Result<MintedToken, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let scope = scope.to_owned();
    let sign = move || jwt::sign_assertion(&account, &scope, now.as_secs());
    let signed = tokio::task::spawn_blocking(sign).await;
    let signed = signed.map_err(|_| Error::new(ErrorKind::HostBug, "no token was signed"))?;
    Ok(MintedToken::new(signed?, Duration::from_secs(jwt::LIFETIME_S), None))
}
