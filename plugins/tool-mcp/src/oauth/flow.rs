//! Gets tokens on behalf of a user: exchanges codes for tokens and refreshes tokens.

use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{AuthError, AuthorizationMetadata, OAuthClientConfig};
use url::Url;

use super::consent::LoginConsent;
use super::discovery::{discover_metadata, explain_auth_error};
use super::login::OAuthLogin;
use super::login_store::{StoredLogin, StoredOAuthClient};
use crate::log::sanitize_line;

/// The name of jaato on consent pages.
const CLIENT_NAME: &str = "jaato";
/// The maximum length of an error name that is shown.
const ERROR_BYTES_MAX: usize = 64;

/// Brings a user to the login page and returns the resulting token. `more` are scopes to request.
/// If it is empty, the server's scopes are requested.
///
/// # Errors
/// The refusal of the server or the user, or the reason why the user cannot be asked.
pub async fn authorize_user(
    login: &OAuthLogin,
    consent: &dyn LoginConsent,
    challenge: Option<&str>,
    more: Vec<String>,
) -> Result<String> {
    let mut manager = login.authorization_manager().await?;
    let metadata = discover_metadata(&mut manager, &login.url, challenge).await?;
    let issuer = metadata.issuer.clone().unwrap_or_default();
    let known = login.shelf.get_login().await.client.filter(|client| client.issuer == issuer);
    let visit = match (login.settings.callback_port, known.as_ref().and_then(redirect_port)) {
        (Some(port), _) => consent.begin_visit(Some(port)).await?,
        // Another process may have taken the port of the last login.
        (None, Some(port)) => match consent.begin_visit(Some(port)).await {
            Ok(visit) => visit,
            Err(_) => consent.begin_visit(None).await?,
        },
        (None, None) => consent.begin_visit(None).await?,
    };
    let redirect = visit.redirect_uri().to_owned();
    let scopes = scopes_to_request(login, &manager, more).await;
    login.record_scopes(&scopes);
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let known = known.filter(|client| client.redirect_uri == redirect);
    let client = choose_client(login, &mut manager, &metadata, known, &redirect, &scopes).await?;
    let page =
        manager.get_authorization_url(&scopes).await.map_err(|it| explain_auth_error(&it))?;
    let back = visit.visit_page(page.clone()).await?;
    let came = OAuthCallback::parse_callback(&back, &page, &metadata)?;
    let kept = client.clone();
    login.shelf.change_login(|shelf| shelf.client = Some(kept)).await?;
    let exchanged = manager
        .exchange_code_for_token_with_issuer(&came.code, &came.state, came.issuer.as_deref())
        .await;
    exchanged.map_err(|error| explain_auth_error(&error))?;
    let refusal = challenge.map(str::to_owned);
    login
        .shelf
        .change_login(|shelf| {
            shelf.wanted.clear();
            shelf.refusal = refusal;
        })
        .await?;
    login
        .shelf
        .get_login()
        .await
        .access_token()
        .ok_or_else(|| Error::failed("the login returned no token"))
}

/// Refreshes the stored token. Returns `None` if the user has to log in again. Without a challenge,
/// the refusal from the last login is used, because some servers name their metadata only there.
///
/// # Errors
/// If the authorization server cannot be reached.
pub async fn refresh_token(
    login: &OAuthLogin,
    kept: &StoredLogin,
    challenge: Option<&str>,
) -> Result<Option<String>> {
    let (Some(client), Some(tokens)) = (&kept.client, &kept.tokens) else { return Ok(None) };
    let mut manager = login.authorization_manager().await?;
    let challenge = challenge.or(kept.refusal.as_deref());
    let metadata = discover_metadata(&mut manager, &login.url, challenge).await?;
    if metadata.issuer != tokens.issuer || metadata.issuer.as_ref() != Some(&client.issuer) {
        // The server has moved to another authorization server, which must not see the old tokens
        // and client.
        login.shelf.change_login(|kept| *kept = StoredLogin::default()).await?;
        return Ok(None);
    }
    configure_client(&mut manager, client)?;
    match manager.refresh_token().await {
        Ok(_) => Ok(login.shelf.get_login().await.access_token()),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => {
            // Another process may have used the refresh token and stored the next one.
            let now = login.shelf.reload_login().await;
            match now.access_token() {
                Some(token) if kept.access_token().as_ref() != Some(&token) => Ok(Some(token)),
                _ => {
                    login.shelf.change_login(|kept| kept.tokens = None).await?;
                    Ok(None)
                }
            }
        }
        Err(error) => Err(explain_auth_error(&error)),
    }
}

