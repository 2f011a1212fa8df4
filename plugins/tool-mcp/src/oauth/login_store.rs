//! Stores the login to one server across processes: its tokens and the client that owns them.

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

/// Seconds before its expiry at which a token counts as expired, because the request takes time.
const EARLY_SECONDS: u64 = 30;
/// The maximum number of remembered secrets that errors hide: a few generations of tokens.
const SECRETS_MAX: usize = 32;

/// Stores one secret text.
pub trait TokenStore: Send + Sync + 'static {
    /// Reads the text.
    ///
    /// # Errors
    /// An error if the store cannot be read.
    fn load_login(&self) -> BoxFuture<'static, Result<Option<String>>>;

    /// Replaces the text.
    ///
    /// # Errors
    /// An error if the store cannot be written.
    fn save_login(&self, text: String) -> BoxFuture<'static, Result<()>>;

    /// Deletes the text. Returns false if there was none.
    ///
    /// # Errors
    /// An error if the store cannot be written.
    fn delete_saved_login(&self) -> BoxFuture<'static, Result<bool>>;
}

/// Stores the text in memory, for the life of the process.
#[derive(Clone, Default)]
pub struct MemoryTokenStore(Arc<Mutex<Option<String>>>);

impl TokenStore for MemoryTokenStore {
    fn load_login(&self) -> BoxFuture<'static, Result<Option<String>>> {
        let text = self.0.lock().clone();
        async move { Ok(text) }.boxed()
    }

    fn save_login(&self, text: String) -> BoxFuture<'static, Result<()>> {
        *self.0.lock() = Some(text);
        async { Ok(()) }.boxed()
    }

    fn delete_saved_login(&self) -> BoxFuture<'static, Result<bool>> {
        let was_there = self.0.lock().take().is_some();
        async move { Ok(was_there) }.boxed()
    }
}

/// Stores the text where the system stores secrets.
pub struct HostTokenStore {
    home: Home,
    name: String,
}

impl HostTokenStore {
    /// Creates the store of one server. If an entry's URL changes, its store changes too, because
    /// the tokens of the old URL must not go to the new one.
    pub fn new(home: Home, server: &str, url: &str) -> Self {
        let digest = Sha256::digest(format!("{server}\n{url}"));
        let short: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { home, name: format!("oauth-{short}") }
    }
}

impl TokenStore for HostTokenStore {
    fn load_login(&self) -> BoxFuture<'static, Result<Option<String>>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.get(&name).await }.boxed()
    }

    fn save_login(&self, text: String) -> BoxFuture<'static, Result<()>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.set(&name, text).await }.boxed()
    }

    fn delete_saved_login(&self) -> BoxFuture<'static, Result<bool>> {
        let (secrets, name) = (self.home.secrets(), self.name.clone());
        async move { secrets.delete(&name).await }.boxed()
    }
}

/// The stored login.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct StoredLogin {
    /// The registered client.
    pub client: Option<StoredOAuthClient>,
    /// The tokens and their issuer.
    pub tokens: Option<StoredCredentials>,
    /// Scopes that the server requested when no user could be asked.
    pub wanted: Vec<String>,
    /// The server's refusal before the login. It may be the only source of the metadata's address.
    pub refusal: Option<String>,
}

/// A client that an authorization server knows.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct StoredOAuthClient {
    /// The issuer that knows the client.
    pub issuer: String,
    /// The client's ID at the issuer.
    pub id: String,
    /// The client's secret, if it has one.
    pub secret: Option<String>,
    /// The address to which browsers return.
    pub redirect_uri: String,
}

impl StoredLogin {
    fn token_field(&self, key: &str) -> Option<Value> {
        let response = self.tokens.as_ref()?.token_response.as_ref()?;
        let response = serde_json::to_value(response).ok()?;
        response.get(key).cloned()
    }

    /// Returns the token for requests.
    pub fn access_token(&self) -> Option<String> {
        self.token_field("access_token")?.as_str().map(str::to_owned)
    }

    /// Returns true if the token can be refreshed.
    pub fn can_refresh(&self) -> bool {
        self.token_field("refresh_token").is_some_and(|it| it.is_string())
    }

    /// Returns true if the token has expired at this second, or expires soon after.
    pub fn is_expiring(&self, now: u64) -> bool {
        let since = self.tokens.as_ref().and_then(|tokens| tokens.token_received_at);
        let lasts = self.token_field("expires_in").and_then(|it| it.as_u64());
        let (Some(since), Some(lasts)) = (since, lasts) else { return false };
        now + EARLY_SECONDS.min(lasts / 2) >= since.saturating_add(lasts)
    }

