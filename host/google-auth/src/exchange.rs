//! Requests tokens from Google's servers, and parses the answers.

use std::time::Duration;

use jaato_http::header::HeaderValue;
use jaato_http::{
    Client, ExchangeLimits, Method, OutgoingRequest, RedirectPolicy, Url, is_loopback,
};
use jaato_types::text::truncate_chars;
use jaato_types::{Error, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::file::{AuthorizedUser, ImpersonatedAccount};
use crate::token::MintedToken;

/// The longest wait for a token server.
const WAIT: Duration = Duration::from_secs(20);

/// The maximum number of bytes of an answer. A token has a few thousand.
const ANSWER_BYTES_MAX: u64 = 256 * 1024;

/// The requested lifetime of a token for another account.
const LIFETIME: Duration = Duration::from_secs(3_600);

/// The longest text of a server that an error repeats, in characters.
const TOLD_CHARS_MAX: usize = 300;

/// A token server's answer.
#[derive(Deserialize)]
pub(crate) struct TokenResponse {
    access_token: String,
    #[serde(default)]
    expires_in: u64,
}

impl TokenResponse {
    pub(crate) fn into_minted(self, quota_project: Option<String>) -> MintedToken {
        MintedToken::new(self.access_token, Duration::from_secs(self.expires_in), quota_project)
    }
}

/// A token server's refusal.
#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenRefusal {
    /// A word, or in newer servers an object.
    error: Value,
    error_description: String,
}

/// Requests a token for a user who has logged in before.
pub(crate) async fn request_user_token(
    client: &Client,
    user: &AuthorizedUser,
) -> Result<MintedToken, Error> {
    let mut form =
        Url::parse("https://form.invalid").map_err(|error| unusable_file_error(&error))?;
    form.query_pairs_mut()
        .append_pair("grant_type", "refresh_token")
        .append_pair("client_id", &user.client_id)
        .append_pair("client_secret", &user.client_secret)
        .append_pair("refresh_token", &user.refresh_token);
    let mut request = start_post(&user.token_uri)?;
    let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
    request.headers.insert("content-type", kind);
    request.body = form.query().unwrap_or_default().to_owned().into();
    let secrets = [user.refresh_token.as_str(), user.client_secret.as_str()];
    let answer: TokenResponse = parse_response(&send_request(client, request, &secrets).await?)?;
    Ok(answer.into_minted(user.quota_project_id.clone()))
}

/// Requests a token for another account, with a token of our own.
pub(crate) async fn request_impersonated_token(
    client: &Client,
    account: &ImpersonatedAccount,
    (own, scope): (&str, &str),
) -> Result<MintedToken, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ImpersonationResponse {
        access_token: String,
    }
    let mut request = start_post(&account.service_account_impersonation_url)?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {own}"))
        .map_err(|error| unusable_file_error(&error))?;
    bearer.set_sensitive(true);
    request.headers.insert("authorization", bearer);
    request.headers.insert("content-type", HeaderValue::from_static("application/json"));
    let lifetime = format!("{}s", LIFETIME.as_secs());
    let asked = json!({ "scope": [scope], "lifetime": lifetime, "delegates": account.delegates });
    request.body = asked.to_string().into();
    let answer: ImpersonationResponse =
        parse_response(&send_request(client, request, &[own]).await?)?;
    Ok(MintedToken::new(answer.access_token, LIFETIME, account.quota_project_id.clone()))
}

fn start_post(url: &str) -> Result<OutgoingRequest, Error> {
    let mut request =
        OutgoingRequest::new(Method::POST, url).map_err(|error| unusable_file_error(&error))?;
    if request.url.scheme() != "https" && !is_loopback(&request.url) {
        return Err(unusable_file_error(&"it names a server without encryption"));
    }
    request.redirects = RedirectPolicy::Refuse;
    request.limits = ExchangeLimits {
        answer: WAIT,
        idle: WAIT,
        body_bytes_max: ANSWER_BYTES_MAX,
        ..ExchangeLimits::default()
    };
    Ok(request)
}

