//! Sends a request with the user's API key or token.
//!
//! The host does not say which credentials exist. It adds the one that a request names, or reports
//! that it is missing. So the plugin sends the request with one credential and retries with the
//! other if the first is missing.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use jaato_plugin_sdk_provider::exchange;

use crate::endpoint;
use crate::refusal;
use crate::state::{AnthropicCredential, AnthropicState};

/// The API version, unchanged since 2023.
const VERSION: &str = "2023-06-01";

/// The beta header with which the vendor's server accepts the token of a signed-in user.
const TOKEN_BETA: &str = "oauth-2025-04-20";

/// Sends the request that `make` builds, with the API headers. A server that may need no key is
/// asked without a key only if the user has no credential.
///
/// # Errors
/// The errors of the exchange, or `not_found` if the user has no credential.
pub(crate) async fn send_with_credentials(
    cx: &Cx<AnthropicState>,
    base: &str,
    betas: &[&str],
    make: impl Fn() -> HttpRequestBuilder,
) -> Result<HttpResponse> {
    let first = cx.state().credential_for(base);
    for credential in [first, first.other_credential()] {
        let request = with_headers(base, betas, make(), credential);
        match request.required_credential(credential.variable_name()).send().await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            answer => {
                cx.state().remember_credential(base, credential);
                return answer;
            }
        }
    }
    let request = with_headers(base, betas, make(), AnthropicCredential::Key);
    request.credential(AnthropicCredential::Key.variable_name()).send().await
}

fn with_headers(
    base: &str,
    betas: &[&str],
    request: HttpRequestBuilder,
    credential: AnthropicCredential,
) -> HttpRequestBuilder {
    let mut betas = betas.to_vec();
    if credential == AnthropicCredential::Token && endpoint::is_vendor_url(base) {
        betas.push(TOKEN_BETA);
    }
    let mut request = request.header("anthropic-version", VERSION);
    if !betas.is_empty() {
        request = request.header("anthropic-beta", betas.join(","));
    }
    request
}

/// Reads the body of an error answer and adds a hint.
pub(crate) async fn refusal_error(
    cx: &Cx<AnthropicState>,
    base: &str,
    url: &str,
    response: HttpResponse,
) -> Error {
    let refusal = exchange::read_refusal(cx, url, response).await;
    let key = refusal.had_key.then(|| cx.state().credential_for(base));
    match refusal::refusal_hint(refusal.status, &refusal.body, key) {
        Some(hint) => refusal.error.with_hint(hint),
        None => refusal.error,
    }
}