/// Lists the scopes to request: those of the entry and the additional ones that the server wants,
/// or the server's initial scopes.
async fn scopes_to_request(
    login: &OAuthLogin,
    manager: &AuthorizationManager,
    more: Vec<String>,
) -> Vec<String> {
    let mut scopes = match (login.settings.scopes.is_empty(), more.is_empty()) {
        (false, _) => login.settings.scopes.clone(),
        (true, false) => Vec::new(),
        (true, true) => return manager.select_initial_scopes(&[]).await,
    };
    for scope in more {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

/// Chooses the client: one from the entry, one registered earlier, one described by a document, or
/// one that is registered here.
async fn choose_client(
    login: &OAuthLogin,
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    known: Option<StoredOAuthClient>,
    redirect: &str,
    scopes: &[&str],
) -> Result<StoredOAuthClient> {
    let issuer = metadata.issuer.clone().unwrap_or_default();
    let made = |id: String, secret: Option<String>| StoredOAuthClient {
        issuer: issuer.clone(),
        id,
        secret,
        redirect_uri: redirect.to_owned(),
    };
    let settings = &login.settings;
    let takes_document = metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|it| it.as_bool() == Some(true));
    let client = match (&settings.client_id, &settings.client_metadata_url, known) {
        (Some(id), _, _) => made(id.clone(), settings.client_secret.clone()),
        (None, Some(url), _) if takes_document => made(url.clone(), None),
        (None, _, Some(known)) => known,
        (None, _, None) if metadata.registration_endpoint.is_none() => {
            let text = "its authorization server does not allow clients to register";
            let hint = "register a client there, and set its `clientId` under `oauth` in the entry";
            return Err(Error::new(ErrorKind::PermissionDenied, text).with_hint(hint));
        }
        (None, _, None) => {
            let registered = manager.register_client(CLIENT_NAME, redirect, scopes).await;
            let registered = registered.map_err(|error| explain_auth_error(&error))?;
            made(registered.client_id, registered.client_secret)
        }
    };
    configure_client(manager, &client)?;
    Ok(client)
}

fn configure_client(manager: &mut AuthorizationManager, client: &StoredOAuthClient) -> Result<()> {
    let mut config = OAuthClientConfig::new(client.id.as_str(), client.redirect_uri.as_str());
    if let Some(secret) = &client.secret {
        config = config.with_client_secret(secret.as_str());
    }
    manager.configure_client(config).map_err(|error| explain_auth_error(&error))
}

fn redirect_port(client: &StoredOAuthClient) -> Option<u16> {
    Url::parse(&client.redirect_uri).ok()?.port()
}

/// The parameters with which the browser returned.
#[derive(Debug, PartialEq, Eq)]
struct OAuthCallback {
    code: String,
    state: String,
    issuer: Option<String>,
}

impl OAuthCallback {
    /// Parses the URL to which the browser returned. An error is shown only if it comes from the
    /// issuer of the page, because otherwise its text is untrusted.
    fn parse_callback(back: &str, page: &str, metadata: &AuthorizationMetadata) -> Result<Self> {
        let odd = |text: &str| Error::new(ErrorKind::PermissionDenied, text);
        let back = Url::parse(back).map_err(|_| odd("the browser returned to an invalid URL"))?;
        let given = |key: &str| query_parameter(&back, key);
        let page = Url::parse(page).map_err(|_| odd("the login page has an invalid URL"))?;
        let state = given("state").unwrap_or_default();
        if query_parameter(&page, "state").as_ref() != Some(&state) {
            return Err(odd("the browser returned from another login"));
        }
        let issuer = given("iss");
        let says_who = metadata
            .additional_fields
            .get("authorization_response_iss_parameter_supported")
            .is_some_and(|it| it.as_bool() == Some(true));
        let is_theirs = match &issuer {
            Some(issuer) => Some(issuer) == metadata.issuer.as_ref(),
            None => !says_who,
        };
        if !is_theirs {
            return Err(odd("the login's answer is not from the expected authorization server"));
        }
        if let Some(code) = given("code") {
            return Ok(Self { code, state, issuer });
        }
        match given("error").filter(|it| it.len() <= ERROR_BYTES_MAX) {
            Some(error) => {
                Err(odd(&format!("the login was refused (`{}`)", sanitize_line(&error))))
            }
            None => Err(odd("the browser returned without a code")),
        }
    }
}

fn query_parameter(url: &Url, key: &str) -> Option<String> {
    url.query_pairs().find(|(known, _)| known == key).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, json};

    use super::*;

    #[track_caller]
    fn callback_code(query: &str, says_who: bool) -> String {
        let metadata = serde_json::from_value(json!({
            "issuer": "https://as.example", "authorization_endpoint": "https://as.example/a",
            "token_endpoint": "https://as.example/t",
            "authorization_response_iss_parameter_supported": says_who,
        }));
        let back = format!("http://127.0.0.1:1/callback?{query}");
        let page = "https://as.example/a?state=s";
        match OAuthCallback::parse_callback(&back, page, &metadata.unwrap()) {
            Ok(callback) => callback.code,
            Err(error) => error.message,
        }
    }

    #[test]
    fn login_answer_from_another_server_or_login_is_refused() {
        assert_eq!(callback_code("code=c&state=s", false), "c");
        assert_eq!(callback_code("code=c&state=s&iss=https://as.example", true), "c");
        let refused = "the login's answer is not from the expected authorization server";
        assert_eq!(callback_code("code=c&state=s", true), refused);
        assert_eq!(callback_code("code=c&state=s&iss=https://as.example/", false), refused);
        let stranger =
            callback_code("error=call+0900+evil&state=s&iss=https://evil.example", false);
        assert_eq!(stranger, refused);
        assert_eq!(
            callback_code("code=c&state=t", false),
            "the browser returned from another login"
        );
        assert_eq!(
            callback_code("error=access_denied&state=s", false),
            "the login was refused (`access_denied`)"
        );
        assert_eq!(callback_code("state=s", false), "the browser returned without a code");
    }
}
