//! Gets tokens that a client requests for itself, with its secret or a signature of its key.

use jaato_plugin_sdk::serde_json::{self, Value};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::auth::{AuthorizationMetadata, OAuthTokenResponse};
use rmcp::transport::{ClientCredentialsConfig, StoredCredentials};
use url::form_urlencoded::Serializer;

use super::discovery::{discover_client_metadata, explain_auth_error};
use super::jwt;
use super::login::OAuthLogin;
use super::login_store::unix_seconds;
use super::requests::{ANSWER_TIME, fetch_whole_response};
use crate::log::sanitize_line;
use crate::transport::http::McpHttpRequest;

/// The assertion type of a signed JWT.
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Gets a token. `more` are scopes to request in addition to those of the entry.
///
/// # Errors
/// The refusal of the authorization server, or the reason why it cannot be reached.
pub async fn request_access_token(
    login: &OAuthLogin,
    challenge: Option<&str>,
    more: Vec<String>,
) -> Result<String> {
    let mut manager = login.authorization_manager().await?;
    let metadata = discover_client_metadata(&mut manager, &login.url, challenge).await?;
    let settings = &login.settings;
    let client_id = settings.client_id.clone().unwrap_or_default();
    let mut scopes = match settings.scopes.is_empty() && more.is_empty() {
        true => manager.select_initial_scopes(&[]).await,
        false => settings.scopes.clone(),
    };
    scopes.extend(more.into_iter().filter(|scope| !settings.scopes.contains(scope)));
    // This scope requests a refresh token, which applies only to users.
    scopes.retain(|scope| scope != "offline_access");
    login.record_scopes(&scopes);
    match &settings.private_key {
        None => {
            let config = ClientCredentialsConfig::ClientSecret {
                client_id,
                client_secret: settings.client_secret.clone().unwrap_or_default(),
                scopes,
                resource: Some(login.url.clone()),
            };
            manager.configure_client_credentials(&config).map_err(|it| explain_auth_error(&it))?;
            let given = manager.exchange_client_credentials(&config).await;
            given.map_err(|it| explain_auth_error(&it))?;
        }
        Some(key) => log_in_with_key(login, &metadata, &client_id, key, scopes).await?,
    }
    login
        .shelf
        .get_login()
        .await
        .access_token()
        .ok_or_else(|| Error::failed("the login returned no token"))
}

/// Gets a token with a signature and stores it.
async fn log_in_with_key(
    login: &OAuthLogin,
    metadata: &AuthorizationMetadata,
    client_id: &str,
    key: &str,
    scopes: Vec<String>,
) -> Result<()> {
    let issuer = metadata.issuer.clone().unwrap_or_default();
    let assertion = jwt::sign_client_assertion(key, client_id, &issuer, unix_seconds())?;
    let mut exchange = McpHttpRequest::new("POST", &metadata.token_endpoint, ANSWER_TIME)
        .with_header("content-type", "application/x-www-form-urlencoded")
        .with_header("accept", "application/json");
    exchange.body = token_request_form(&login.url, &assertion, &scopes).into_bytes();
    let answer = fetch_whole_response(&*login.backend, exchange).await?;
    if !(200..300).contains(&answer.status) {
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let error = sanitize_line(said["error"].as_str().unwrap_or("no reason"));
        let text = format!("the token was refused with status {} (`{error}`)", answer.status);
        return Err(Error::new(ErrorKind::PermissionDenied, text));
    }
    let given: OAuthTokenResponse = serde_json::from_slice(&answer.body)
        .map_err(|_| Error::new(ErrorKind::PermissionDenied, "the answer contains no token"))?;
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let granted = match said["scope"].as_str() {
        Some(scope) => scope.split_whitespace().map(str::to_owned).collect(),
        None => scopes,
    };
    let tokens =
        StoredCredentials::new(client_id.to_owned(), Some(given), granted, Some(unix_seconds()))
            .with_issuer(Some(issuer));
    login.shelf.change_login(|kept| kept.tokens = Some(tokens)).await
}

/// Builds the body of a token request.
fn token_request_form(resource: &str, assertion: &str, scopes: &[String]) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials");
    form.append_pair("client_assertion_type", ASSERTION_TYPE);
    form.append_pair("client_assertion", assertion);
    form.append_pair("resource", resource);
    if !scopes.is_empty() {
        form.append_pair("scope", &scopes.join(" "));
    }
    form.finish()
}
