//! Logs in to HTTP servers with OAuth 2.1, as the protocol specifies. `rmcp` implements the steps:
//! finding metadata, checking issuers, and exchanging codes for tokens.
//!
//! [`login`] holds the token of one server and replaces it, through [`flow`] with a user and
//! through [`credentials`] without one. [`discovery`] finds the authorization server, and [`kept`]
//! stores the login across processes. [`consent`] brings a user to a page, and [`loopback`]
//! receives their browser.
//!
//! Invariant: a secret goes only to its own server or authorization server, over https or to this
//! machine, and never appears in a text that is shown.

pub mod consent;
pub mod credentials;
pub mod discovery;
pub mod flow;
pub mod jwt;
pub mod login;
pub mod login_store;
pub mod loopback;
pub mod requests;

pub use consent::{LoginConsent, LoginPageVisit};
pub use login::OAuthLogin;
pub use login_store::{MemoryTokenStore, TokenStore};
