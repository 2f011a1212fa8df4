//! The services `secret.*`: a plugin's own secrets, such as a token from a login.
//!
//! The system's secret store keeps them, if there is one, otherwise a file that only the user can
//! read. Values cross as bytes, never as JSON, so that they are not logged. The services need the
//! grant `secret`. For a provider's API key, use credentials, which the plugin never sees.

use serde::{Deserialize, Serialize};

crate::operations::service_operations! { $ secret_operations, Some("secret"), answered;
    /// Reads a secret.
    get GET "secret.get": SecretName => SecretGetAnswer + bytes;
    /// Stores the bytes as a secret and replaces an existing value.
    set SET "secret.set": SecretName + bytes => SecretSetAnswer;
    /// Deletes a secret. Returns false if it does not exist.
    delete DELETE "secret.delete": SecretName => SecretDeleteAnswer,
        sdk [{ name: &str }.deleted: bool];
}

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
pub struct SecretGetAnswer {
    /// Whether the secret exists.
    pub found: bool,
}

crate::operations::made_by_host!(SecretGetAnswer(found: bool));

/// The place where a secret is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretSetAnswer {
    /// Whether the system's secret store holds it. Otherwise it is in a file that only the user can
    /// read.
    pub by_system: bool,
}

crate::operations::made_by_host!(SecretSetAnswer(by_system: bool));

/// Whether a deleted secret existed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SecretDeleteAnswer {
    /// Whether the secret existed.
    pub deleted: bool,
}

crate::operations::made_by_host!(SecretDeleteAnswer(deleted: bool));