    /// Lists the granted scopes.
    pub fn granted_scopes(&self) -> Vec<String> {
        self.tokens.as_ref().map(|tokens| tokens.granted_scopes.clone()).unwrap_or_default()
    }

    /// Lists the texts that must not be shown.
    pub fn secrets(&self) -> Vec<String> {
        let tokens = ["access_token", "refresh_token", "id_token"].map(|key| self.token_field(key));
        let tokens = tokens.into_iter().flatten();
        let tokens = tokens.filter_map(|token| token.as_str().map(str::to_owned));
        tokens.chain(self.client.iter().filter_map(|client| client.secret.clone())).collect()
    }
}

/// Returns the seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The stored login of one server. It is read once and written through.
pub struct LoginStore {
    store: Arc<dyn TokenStore>,
    /// `None` before the first read.
    kept: tokio::sync::Mutex<Option<StoredLogin>>,
    /// The newest known secrets.
    secrets: Mutex<VecDeque<String>>,
}

impl LoginStore {
    /// Creates a shelf.
    pub fn new(store: Arc<dyn TokenStore>) -> Arc<Self> {
        Arc::new(Self { store, kept: <_>::default(), secrets: Mutex::default() })
    }

    /// Returns the stored login. If the store cannot be read, the login is empty, and logging in
    /// reports the error.
    pub async fn get_login(&self) -> StoredLogin {
        let mut kept = self.kept.lock().await;
        match &*kept {
            Some(kept) => kept.clone(),
            None => kept.insert(self.read_login().await).clone(),
        }
    }

    /// Lists the texts that must not be shown.
    pub fn secrets(&self) -> Vec<String> {
        self.secrets.lock().iter().cloned().collect()
    }

    fn remember_login(&self, kept: &StoredLogin) {
        let mut secrets = self.secrets.lock();
        for secret in kept.secrets() {
            if !secret.is_empty() && !secrets.contains(&secret) {
                secrets.push_back(secret);
            }
        }
        let too_many = secrets.len().saturating_sub(SECRETS_MAX);
        secrets.drain(..too_many);
    }

    async fn read_login(&self) -> StoredLogin {
        let text = self.store.load_login().await.ok().flatten();
        // Data from another version that this version cannot read requires a new login.
        let kept = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        self.remember_login(&kept);
        kept
    }

    /// Reads the store again, because another process may have written to it.
    pub async fn reload_login(&self) -> StoredLogin {
        let mut kept = self.kept.lock().await;
        kept.insert(self.read_login().await).clone()
    }

    /// Changes the stored login.
    ///
    /// # Errors
    /// An error if the store cannot be written. The change still applies in this process.
    pub async fn change_login(&self, change: impl FnOnce(&mut StoredLogin) + Send) -> Result<()> {
        let mut kept = self.kept.lock().await;
        let kept = match &mut *kept {
            Some(kept) => kept,
            none => none.insert(self.read_login().await),
        };
        change(kept);
        self.remember_login(kept);
        let text = serde_json::to_string(kept).map_err(|error| Error::failed(error.to_string()))?;
        self.store.save_login(text).await
    }

    /// Deletes the login. Returns false if there was none.
    ///
    /// # Errors
    /// An error if the store cannot be written.
    pub async fn delete_login(&self) -> Result<bool> {
        let mut kept = self.kept.lock().await;
        *kept = Some(StoredLogin::default());
        self.store.delete_saved_login().await
    }
}

/// The shelf as a credential store of `rmcp`.
pub struct OAuthCredentials(pub Arc<LoginStore>);

fn store_error(error: Error) -> AuthError {
    AuthError::CredentialStoreError(error.message)
}

#[async_trait::async_trait]
impl CredentialStore for OAuthCredentials {
    async fn load(&self) -> std::result::Result<Option<StoredCredentials>, AuthError> {
        Ok(self.0.get_login().await.tokens)
    }

    async fn save(&self, credentials: StoredCredentials) -> std::result::Result<(), AuthError> {
        self.0.change_login(|kept| kept.tokens = Some(credentials)).await.map_err(store_error)
    }

    async fn clear(&self) -> std::result::Result<(), AuthError> {
        self.0.change_login(|kept| kept.tokens = None).await.map_err(store_error)
    }
}
