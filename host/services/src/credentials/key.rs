//! A key: the source of its text, and how it is added to a request.

use std::fmt;

use jaato_google_auth::{AccessToken, TokenMinter};
use jaato_types::Error;
use parking_lot::Mutex;
use tokio::sync::OnceCell;

/// A text that is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySecret(pub(super) String);

impl KeySecret {
    /// Returns the text, only for use in a request.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

/// How a secret is added to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretScheme {
    /// `Authorization: Bearer SECRET`.
    Bearer,
    /// A header with this name.
    Header(String),
    /// A query parameter with this name.
    Query(String),
}

/// A key, and how and where it is sent.
#[derive(Debug)]
pub(super) struct ConfiguredKey {
    pub(super) secret: KeySource,
    pub(super) scheme: SecretScheme,
    pub(super) place: String,
    pub(super) whose: KeyConfigurer,
}

/// The source of a key's text.
#[derive(Debug)]
pub(super) enum KeySource {
    Here(KeySecret),
    /// The output of a shell command, once it has run.
    Printed {
        line: String,
        secret: OnceCell<KeySecret>,
    },
    /// A token minted from Google credentials, and minted again before it expires.
    Minted {
        minter: Box<TokenMinter>,
        last: Mutex<Option<Result<AccessToken, Error>>>,
    },
}

impl KeySource {
    pub(super) fn available_secret(&self) -> Option<KeySecret> {
        match self {
            Self::Here(secret) => Some(secret.clone()),
            Self::Printed { secret, .. } => secret.get().cloned(),
            Self::Minted { .. } => self.minted_token()?.ok().map(|token| KeySecret(token.text)),
        }
    }

    /// Returns the last minted token, or why there is none.
    pub(super) fn minted_token(&self) -> Option<Result<AccessToken, Error>> {
        let Self::Minted { last, .. } = self else { return None };
        last.lock().clone()
    }
}

/// Who configured a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyConfigurer {
    Persons,
    Workspaces,
}
