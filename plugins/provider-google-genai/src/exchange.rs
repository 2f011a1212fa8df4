//! Sends a request with the user's credential.
//!
//! The host does not say which credentials exist. It adds the one that a request names, or reports
//! that it is missing. So the plugin tries one variable after the other.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use jaato_plugin_sdk_provider::exchange;

use crate::credentials;
use crate::endpoint::Backend;
use crate::refusal::{Answered, Wish};
use crate::state::Google;

/// Sends the request that `make` builds. A server that may need no key is asked without a key only
/// if the user has no credential.
///
/// # Errors
/// The errors of the exchange, or `not_found` if the user has no credential.
pub(crate) async fn send(
    cx: &Cx<Google>,
    backend: &Backend,
    make: impl Fn() -> HttpRequestBuilder,
) -> Result<HttpResponse> {
    for variable in cx.state().variables_for(backend) {
        match make().required_credential(variable).send().await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            answer => {
                cx.state().remember_variable(backend, variable);
                return answer;
            }
        }
    }
    make().credential(credentials::told(backend)).send().await
}

/// An error answer.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// The change that the server asks for.
    pub(crate) wish: Option<Wish>,
}

/// Reads the body of an error answer and adds a hint.
pub(crate) async fn refused(
    cx: &Cx<Google>,
    backend: &Backend,
    url: &str,
    response: HttpResponse,
) -> Refused {
    let refusal = exchange::refusal(cx, url, response).await;
    let (status, had_key) = (refusal.status, refusal.had_key);
    let variable = cx.state().variables_for(backend)[0];
    let answered = Answered { status, body: &refusal.body, had_key, backend, variable };
    Refused { wish: answered.wish(), error: answered.explain(refusal.error) }
}
