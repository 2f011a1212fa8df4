//! How a person is brought to the page on which they log in.

use futures_util::future::BoxFuture;
use jaato_plugin_sdk::Result;

/// Brings people to pages.
pub trait Consent: Send + Sync + 'static {
    /// Gets ready: their browser must have a place to come back to before the page is known.
    ///
    /// # Errors
    /// `conflict` where the port is taken.
    fn begin(&self, port: Option<u16>) -> BoxFuture<'static, Result<Box<dyn Visit>>>;
}

/// One visit.
pub trait Visit: Send {
    /// Returns where the browser comes back to.
    fn redirect_uri(&self) -> &str;

    /// Brings the person to a page; returns the address to which it sent their browser.
    ///
    /// # Errors
    /// `timeout` where nobody comes back, `cancelled`.
    fn visit(self: Box<Self>, page: String) -> BoxFuture<'static, Result<String>>;
}
