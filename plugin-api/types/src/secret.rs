//! The services `secret.*`: a plugin's own secrets, such as a token from a login.
//!
//! The system's secret store keeps them, if there is one, otherwise a file that only the user can
//! read. Values cross as bytes, never as JSON, so that they are not logged. The services need the
//! grant `secret`. For a provider's API key, use credentials, which the plugin never sees.

use serde::{Deserialize, Serialize};

/// Reads a secret. Takes a [`SecretName`], returns a [`SecretFound`] with the value as bytes in the
/// same frame.
pub const GET: &str = "secret.get";
/// Stores a secret and replaces an existing value. Takes a [`SecretName`] with the value as bytes
/// in the same frame, returns a [`SecretKept`].
pub const SET: &str = "secret.set";
/// Deletes a secret. Takes a [`SecretName`], returns a [`SecretForgotten`].
pub const DELETE: &str = "secret.delete";

/// The maximum number of secrets of a plugin.
pub const SECRETS_MAX: usize = 64;
/// The maximum length of a name, in bytes.
pub const NAME_BYTES_MAX: usize = 100;
/// The maximum size of a secret, in bytes. It is enough for a private key or a long token.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;

/// The name of a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretName {
    /// The name: 1 to [`NAME_BYTES_MAX`] bytes of text without control characters.
    pub name: String,
}

/// Whether a secret exists.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretFound {
    /// Whether the secret exists.
    pub found: bool,
}

impl SecretFound {
    /// Creates an answer. Only the host needs this.
    pub fn new(found: bool) -> Self {
        Self { found }
    }
}

/// The place where a secret is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretKept {
    /// Whether the system's secret store holds it. Otherwise it is in a file that only the user can
    /// read.
    pub by_system: bool,
}

impl SecretKept {
    /// Creates an answer. Only the host needs this.
    pub fn new(by_system: bool) -> Self {
        Self { by_system }
    }
}

/// Whether a deleted secret existed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretForgotten {
    /// Whether the secret existed.
    pub deleted: bool,
}

impl SecretForgotten {
    /// Creates an answer. Only the host needs this.
    pub fn new(deleted: bool) -> Self {
        Self { deleted }
    }
}
