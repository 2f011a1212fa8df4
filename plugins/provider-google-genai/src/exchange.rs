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

/// Sends what `make` makes.
///
/// # Errors
/// What keeps an answer from coming; `not_found` where the person has no credential.
pub(crate) async fn send(
    cx: &Cx<Google>,
    backend: &Backend,
    make: impl Fn() -> HttpRequestBuilder,
) -> Result<HttpResponse> {
    let mut missing = None;
    for variable in cx.state().variables_for(backend) {
        let answer = make().credential(variable).send().await;
        if !is_missing(&answer) {
            cx.state().remember_variable(backend, variable);
            return answer;
        }
        if variable == credentials::told(backend) {
            missing = Some(answer);
        }
    }
    missing.unwrap_or_else(|| Err(Error::new(ErrorKind::NotFound, "no credential is declared")))
}

/// Tells whether an answer is as it is because the credential is not there. One that is there and
/// is for another server is an error that stands.
fn is_missing(answer: &Result<HttpResponse>) -> bool {
    match answer {
        Ok(answer) => matches!(answer.status(), 401 | 403) && !answer.with_credential(),
        Err(error) => error.kind == ErrorKind::NotFound,
    }
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
    let answered = Answered { status, body: &refusal.body, had_key, backend };
    Refused { wish: answered.wish(), error: answered.explain(refusal.error) }
}
