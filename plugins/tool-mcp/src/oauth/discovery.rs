//! Discovers the metadata of a server and of its authorization server.
//!
//! `rmcp` finds the metadata and checks that the resource is the server's own and that the issuer
//! is the requested one. This module rejects insecure metadata that `rmcp` accepts.

use std::sync::Arc;

use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::transport::AuthorizationManager;
use rmcp::transport::auth::{AuthError, AuthorizationMetadata};
use url::{Host, Url};

use super::requests::LoginRequests;
use crate::log::sanitize_line;
use crate::transport::http::HttpBackend;

/// Creates the manager of a server's login steps.
///
/// # Errors
/// An error if the URL is invalid.
pub async fn create_authorization_manager(
    url: &str,
    backend: &Arc<dyn HttpBackend>,
) -> Result<AuthorizationManager> {
    let requests = Arc::new(LoginRequests(Arc::clone(backend)));
    let manager = AuthorizationManager::new_with_oauth_http_client(url, requests).await;
    manager.map_err(|error| explain_auth_error(&error))
}

/// Finds the authorization server of a server and sets it in the manager.
///
/// # Errors
/// An error if no authorization server is found, or it is not safe for users.
pub async fn discover_metadata(
    manager: &mut AuthorizationManager,
    url: &str,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata> {
    let metadata = discover_client_metadata(manager, url, challenge).await?;
    check_pkce_support(&metadata)?;
    Ok(metadata)
}

/// Like [`discover_metadata`], but for a client that gets its token without a code.
///
/// # Errors
/// An error if no authorization server is found, or it is not safe for secrets.
pub async fn discover_client_metadata(
    manager: &mut AuthorizationManager,
    url: &str,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata> {
    let found = manager.resolve_metadata_from_challenge(challenge).await;
    let found = found.map_err(|error| explain_auth_error(&error))?;
    if !found.source.is_discovered() {
        // Guessed addresses could receive the tokens of the real ones.
        return Err(permission_denied(
            "the server requires a login but does not say where: it has no OAuth metadata",
        ));
    }
    check_encryption(url, &found.metadata)?;
    manager.set_metadata(found.metadata.clone());
    Ok(found.metadata)
}

/// Rejects an authorization server whose codes could be stolen.
fn check_pkce_support(metadata: &AuthorizationMetadata) -> Result<()> {
    let methods = metadata.code_challenge_methods_supported.as_deref().unwrap_or_default();
    match methods.iter().any(|method| method == "S256") {
        true => Ok(()),
        false => Err(permission_denied(
            "its authorization server does not announce support for PKCE with S256",
        )),
    }
}

/// Rejects an authorization server to which a secret would be sent unencrypted.
fn check_encryption(url: &str, metadata: &AuthorizationMetadata) -> Result<()> {
    if metadata.issuer.is_none() {
        return Err(permission_denied("its authorization server does not name itself (`issuer`)"));
    }
    let may_be_plain = Url::parse(url).is_ok_and(|url| url.scheme() == "http");
    let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
    for endpoint in endpoints.into_iter().chain(&metadata.registration_endpoint) {
        let endpoint = Url::parse(endpoint)
            .map_err(|_| permission_denied("an endpoint of its login is not a valid URL"))?;
        if endpoint.scheme() != "https" && !(may_be_plain && is_loopback_url(&endpoint)) {
            let text = format!(
                "the endpoint `{}` of its login does not use https",
                url_without_secrets(&endpoint)
            );
            return Err(permission_denied(&text));
        }
    }
    Ok(())
}

/// Returns true if the host of a URL is this machine.
fn is_loopback_url(url: &Url) -> bool {
    url.scheme() == "http"
        && match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        }
}

/// Returns a URL without the parts that may be secret.
fn url_without_secrets(url: &Url) -> String {
    sanitize_line(&format!("{}{}", url.origin().ascii_serialization(), url.path()))
}

fn permission_denied(text: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, text)
}

/// Explains to the user why a login failed.
pub fn explain_auth_error(error: &AuthError) -> Error {
    let text = sanitize_line(&error.to_string());
    match error {
        AuthError::DiscoveryRequestFailed { source, .. } => {
            let text = format!("{text}: {}", sanitize_line(&source.to_string()));
            Error::new(ErrorKind::Unavailable, text).temporary()
        }
        AuthError::TokenRefreshFailed(_) | AuthError::AuthorizationServersUnavailable { .. } => {
            Error::new(ErrorKind::Unavailable, text).temporary()
        }
        // The received issuer is untrusted text, so it is not shown.
        AuthError::AuthorizationServerMismatch { expected_issuer, .. } => {
            let expected = sanitize_line(expected_issuer);
            permission_denied(&format!("the answer is not from `{expected}`, the expected issuer"))
        }
        _ => permission_denied(&text),
    }
}

#[cfg(test)]
mod tests {
    use jaato_plugin_sdk::serde_json::{self, Value, json};

    use super::*;

    #[track_caller]
    fn metadata_refusal(url: &str, change: Value) -> String {
        let mut metadata = json!({
            "issuer": "https://as.example", "authorization_endpoint": "https://as.example/a",
            "token_endpoint": "https://as.example/t", "code_challenge_methods_supported": ["S256"],
        });
        for (key, value) in change.as_object().unwrap() {
            metadata[key] = value.clone();
        }
        let metadata = serde_json::from_value(metadata).unwrap();
        let checked = check_encryption(url, &metadata).and_then(|()| check_pkce_support(&metadata));
        checked.err().map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn insecure_authorization_server_metadata_is_refused() {
        let url = "https://mcp.example/mcp";
        assert_eq!(metadata_refusal(url, json!({})), "");
        let none = json!({ "code_challenge_methods_supported": null });
        assert!(metadata_refusal(url, none).contains("PKCE"));
        let plain = json!({ "code_challenge_methods_supported": ["plain"] });
        assert!(metadata_refusal(url, plain).contains("PKCE"));
        assert!(metadata_refusal(url, json!({ "issuer": null })).contains("issuer"));
        let clear = json!({ "token_endpoint": "http://127.0.0.1/t?key=x" });
        let text = "the endpoint `http://127.0.0.1/t` of its login does not use https";
        assert_eq!(metadata_refusal(url, clear.clone()), text);
        assert_eq!(metadata_refusal("http://127.0.0.1:1/mcp", clear), "");
        let far = json!({ "token_endpoint": "http://as.example/t" });
        assert!(metadata_refusal("http://127.0.0.1:1/mcp", far).contains("does not use https"));
    }
}
