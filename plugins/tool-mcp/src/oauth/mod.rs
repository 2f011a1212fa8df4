//! Logging in to servers over HTTP, by OAuth 2.1 as the protocol has it. `rmcp` knows the steps:
//! where the metadata lies, which issuer may say what, how a code becomes a token.
//!
//! [`login`] has the token of one server and gets a better one, by [`flow`] with a person and by
//! [`credentials`] without; [`discovery`] is who may be asked, [`kept`] what is known over
//! processes. [`consent`] is how a person is brought to a page, [`loopback`] where their browser
//! comes back to.
//!
//! Invariant: a secret goes to the server or the authorization server that it is for, by https or
//! to this machine, and is in no text that is shown.

pub mod consent;
pub mod credentials;
pub mod discovery;
pub mod flow;
pub mod jwt;
pub mod kept;
pub mod login;
pub mod loopback;
pub mod requests;

pub use consent::{Consent, Visit};
pub use kept::{MemoryTokens, TokenStore};
pub use login::Login;
