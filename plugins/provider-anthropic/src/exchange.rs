//! Sends a request with the key or the token that the person has.
//!
//! The host does not tell what there is: it adds what a request names, or says that it is not
//! there. So a request names the one, and where that is missing the other.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use jaato_plugin_sdk_provider::exchange;

use crate::endpoint;
use crate::refusal;
use crate::state::{Anthropic, Credential};

/// The version of the API, the only one since 2023.
const VERSION: &str = "2023-06-01";

/// The header by which the vendor's own server takes a token of a person who signed in.
const TOKEN_BETA: &str = "oauth-2025-04-20";

/// Sends what `make` makes, with the headers of the API.
///
/// # Errors
/// What keeps an answer from coming; `not_found` where the person has neither.
pub(crate) async fn send(
    cx: &Cx<Anthropic>,
    base: &str,
    betas: &[&str],
    make: impl Fn() -> HttpRequestBuilder,
) -> Result<HttpResponse> {
    let first = cx.state().credential_for(base);
    let answer = send_with(base, betas, make(), first).await;
    if !is_missing(&answer) {
        return answer;
    }
    let other = first.other();
    let second = send_with(base, betas, make(), other).await;
    if is_missing(&second) {
        // As where there was but one: it says what to set.
        return if first == Credential::Key { answer } else { second };
    }
    cx.state().remember(base, other);
    second
}

/// Tells whether an answer is as it is because the credential is not there. One that is there and
/// is for another server is an error that stands: else the server that it is not for would be asked
/// without it.
fn is_missing(answer: &Result<HttpResponse>) -> bool {
    match answer {
        Ok(answer) => answer.status() == 401 && !answer.with_credential(),
        Err(error) => error.kind == ErrorKind::NotFound,
    }
}

async fn send_with(
    base: &str,
    betas: &[&str],
    request: HttpRequestBuilder,
    credential: Credential,
) -> Result<HttpResponse> {
    let mut betas = betas.to_vec();
    if credential == Credential::Token && endpoint::is_vendors(base) {
        betas.push(TOKEN_BETA);
    }
    let mut request = request.header("anthropic-version", VERSION);
    if !betas.is_empty() {
        request = request.header("anthropic-beta", betas.join(","));
    }
    request.credential(credential.variable()).send().await
}

/// Reads what a server says about an answer that is no success, and what to do about it.
pub(crate) async fn refused(cx: &Cx<Anthropic>, url: &str, response: HttpResponse) -> Error {
    let refusal = exchange::refusal(cx, url, response).await;
    match refusal::hint(refusal.status, &refusal.body, refusal.had_key) {
        Some(hint) => refusal.error.with_hint(hint),
        None => refusal.error,
    }
}
