//! The services `secret.*`: secrets of a plugin's own, such as a token that a person logged in for.
//!
//! They lie in the system's tool for secrets where there is one, else in a file that only the
//! person can read. Values cross as bytes, never as JSON, so that nothing logs them. The grant
//! `secret` is needed. For the key of a provider there are credentials, which the plugin never
//! sees.

use serde::{Deserialize, Serialize};

/// Reads a secret: [`SecretName`], [`SecretFound`] with the value as bytes beside it.
pub const GET: &str = "secret.get";
/// Keeps the bytes beside the request, in place of what was there: [`SecretName`], [`SecretKept`].
pub const SET: &str = "secret.set";
/// Forgets a secret: [`SecretName`], [`SecretForgotten`].
pub const DELETE: &str = "secret.delete";

/// Most secrets of a plugin.
pub const SECRETS_MAX: usize = 64;
/// Most bytes of a name.
pub const NAME_BYTES_MAX: usize = 100;
/// Most bytes of a secret: a private key, a long token.
pub const VALUE_BYTES_MAX: usize = 16 * 1024;

/// Names a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretName {
    /// 1 to [`NAME_BYTES_MAX`] bytes of text without control characters.
    pub name: String,
}

/// Whether there is such a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretFound {
    /// Whether there is one.
    pub found: bool,
}

impl SecretFound {
    /// Makes an answer; the host does.
    pub fn new(found: bool) -> Self {
        Self { found }
    }
}

/// Where a secret is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretKept {
    /// Whether the system's tool has it; else it lies in a file that only the person can read.
    pub by_system: bool,
}

impl SecretKept {
    /// Makes an answer; the host does.
    pub fn new(by_system: bool) -> Self {
        Self { by_system }
    }
}

/// Whether there was such a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretForgotten {
    /// Whether there was one.
    pub deleted: bool,
}

impl SecretForgotten {
    /// Makes an answer; the host does.
    pub fn new(deleted: bool) -> Self {
        Self { deleted }
    }
}
