//! Sends a request with the user's credential.
//!
//! The host does not say which credentials exist. It adds the one that a request names, or reports
//! that it is missing. So the plugin tries one variable after the other.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use jaato_plugin_sdk_provider::exchange;

use crate::credentials;
use crate::endpoint::GoogleBackend;
use crate::refusal::{GoogleErrorAnswer, GoogleRequestChange};
use crate::state::GoogleState;

/// Sends the request that `make` builds. A server that may need no key is asked without a key only
/// if the user has no credential.
///
/// # Errors
/// The errors of the exchange, or `not_found` if the user has no credential.
pub(crate) async fn send_with_credentials(
    cx: &Cx<GoogleState>,
    backend: &GoogleBackend,
    make: impl Fn() -> HttpRequestBuilder,
) -> Result<HttpResponse> {
    for variable in cx.state().credential_variables_for(backend) {
        match make().required_credential(variable).send().await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            answer => {
                cx.state().remember_variable(backend, variable);
                return answer;
            }
        }
    }
    make().credential(credentials::suggested_variable(backend)).send().await
}

/// An error answer.
pub(crate) struct GoogleErrorResponse {
    pub(crate) error: Error,
    /// The change that the server asks for.
    pub(crate) wish: Option<GoogleRequestChange>,
}

/// Reads the body of an error answer and adds a hint.
pub(crate) async fn refusal_error(
    cx: &Cx<GoogleState>,
    backend: &GoogleBackend,
    url: &str,
    response: HttpResponse,
) -> GoogleErrorResponse {
    let refusal = exchange::read_refusal(cx, url, response).await;
    let (status, had_key) = (refusal.status, refusal.had_key);
    let variable = cx.state().credential_variables_for(backend)[0];
    let answered = GoogleErrorAnswer { status, body: &refusal.body, had_key, backend, variable };
    GoogleErrorResponse {
        wish: answered.requested_change(),
        error: answered.add_details_to(refusal.error),
    }
}
