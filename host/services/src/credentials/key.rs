//! A key: where its text is, and how it is added to a request.

use std::fmt;

use jaato_google_auth::{Minter, Token};
use jaato_types::Error;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(super) String);

impl Secret {
    /// Hands out the text; only for what is sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

/// How a secret is added to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer SECRET`.
    Bearer,
    /// A header of this name.
    Header(String),
    /// A parameter of the query of this name.
    Query(String),
}

/// A key, and how and where it goes.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) secret: KeySource,
    pub(super) scheme: Scheme,
    pub(super) place: String,
    pub(super) whose: Whose,
}

/// Where the text of a key is.
#[derive(Debug)]
pub(super) enum KeySource {
    Here(Secret),
    /// What a line of the shell prints, once it was run.
    Printed {
        line: String,
        secret: OnceCell<Secret>,
    },
    /// What is minted from Google's credentials, and again before it ends.
    Minted {
        minter: Box<Minter>,
        last: Mutex<Option<Result<Token, Error>>>,
    },
}

impl KeySource {
    pub(super) fn known(&self) -> Option<Secret> {
        match self {
            Self::Here(secret) => Some(secret.clone()),
            Self::Printed { secret, .. } => secret.get().cloned(),
            Self::Minted { .. } => self.minted()?.ok().map(|token| Secret(token.text)),
        }
    }

    /// The last token that was minted, or why there is none.
    pub(super) fn minted(&self) -> Option<Result<Token, Error>> {
        let Self::Minted { last, .. } = self else { return None };
        last.lock().clone()
    }
}

/// Who says where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Persons,
    Workspaces,
}