fn unusable_file_error(what: &dyn std::fmt::Display) -> Error {
    let text = format!("the file of Google credentials cannot be used: {what}");
    Error::new(ErrorKind::Configuration, text)
}

/// Sends a request and returns the body of a successful answer. Removes these secrets from errors,
/// in case the server repeats them.
async fn send_request(
    client: &Client,
    request: OutgoingRequest,
    secrets: &[&str],
) -> Result<Vec<u8>, Error> {
    let failed = |error: jaato_http::HttpError| {
        let text = format!("cannot get a token for Google's servers: {error}");
        Error::new(ErrorKind::Provider, text).temporary()
    };
    let server = request.url.host_str().unwrap_or_default().to_owned();
    let answer = client.send(request).await.map_err(failed)?;
    let status = answer.status().as_u16();
    let body = answer.bytes().await.map_err(failed)?;
    if (200..300).contains(&status) {
        return Ok(body.to_vec());
    }
    let mut error = refusal_error(&server, status, &body);
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        error.message = error.message.replace(secret, "********");
    }
    Err(error)
}

/// Describes a token server's refusal, with a hint.
fn refusal_error(server: &str, status: u16, body: &[u8]) -> Error {
    let refusal: TokenRefusal = serde_json::from_slice(body).unwrap_or_default();
    let word = refusal.error.as_str().map(str::to_owned);
    let word = word.or_else(|| refusal.error["status"].as_str().map(str::to_owned));
    let word = word.unwrap_or_else(|| format!("HTTP {status}"));
    let about = match refusal.error["message"].as_str() {
        Some(message) => message.to_owned(),
        None => refusal.error_description,
    };
    let about = truncate_chars(&about, TOLD_CHARS_MAX);
    let about = if about.is_empty() { about } else { format!(": {about}") };
    let text = format!("`{server}` refused a token for Google's servers ({word}){about}");
    let error = Error::new(ErrorKind::Configuration, text);
    match (word.as_str(), status) {
        ("invalid_grant" | "invalid_rapt", _) => error.with_hint(
            "the login was revoked or has expired, or this machine's clock is wrong: run `gcloud \
             auth application-default login`",
        ),
        ("PERMISSION_DENIED", _) => error.with_hint(
            "impersonating an account needs the role `roles/iam.serviceAccountTokenCreator`",
        ),
        (_, 429 | 500..) => error.temporary(),
        _ => error,
    }
}

/// Parses an answer. Errors do not contain its content.
pub(crate) fn parse_response<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|_| Error::new(ErrorKind::Provider, "the token server sent an invalid answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_server_error_is_shown_with_a_fitting_hint() {
        let check = |status: u16, body: &str, said: &str, hint: &str| {
            let error = refusal_error("h", status, body.as_bytes());
            assert!(error.message.contains(said), "{error}");
            assert!(error.hint.unwrap_or_default().contains(hint), "{said}");
        };
        let old = r#"{"error":"invalid_grant","error_description":"Token has been revoked."}"#;
        check(400, old, "(invalid_grant): Token has been revoked.", "application-default login");
        let denied = r#"{"error":{"code":403,"status":"PERMISSION_DENIED","message":"no"}}"#;
        check(403, denied, "(PERMISSION_DENIED): no", "serviceAccountTokenCreator");
        check(404, "<html>", "(HTTP 404)", "");
        assert_eq!(refusal_error("h", 503, b"").retry, jaato_types::Retry::Temporary);
    }

    #[test]
    fn token_url_must_be_https_or_loopback() {
        assert!(
            start_post("https://h.example/token").is_ok()
                && start_post("http://127.0.0.1:1/t").is_ok()
        );
        for url in ["http://h.example/token", "http://127.0.0.1.h.example/t", "file:///etc"] {
            assert_eq!(start_post(url).unwrap_err().kind, ErrorKind::Configuration, "{url}");
        }
    }
}
