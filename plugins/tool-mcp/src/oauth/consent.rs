//! Brings a user to a login page.

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::Result;

/// Brings users to login pages.
pub trait LoginConsent: Send + Sync + 'static {
    /// Prepares a visit, because the browser needs an address to return to before the page is
    /// known.
    ///
    /// # Errors
    /// `conflict` if the port is taken.
    fn begin_visit(&self, port: Option<u16>)
    -> BoxFuture<'static, Result<Box<dyn LoginPageVisit>>>;
}

/// One visit to a login page.
pub trait LoginPageVisit: Send {
    /// Returns the address to which the browser returns.
    fn redirect_uri(&self) -> &str;

    /// Brings the user to a page and returns the URL to which it redirected the browser.
    ///
    /// # Errors
    /// `timeout` if the browser does not return, or `cancelled`.
    fn visit_page(self: Box<Self>, page: String) -> BoxFuture<'static, Result<String>>;
}
