//! Sends a request with the credential that the person has.
//!
//! The host does not tell what there is: it adds what a request names, or says that it is not
//! there. So a request names one variable, and where that is not set the next.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::{HttpRequestBuilder, HttpResponse};
use jaato_plugin_sdk_provider::exchange;

use crate::credentials;
use crate::endpoint::Backend;
use crate::refusal::{Answered, Wish};
use crate::state::Google;

/// Sends what `make` makes. A server that may need no key is asked without one only if the user has
/// none.
///
/// # Errors
/// What keeps an answer from coming; `not_found` where the person has no credential.
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

/// An answer that is no success.
pub(crate) struct Refused {
    pub(crate) error: Error,
    /// What the server wants differently.
    pub(crate) wish: Option<Wish>,
}

/// Reads what a server says about an answer that is no success, and what to do about it.
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
