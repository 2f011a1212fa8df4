//! Who has the token of a server's requests, as the client of the protocol knows them.

use futures_util::future::BoxFuture;

use super::challenge::Challenge;
use super::failure::HttpFailure;

/// Has tokens.
pub trait Authorize: Send + Sync + 'static {
    /// Returns the token that a request takes along, if there is one.
    ///
    /// # Errors
    /// One that ends and cannot be renewed at this time.
    fn token(&self) -> BoxFuture<'_, Result<Option<String>, HttpFailure>>;

    /// Returns a better token than one that the server has refused.
    ///
    /// # Errors
    /// Somebody has to log in, or it failed.
    fn refused<'a>(
        &'a self,
        sent: Option<&'a str>,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>>;

    /// Returns a token that reaches further.
    ///
    /// # Errors
    /// Somebody has to log in, or it failed, or the server wants what it has.
    fn wants_more<'a>(
        &'a self,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<String, HttpFailure>>;
}
