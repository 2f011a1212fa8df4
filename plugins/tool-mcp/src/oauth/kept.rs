//! What is known of the logins to one server over processes: tokens, and the client they are of.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::serde::{Deserialize, Serialize};
use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::{Error, Home, Result};
use parking_lot::Mutex;
use rmcp::transport::{AuthError, CredentialStore, StoredCredentials};
use sha2::{Digest as _, Sha256};

/// Seconds before its end from which a token counts as ended: the way to the server takes time.
const EARLY_SECONDS: u64 = 30;
/// Secrets that are remembered, so that no error shows one: a few generations of tokens.
const SECRETS_MAX: usize = 32;

/// Keeps one secret text.
pub trait TokenStore: Send + Sync + 'static {
    /// Reads it.
    ///
    /// # Errors
    /// A store that cannot be read.
    fn load(&self) -> BoxFuture<'static, Result<Option<String>>>;

    /// Writes it in place of what was there.
    ///
    /// # Errors
    /// A store that cannot be written.
    fn save(&self, text: String) -> BoxFuture<'static, Result<()>>;

    /// Forgets it; false where there was none.
    ///
    /// # Errors
    /// A store that cannot be written.
    fn forget(&self) -> BoxFuture<'static, Result<bool>>;
}

/// Keeps it as long as the process lives.
#[derive(Clone, Default)]
pub struct MemoryTokens(Arc<Mutex<Option<String>>>);

impl TokenStore for MemoryTokens {
    fn load(&self) -> BoxFuture<'static, Result<Option<String>>> {
        let text = self.0.lock().clone();
        async move { Ok(text) }.boxed()
    }

    fn save(&self, text: String) -> BoxFuture<'static, Result<()>> {
        *self.0.lock() = Some(text);
        async { Ok(()) }.boxed()
    }

    fn forget(&self) -> BoxFuture<'static, Result<bool>> {
        let was_there = self.0.lock().take().is_some();
        async move { Ok(was_there) }.boxed()
    }
}

/// Keeps it where the system keeps secrets.
pub struct HostTokens {
    home: Home,
    name: String,
}

impl HostTokens {
    /// Makes the store of one server. An entry whose address has changed has other tokens: those of
    /// the old address must not go to the new one.
    pub fn new(home: Home, server: &str, url: &str) -> Self {
        let digest = Sha256::digest(format!("{server}\n{url}"));
        let short: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { home, name: format!("oauth-{short}") }
    }
}

impl TokenStore for HostTokens {
    fn load(&self) -> BoxFuture<'static, Result<Option<String>>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.get(&name).await }.boxed()
    }

    fn save(&self, text: String) -> BoxFuture<'static, Result<()>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.set(&name, text).await }.boxed()
    }

    fn forget(&self) -> BoxFuture<'static, Result<bool>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.delete(&name).await }.boxed()
    }
}

/// What is kept.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct Kept {
    /// The client that was registered.
    pub client: Option<KeptClient>,
    /// The tokens, and who gave them.
    pub tokens: Option<StoredCredentials>,
    /// Rights that the server asked for when nobody could be asked.
    pub wanted: Vec<String>,
    /// How the server refused the request before the login: it may alone say where its metadata is.
    pub refusal: Option<String>,
}

/// A client that an authorization server knows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct KeptClient {
    /// Which one knows it.
    pub issuer: String,
    /// Its name there.
    pub id: String,
    /// Its secret, where it was given one.
    pub secret: Option<String>,
    /// Where browsers come back to.
    pub redirect_uri: String,
}

impl Kept {
    fn of_tokens(&self, key: &str) -> Option<Value> {
        let response = self.tokens.as_ref()?.token_response.as_ref()?;
        let response = serde_json::to_value(response).ok()?;
        response.get(key).cloned()
    }

    /// Returns the token that requests take along.
    pub fn access_token(&self) -> Option<String> {
        self.of_tokens("access_token")?.as_str().map(str::to_owned)
    }

    /// Returns true if there is one by which another can be had.
    pub fn can_refresh(&self) -> bool {
        self.of_tokens("refresh_token").is_some_and(|it| it.is_string())
    }

