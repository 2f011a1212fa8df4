//! The services `secret.*`: secrets of a plugin's own, such as a token that a person logged in for.
//!
//! They lie in the system's tool for secrets where there is one, else in a file that only the
//! person can read. Values cross as bytes, never as JSON, so that nothing logs them. The grant
//! `secret` is needed. For the key of a provider there are credentials, which the plugin never
//! sees.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ secret_operations, Some("secret"), answered;
    /// Reads a secret.
    get GET "secret.get": SecretName => SecretFound + bytes;
    /// Keeps the bytes as a secret, and replaces an earlier one.
    set SET "secret.set": SecretName + bytes => SecretKept;
    /// Deletes a secret. Returns false if there was none.
    delete DELETE "secret.delete": SecretName => SecretForgotten,
        sdk [{ name: &str }.deleted: bool];
}

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

crate::operations::made_by_host!(SecretFound(found: bool));

/// Where a secret is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretKept {
    /// Whether the system's tool has it; else it lies in a file that only the person can read.
    pub by_system: bool,
}

crate::operations::made_by_host!(SecretKept(by_system: bool));

/// Whether there was such a secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretForgotten {
    /// Whether there was one.
    pub deleted: bool,
}

crate::operations::made_by_host!(SecretForgotten(deleted: bool));
