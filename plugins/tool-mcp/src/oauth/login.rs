//! Logs in to one server: provides the token for its requests and replaces it when needed.
//!
//! Invariant: only one login runs at a time. Requests that wait for it use its result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::serde_json::json;
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use rmcp::model::ProtocolVersion;
use rmcp::transport::AuthorizationManager;

use super::consent::LoginConsent;
use super::login_store::{LoginStore, OAuthCredentials, StoredLogin, TokenStore, unix_seconds};
use super::requests::ANSWER_TIME;
use super::{credentials, discovery, flow};
use crate::config::{GrantKind, HttpServerAddress, OAuthSettings};
use crate::transport::http::{AuthChallenge, Authorize, HttpBackend, HttpFailure, McpHttpRequest};

/// Manages the login to one server.
pub struct OAuthLogin {
    name: String,
    /// The server's URL, for which tokens are issued.
    pub url: String,
    /// The login settings of its entry.
    pub settings: OAuthSettings,
    /// The backend that sends the login's requests.
    pub backend: Arc<dyn HttpBackend>,
    /// The headers of its entry. Only the server itself receives them.
    headers: BTreeMap<String, String>,
    /// The stored login.
    pub shelf: Arc<LoginStore>,
    /// Brings the user to a page while a request waits. `None` if users log in with a command.
    consent: Option<Arc<dyn LoginConsent>>,
    /// Scopes that this process has requested. A server that still wants them does not cause a
    /// second login.
    asked: Mutex<BTreeSet<String>>,
    /// The server's last refusal of a request.
    refusal: Mutex<AuthChallenge>,
    busy: tokio::sync::Mutex<()>,
}

