//! Why a request over HTTP came to nothing, as `rmcp` carries it, and as it comes out again.

use std::fmt;

use jaato_plugin_sdk::Error;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// An error of ours inside one of `rmcp`.
#[derive(Debug)]
pub struct HttpFailure {
    /// What a person or a model is told.
    pub error: Error,
    /// Whether the server wants somebody to log in: then no other way to begin helps.
    pub wants_login: bool,
}

/// What `rmcp` looks for before it tries the older era.
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

/// Returns our error that lies in one of `rmcp`.
pub fn inside(error: &(dyn std::error::Error + 'static)) -> Option<Error> {
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
