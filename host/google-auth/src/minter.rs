//! Mints tokens, and keeps the current one.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jaato_http::Client;
use jaato_types::{Error, ErrorKind};
use tokio::sync::Mutex;

use crate::file::{Credentials, ServiceAccount};
use crate::places::{Named, Places};
use crate::token::{Minted, Token};
use crate::{exchange, file, jwt, metadata};

/// The most bytes of a credentials file. Real ones have 3,000.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Mints tokens from the credentials at these places.
pub struct Minter {
    places: Places,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    minted: Option<Minted>,
    /// Whether the machine is known to have no token server.
    is_machine_asked: bool,
    /// Whether the machine has ever given a token.
    has_machine: bool,
}

impl fmt::Debug for Minter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Minter").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Minter {
    /// Creates a minter, without reading or requesting anything.
    pub fn new(places: Places) -> Self {
        Self { places, kept: Mutex::default() }
    }

    /// Returns the file that is used. Returns `None` if there is none, although the machine may
    /// have an account.
    pub fn found(&self) -> Option<String> {
        self.places.file().map(|named| named.place)
    }

    /// Describes the places that are searched besides the file that the user names.
    pub fn looked_at(&self) -> String {
        self.places.looked_at()
    }

    /// Returns a token that is valid for at least some minutes. `refused` is a token that a server
    /// refused, so that a new one is minted.
    ///
    /// # Errors
    /// `not_found` if no credentials exist. `configuration` if they cannot be used. `provider`
    /// if a server does not answer.
    pub async fn token(&self, client: &Client, refused: Option<&str>) -> Result<Token, Error> {
        let mut kept = self.kept.lock().await;
        if let Some(minted) = &kept.minted
            && minted.fresh_until > Instant::now()
            && refused != Some(&minted.token.text)
        {
            return Ok(minted.token.clone());
        }
        kept.minted = None;
        let mut minted = match self.places.file() {
            Some(named) => of_file(&named, &self.places.scope, client).await?,
            None => self.of_machine(&mut kept, client).await?,
        };
        if let Some(project) = &self.places.quota_project {
            minted.token.quota_project = Some(project.clone());
        }
        let token = minted.token.clone();
        kept.minted = Some(minted);
        Ok(token)
    }

    async fn of_machine(&self, kept: &mut Kept, client: &Client) -> Result<Minted, Error> {
        if let Some(host) = self.places.metadata.as_ref().filter(|_| !kept.is_machine_asked) {
            if let Some(minted) = metadata::ask(host, client.network()).await? {
                kept.has_machine = true;
                return Ok(minted);
            }
            if kept.has_machine {
                let text = "the machine's metadata server gave no token in time";
                return Err(Error::new(ErrorKind::Provider, text).temporary());
            }
            kept.is_machine_asked = true;
        }
        let text = "there are no credentials for Google Cloud: \
                    `GOOGLE_APPLICATION_CREDENTIALS` is not set";
        let looked_at = self.looked_at();
        let also = if looked_at.is_empty() { looked_at } else { format!(", no {looked_at}") };
        Err(Error::new(ErrorKind::NotFound, format!("{text}{also}")).with_hint(
            "run `gcloud auth application-default login`, or set `GOOGLE_APPLICATION_CREDENTIALS` \
             to the key file of a service account: docs/gcp-setup.md",
        ))
    }
}

/// Mints a token from a file.
async fn of_file(named: &Named, scope: &str, client: &Client) -> Result<Minted, Error> {
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
    match file::read(&text, named)? {
        Credentials::ServiceAccount(account) => of_service_account(account, scope).await,
        Credentials::AuthorizedUser(user) => exchange::of_user(client, &user).await,
        Credentials::ImpersonatedServiceAccount(account) => {
            let own = match *account.source_credentials {
                Credentials::ServiceAccount(ref own) => {
                    of_service_account(own.clone(), scope).await?
                }
                Credentials::AuthorizedUser(ref user) => exchange::of_user(client, user).await?,
                _ => return Err(not_yet()),
            };
            exchange::in_the_name_of(client, &account, (&own.token.text, scope)).await
        }
        Credentials::ExternalAccount
        | Credentials::ExternalAccountAuthorizedUser
        | Credentials::Other => Err(not_yet()),
    }
}

/// Signs a token. Runs on its own thread, because that takes milliseconds.
async fn of_service_account(account: ServiceAccount, scope: &str) -> Result<Minted, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let scope = scope.to_owned();
    let sign = move || jwt::sign(&account, &scope, now.as_secs());
    let signed = tokio::task::spawn_blocking(sign).await;
    let signed = signed.map_err(|_| Error::new(ErrorKind::HostBug, "no token was signed"))?;
    Ok(Minted::new(signed?, Duration::from_secs(jwt::LIFETIME_S), None))
}
