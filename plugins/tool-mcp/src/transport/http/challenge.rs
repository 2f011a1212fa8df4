//! The challenge with which a server refuses a request: `WWW-Authenticate`.

use rmcp::transport::WWWAuthenticateParams;
use url::Url;

use super::backend::McpHttpResponse;

/// The maximum number of challenges read from one response.
const CHALLENGES_MAX: usize = 8;
/// The maximum length of a challenge.
const CHALLENGE_BYTES_MAX: usize = 8 * 1024;

/// The challenge of a server.
#[derive(Debug, Clone, Default)]
pub struct AuthChallenge {
    header: Option<String>,
}

impl AuthChallenge {
    /// Finds the bearer challenge of a response. If there are several, the one that names the
    /// metadata wins.
    pub fn from_reply(reply: &McpHttpResponse) -> Self {
        if reply.status != 401 && reply.status != 403 {
            return Self::default();
        }
        let headers = reply.headers.iter().filter(|(name, _)| name == "www-authenticate");
        let is_bearer = |value: &&String| {
            value.len() <= CHALLENGE_BYTES_MAX && value.to_ascii_lowercase().contains("bearer")
        };
        let values: Vec<&String> =
            headers.map(|(_, value)| value).take(CHALLENGES_MAX).filter(is_bearer).collect();
        let telling = values.iter().find(|it| it.contains("resource_metadata"));
        Self { header: telling.or(values.first()).map(|it| (*it).clone()) }
    }

    /// Returns the header as received.
    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// Returns true if the token is valid but lacks scopes.
    pub fn is_scope_missing(&self) -> bool {
        self.parse_parameters().is_some_and(|it| it.is_insufficient_scope())
    }

    /// Lists the scopes that the server requires.
    pub fn required_scopes(&self) -> Vec<String> {
        let scope = self.parse_parameters().and_then(|it| it.scope).unwrap_or_default();
        scope.split_whitespace().map(str::to_owned).collect()
    }

    fn parse_parameters(&self) -> Option<WWWAuthenticateParams> {
        // The base URL does not matter, because no URL is read here.
        let base = Url::parse("http://127.0.0.1/").ok()?;
        Some(WWWAuthenticateParams::parse(self.header.as_deref()?, &base))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream::{self, StreamExt as _};

    use super::*;

    fn parse_challenge(status: u16, values: &[&str]) -> AuthChallenge {
        let header = |value: &&str| ("www-authenticate".to_owned(), (*value).to_owned());
        let headers = values.iter().map(header).collect();
        AuthChallenge::from_reply(&McpHttpResponse {
            status,
            headers,
            body: stream::empty().boxed(),
        })
    }

    #[test]
    fn challenge_with_resource_metadata_is_preferred() {
        let found = parse_challenge(
            401,
            &["Basic realm=\"x\"", "Bearer", "Bearer resource_metadata=\"u\""],
        );
        assert_eq!(found.header(), Some("Bearer resource_metadata=\"u\""));
        assert!(parse_challenge(401, &["Basic realm=\"x\""]).header().is_none());
        assert!(parse_challenge(200, &["Bearer"]).header().is_none());
    }

    #[test]
    fn missing_scopes_are_read_from_the_challenge() {
        let found = parse_challenge(403, &["Bearer error=\"insufficient_scope\", scope=\"a b\""]);
        assert!(found.is_scope_missing());
        assert_eq!(found.required_scopes(), ["a", "b"]);
        assert!(!parse_challenge(403, &["Bearer error=\"invalid_token\""]).is_scope_missing());
    }
}