impl OAuthLogin {
    /// Creates the login to a server.
    pub fn new(
        name: &str,
        reach: &HttpServerAddress,
        backend: Arc<dyn HttpBackend>,
        store: Arc<dyn TokenStore>,
        consent: Option<Arc<dyn LoginConsent>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            url: reach.url.clone(),
            settings: reach.oauth.clone(),
            backend,
            headers: reach.headers.clone(),
            shelf: LoginStore::new(store),
            consent,
            asked: Mutex::default(),
            refusal: Mutex::default(),
            busy: <_>::default(),
        })
    }

    /// Logs the user in regardless of the stored login. Asks the server for its requirements first.
    ///
    /// # Errors
    /// If the login failed or was refused.
    pub async fn log_in(&self, consent: &dyn LoginConsent) -> Result<()> {
        let _busy = self.busy.lock().await;
        let kept = self.shelf.reload_login().await;
        let challenge = &self.request_challenge().await;
        let authorized = match self.settings.grant {
            GrantKind::ClientCredentials => {
                credentials::request_access_token(self, challenge.header(), Vec::new()).await
            }
            GrantKind::AuthorizationCode => {
                let more = match kept.wanted.is_empty() {
                    true => Vec::new(),
                    false => {
                        let wanted = kept.wanted.iter().cloned().chain(challenge.required_scopes());
                        kept.granted_scopes().into_iter().chain(wanted).collect()
                    }
                };
                flow::authorize_user(self, consent, challenge.header(), more).await
            }
        };
        authorized.map(drop).map_err(|error| self.scrub_error(error))
    }

    /// Sends requests without a token to learn the server's requirements. If the server answers
    /// them, the last refusal is used.
    async fn request_challenge(&self) -> AuthChallenge {
        // Some servers accept the first request from anyone and refuse only later ones.
        for method in ["initialize", "server/discover", "tools/list"] {
            let message = json!({
                "jsonrpc": "2.0", "id": 0, "method": method,
                "params": {
                    "protocolVersion": ProtocolVersion::LATEST_WITH_INITIALIZE, "capabilities": {},
                    "clientInfo": { "name": "jaato", "version": env!("CARGO_PKG_VERSION") },
                },
            });
            let mut exchange = McpHttpRequest::new("POST", &self.url, ANSWER_TIME)
                .with_header("accept", "application/json, text/event-stream")
                .with_header("content-type", "application/json");
            exchange.headers.extend(self.headers.clone());
            exchange.body = message.to_string().into_bytes();
            // The metadata requests report why the server cannot be reached.
            let Ok(reply) = self.backend.send_http_request(exchange).await else { break };
            let challenge = AuthChallenge::from_reply(&reply);
            if challenge.header().is_some() {
                return challenge;
            }
        }
        self.refusal.lock().clone()
    }

    /// Deletes tokens and client. Returns false if there were none.
    ///
    /// # Errors
    /// An error if the store cannot be written.
    pub async fn log_out(&self) -> Result<bool> {
        let _busy = self.busy.lock().await;
        self.asked.lock().clear();
        self.shelf.delete_login().await
    }

    async fn current_token(&self) -> Result<Option<String>, HttpFailure> {
        let kept = self.shelf.get_login().await;
        if !kept.is_expiring(unix_seconds()) {
            return Ok(kept.access_token());
        }
        let _busy = self.busy.lock().await;
        let kept = self.shelf.reload_login().await;
        match kept.is_expiring(unix_seconds()) {
            false => Ok(kept.access_token()),
            true => {
                self.renew_token(&kept, &AuthChallenge::default()).await.map_err(HttpFailure::from)
            }
        }
    }

    async fn replace_token(
        &self,
        sent: Option<&str>,
        challenge: &AuthChallenge,
    ) -> Result<String, HttpFailure> {
        *self.refusal.lock() = challenge.clone();
        let _busy = self.busy.lock().await;
        let kept = self.shelf.reload_login().await;
        let token =
            kept.access_token().filter(|it| sent != Some(it) && !kept.is_expiring(unix_seconds()));
        if let Some(token) = token {
            return Ok(token);
        }
        let renewed =
            self.renew_token(&kept, challenge).await.map_err(|error| self.login_failure(error))?;
        match (renewed.filter(|it| sent != Some(it)), &self.consent) {
            (Some(token), _) => Ok(token),
            (None, Some(consent)) => {
                let authorized =
                    flow::authorize_user(self, &**consent, challenge.header(), Vec::new());
                authorized.await.map_err(|error| self.login_failure(error))
            }
            (None, None) => Err(self.login_required("the server requires a login")),
        }
    }

    async fn request_more_scopes(&self, challenge: &AuthChallenge) -> Result<String, HttpFailure> {
        *self.refusal.lock() = challenge.clone();
        let _busy = self.busy.lock().await;
        let kept = self.shelf.reload_login().await;
        let wanted = challenge.required_scopes();
        let granted = kept.granted_scopes();
        let is_known =
            |scope: &String| granted.contains(scope) || self.asked.lock().contains(scope);
        if wanted.iter().all(is_known) {
            let text = "the server requires rights that it has already granted";
            return Err(self.login_failure(Error::new(ErrorKind::PermissionDenied, text)));
        }
        let mut all = granted;
        all.extend(wanted.iter().filter(|scope| !all.contains(scope)).cloned().collect::<Vec<_>>());
        let authorized = match (&self.consent, self.settings.grant) {
            (_, GrantKind::ClientCredentials) => {
                credentials::request_access_token(self, challenge.header(), all).await
            }
            (Some(consent), GrantKind::AuthorizationCode) => {
                flow::authorize_user(self, &**consent, challenge.header(), all).await
            }
            (None, GrantKind::AuthorizationCode) => {
                let words = wanted.join(" ");
                // If this write fails, the login requests fewer scopes and the server asks for them
                // again.
                let _ = self.shelf.change_login(|kept| kept.wanted = wanted).await;
                let text = format!(
                    "the server requires more rights (`{}`)",
                    crate::log::sanitize_line(&words)
                );
                return Err(self.login_required(&text));
            }
        };
        authorized.map_err(|error| self.login_failure(error))
    }

    /// Gets a token without the user. Returns `None` if that is impossible.
    async fn renew_token(
        &self,
        kept: &StoredLogin,
        challenge: &AuthChallenge,
    ) -> Result<Option<String>> {
        match self.settings.grant {
            GrantKind::ClientCredentials => {
                credentials::request_access_token(self, challenge.header(), Vec::new())
                    .await
                    .map(Some)
            }
            GrantKind::AuthorizationCode if kept.can_refresh() => {
                flow::refresh_token(self, kept, challenge.header()).await
            }
            GrantKind::AuthorizationCode => Ok(None),
        }
    }

    /// Creates the manager of the login steps, with the stored login.
    ///
    /// # Errors
    /// An error if the URL is invalid.
    pub async fn authorization_manager(&self) -> Result<AuthorizationManager> {
        let mut manager = discovery::create_authorization_manager(&self.url, &self.backend).await?;
        manager.set_credential_store(OAuthCredentials(Arc::clone(&self.shelf)));
        Ok(manager)
    }

    /// Records the requested scopes.
    pub fn record_scopes(&self, scopes: &[String]) {
        self.asked.lock().extend(scopes.iter().cloned());
    }

    fn login_required(&self, what: &str) -> HttpFailure {
        let command = format!("jaato mcp login {}", self.name);
        let error = Error::new(ErrorKind::PermissionDenied, format!("{what}: `{command}`"))
            .with_hint(format!("`/mcp login {}` in a conversation", self.name));
        HttpFailure { error, wants_login: true }
    }

    fn login_failure(&self, error: Error) -> HttpFailure {
        let wants_login = error.kind == ErrorKind::PermissionDenied;
        HttpFailure { error: self.scrub_error(error), wants_login }
    }

    /// Removes secrets from an error, because the server may have repeated them.
    fn scrub_error(&self, mut error: Error) -> Error {
        let secrets = self.settings.secrets().into_iter().chain(self.shelf.secrets());
        for secret in secrets.filter(|secret| !secret.is_empty()) {
            error.message = error.message.replace(&secret, "…");
        }
        error
    }
}

impl Authorize for OAuthLogin {
    fn access_token(&self) -> BoxFuture<'_, Result<Option<String>, HttpFailure>> {
        self.current_token().boxed()
    }

    fn replace_refused_token<'a>(
        &'a self,
        sent: Option<&'a str>,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>> {
        self.replace_token(sent, challenge).boxed()
    }

    fn request_wider_token<'a>(
        &'a self,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>> {
        self.request_more_scopes(challenge).boxed()
    }
}
