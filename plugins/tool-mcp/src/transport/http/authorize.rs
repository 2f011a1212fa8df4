//! The interface through which the HTTP client gets tokens.

use futures_util::future::BoxFuture;

use super::challenge::AuthChallenge;
use super::failure::HttpFailure;

/// Provides the tokens for a server's requests.
pub trait Authorize: Send + Sync + 'static {
    /// Returns the token for a request, if there is one.
    ///
    /// # Errors
    /// An error if the token expires and cannot be renewed at this time.
    fn access_token(&self) -> BoxFuture<'_, Result<Option<String>, HttpFailure>>;

    /// Returns a token to replace one that the server has refused.
    ///
    /// # Errors
    /// An error if the user has to log in, or the login failed.
    fn replace_refused_token<'a>(
        &'a self,
        sent: Option<&'a str>,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>>;

    /// Returns a token with more scopes.
    ///
    /// # Errors
    /// An error if the user has to log in, the login failed, or the token already has the scopes
    /// that the server wants.
    fn request_wider_token<'a>(
        &'a self,
        challenge: &'a AuthChallenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>>;
}
