//! The error of a failed HTTP request, as it passes through `rmcp`.

use std::fmt;

use jaato_plugin_sdk::Error;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error of this crate inside an `rmcp` error.
#[derive(Debug)]
pub struct HttpFailure {
    /// The error for the user or the model.
    pub error: Error,
    /// Whether the server requires a login. If so, no other handshake helps.
    pub wants_login: bool,
}

/// The source that keeps `rmcp` from trying the older era.
static LOGIN: AuthError = AuthError::AuthorizationRequired;

impl fmt::Display for HttpFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.error.message)
    }
}

impl std::error::Error for HttpFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.wants_login.then_some(&LOGIN as _)
    }
}

impl From<Error> for HttpFailure {
    fn from(error: Error) -> Self {
        Self { error, wants_login: false }
    }
}

/// Returns this crate's error from inside an `rmcp` error.
pub fn find_own_error(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(StreamableHttpError::<HttpFailure>::Client(failure)) = error.downcast_ref() {
            return Some(failure.error.clone());
        }
        if let Some(failure) = error.downcast_ref::<HttpFailure>() {
            return Some(failure.error.clone());
        }
        next = error.source();
    }
    None
}
