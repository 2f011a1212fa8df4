//! Tokens for Google's servers, from what a person has: a file of credentials, what `gcloud` keeps,
//! or the account of the machine on which jaato runs.
//!
//! The order is that of Google's own libraries ("application default credentials"). A file that is
//! named and broken is an error: nothing else is tried then. A service account signs its tokens
//! itself, so that no server is asked; all others are asked for at a server, and kept until a few
//! minutes before they expire.
//!
//! Invariants:
//! - No `Debug` and no error shows a token, a key or what a file holds.
//! - What a file names is asked over https, or on loopback, alone.
//!
//! ```
//! use jaato_google_auth::{Minter, Places};
//!
//! let places = Places { metadata: None, ..Places::default() };
//! assert_eq!(Minter::new(places).found(), None);
//! ```

mod exchange;
mod file;
mod jwt;
mod metadata;
mod minter;
mod places;
mod token;

pub use minter::Minter;
pub use places::{Named, Places};
pub use token::Token;
