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

/// Sends what `make` makes, with the headers of the API. A server that may need no key is asked
/// without one only if the user has none.
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
    for credential in [first, first.other()] {
        let request = with_headers(base, betas, make(), credential);
        match request.required_credential(credential.variable()).send().await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            answer => {
                cx.state().remember(base, credential);
                return answer;
            }
        }
    }
    let request = with_headers(base, betas, make(), Credential::Key);
    request.credential(Credential::Key.variable()).send().await
}

fn with_headers(
    base: &str,
    betas: &[&str],
    request: HttpRequestBuilder,
    credential: Credential,
) -> HttpRequestBuilder {
    let mut betas = betas.to_vec();
    if credential == Credential::Token && endpoint::is_vendors(base) {
        betas.push(TOKEN_BETA);
    }
    let mut request = request.header("anthropic-version", VERSION);
    if !betas.is_empty() {
        request = request.header("anthropic-beta", betas.join(","));
    }
    request
}

/// Reads what a server says about an answer that is no success, and what to do about it.
pub(crate) async fn refused(
    cx: &Cx<Anthropic>,
    base: &str,
    url: &str,
    response: HttpResponse,
) -> Error {
    let refusal = exchange::refusal(cx, url, response).await;
    let key = refusal.had_key.then(|| cx.state().credential_for(base));
    match refusal::hint(refusal.status, &refusal.body, key) {
        Some(hint) => refusal.error.with_hint(hint),
        None => refusal.error,
    }
}
