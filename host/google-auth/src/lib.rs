//! Tokens for Google's servers, from the user's credentials: a credentials file, the file of
//! `gcloud`, or the account of the machine on which jaato runs.
//!
//! The order is that of Google's own libraries ("application default credentials"). If a named file
//! is broken, that is an error, and no other source is tried. A service account signs its tokens
//! itself, without a server. All other tokens are requested from a server, and kept until a few
//! minutes before they expire.
//!
//! Invariants:
//! - No `Debug` and no error shows a token, a key or the content of a file.
//! - Servers that a file names are contacted only over https, or on loopback.
//!
//! ```
//! use jaato_google_auth::{TokenMinter, GoogleCredentialSources};
//!
//! let places = GoogleCredentialSources { metadata: None, ..GoogleCredentialSources::default() };
//! assert_eq!(TokenMinter::new(places).used_file(), None);
//! ```

mod credential_sources;
mod exchange;
mod file;
mod jwt;
mod metadata;
mod minter;
mod token;

pub use credential_sources::{CredentialsFile, GoogleCredentialSources};
pub use minter::TokenMinter;
pub use token::AccessToken;