    /// Returns true if the token ends at this second, or soon after.
    pub fn is_ending(&self, now: u64) -> bool {
        let since = self.tokens.as_ref().and_then(|tokens| tokens.token_received_at);
        let lasts = self.of_tokens("expires_in").and_then(|it| it.as_u64());
        let (Some(since), Some(lasts)) = (since, lasts) else { return false };
        now + EARLY_SECONDS.min(lasts / 2) >= since.saturating_add(lasts)
    }

    /// Lists the rights that were given.
    pub fn granted(&self) -> Vec<String> {
        self.tokens.as_ref().map(|tokens| tokens.granted_scopes.clone()).unwrap_or_default()
    }

    /// Lists what no text may show.
    pub fn secrets(&self) -> Vec<String> {
        let tokens = ["access_token", "refresh_token", "id_token"].map(|key| self.of_tokens(key));
        let tokens = tokens.into_iter().flatten();
        let tokens = tokens.filter_map(|token| token.as_str().map(str::to_owned));
        tokens.chain(self.client.iter().filter_map(|client| client.secret.clone())).collect()
    }
}

/// Returns the seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// What is kept of one server, read once and written through.
pub struct Shelf {
    store: Arc<dyn TokenStore>,
    /// Nothing before it was read.
    kept: tokio::sync::Mutex<Option<Kept>>,
    /// The newest secrets that were seen.
    secrets: Mutex<VecDeque<String>>,
}

impl Shelf {
    /// Makes one.
    pub fn new(store: Arc<dyn TokenStore>) -> Arc<Self> {
        Arc::new(Self { store, kept: <_>::default(), secrets: Mutex::default() })
    }

    /// Returns what is kept. A store that cannot be read has nothing: the login says why.
    pub async fn get(&self) -> Kept {
        let mut kept = self.kept.lock().await;
        match &*kept {
            Some(kept) => kept.clone(),
            None => kept.insert(self.read().await).clone(),
        }
    }

    /// Lists what no text may show.
    pub fn secrets(&self) -> Vec<String> {
        self.secrets.lock().iter().cloned().collect()
    }

    fn note(&self, kept: &Kept) {
        let mut secrets = self.secrets.lock();
        for secret in kept.secrets() {
            if !secret.is_empty() && !secrets.contains(&secret) {
                secrets.push_back(secret);
            }
        }
        let too_many = secrets.len().saturating_sub(SECRETS_MAX);
        secrets.drain(..too_many);
    }

    async fn read(&self) -> Kept {
        let text = self.store.load().await.ok().flatten();
        // What another version wrote and this one cannot read is a login that is to be made again.
        let kept = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.note(&kept);
        kept
    }

    /// Reads it again: another process may have written since.
    pub async fn get_again(&self) -> Kept {
        let mut kept = self.kept.lock().await;
        kept.insert(self.read().await).clone()
    }

    /// Changes what is kept.
    ///
    /// # Errors
    /// A store that cannot be written; this process knows the change nevertheless.
    pub async fn change(&self, change: impl FnOnce(&mut Kept) + Send) -> Result<()> {
        let mut kept = self.kept.lock().await;
        let kept = match &mut *kept {
            Some(kept) => kept,
            none => none.insert(self.read().await),
        };
        change(kept);
        self.note(kept);
        let text = serde_json::to_string(kept).map_err(|error| Error::failed(error.to_string()))?;
        self.store.save(text).await
    }

    /// Forgets all; false where there was nothing.
    ///
    /// # Errors
    /// A store that cannot be written.
    pub async fn forget(&self) -> Result<bool> {
        let mut kept = self.kept.lock().await;
        *kept = Some(Kept::default());
        self.store.forget().await
    }
}

/// The shelf as `rmcp` uses it.
pub struct Credentials(pub Arc<Shelf>);

fn broken(error: Error) -> AuthError {
    AuthError::CredentialStoreError(error.message)
}

#[async_trait::async_trait]
impl CredentialStore for Credentials {
    async fn load(&self) -> std::result::Result<Option<StoredCredentials>, AuthError> {
        Ok(self.0.get().await.tokens)
    }

    async fn save(&self, credentials: StoredCredentials) -> std::result::Result<(), AuthError> {
        self.0.change(|kept| kept.tokens = Some(credentials)).await.map_err(broken)
    }

    async fn clear(&self) -> std::result::Result<(), AuthError> {
        self.0.change(|kept| kept.tokens = None).await.map_err(broken)
    }
}
