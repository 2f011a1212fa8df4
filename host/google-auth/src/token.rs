//! A token and its lifetime.

use std::fmt;
use std::time::{Duration, Instant};

/// How long before it expires a token is replaced, because a request with it may take a while.
const SPARE: Duration = Duration::from_secs(240);

/// The longest plausible lifetime of a token, regardless of the server's answer.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A token and its project.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// The token, a secret.
    pub text: String,
    /// The billed project, for the header `x-goog-user-project`.
    pub quota_project: Option<String>,
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("quota_project", &self.quota_project)
            .finish_non_exhaustive()
    }
}

/// A new token.
pub(crate) struct MintedToken {
    pub(crate) token: AccessToken,
    pub(crate) fresh_until: Instant,
}

impl MintedToken {
    pub(crate) fn new(text: String, lifetime: Duration, quota_project: Option<String>) -> Self {
        let lifetime = lifetime.min(LIFETIME_MAX);
        let fresh_until = Instant::now() + lifetime.saturating_sub(SPARE);
        Self { token: AccessToken { text, quota_project }, fresh_until }
    }
}
