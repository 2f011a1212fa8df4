//! The manifest: facts embedded in a plugin file, readable without running the plugin.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::PluginName;

/// The plugin-api version of this build. A plugin's manifest contains the version with which it was
/// built.
pub const API_VERSION: &str = "1.0.0";

/// The maximum size of a manifest, in bytes. It holds only a few names, so a larger one means that
/// the file is broken.
pub const MANIFEST_BYTES_MAX: usize = 16 * 1024;

/// The facts that a plugin file states about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub v: u32,
    /// The plugin's name, which is the name of its crate: `tool-environment`.
    pub name: PluginName,
    /// The plugin's own version.
    pub version: String,
    /// The plugin-api version with which it was built: `1.0.0`.
    pub api: String,
    /// The kinds that it offers.
    pub kinds: Vec<PluginKind>,
    /// How many instances it needs.
    #[serde(default)]
    pub scope: PluginScope,
    /// Where it should run.
    #[serde(default)]
    pub isolation: Isolation,
    /// Variables that its worker needs in addition to the few that each process gets, each in one
    /// of the forms of [`WorkerVariable`](crate::WorkerVariable).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
}

/// A kind of functionality that a plugin offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginKind {
    /// Tools.
    Tool,
    /// Context garbage collection.
    Gc,
    /// A model provider.
    Provider,
    /// An execution environment.
    Environment,
    /// Hooks, which the host calls outside the plugin's own calls ([`hooks`](crate::hooks)).
    Hook,
    /// A kind from a newer version.
    #[serde(other)]
    Unknown,
}

/// How many instances a plugin needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PluginScope {
    /// One per host process, for example for a loaded model. It can access a session only through
    /// the context of a call.
    Host,
    /// One per session.
    #[default]
    #[serde(other)]
    Session,
}

/// Where a plugin should run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// In the host's process, if the plugin is trusted.
    #[default]
    InProcess,
    /// In a worker, even if the plugin is trusted (a native runtime, much memory). An unknown word
    /// from a newer version means this as well, because it asks for isolation.
    #[serde(other)]
    Worker,
}

/// Why bytes are not a valid manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManifestError {
    /// The manifest is larger than [`MANIFEST_BYTES_MAX`].
    TooLarge(usize),
    /// The JSON is malformed or of another type.
    Json(String),
    /// The name is not valid in paths and configuration keys.
    Name(String),
    /// The api version is not `major.minor.patch`.
    Api(String),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(has) => {
                write!(f, "its manifest has {has} bytes, at most {MANIFEST_BYTES_MAX} are allowed")
            }
            Self::Json(text) => write!(f, "its manifest cannot be read: {text}"),
            Self::Name(name) => write!(
                f,
                "its manifest names it `{name}`; a name is 1 to 64 of a-z, A-Z, 0-9, `-` and `_`"
            ),
            Self::Api(api) => {
                write!(f, "its manifest has the plugin-api version `{api}`, not `1.2.3`")
            }
        }
    }
}

impl std::error::Error for ManifestError {}

impl Manifest {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Parses a manifest. Trailing zero bytes are ignored.
    ///
    /// # Errors
    /// A [`ManifestError`] if the bytes are not a manifest with a valid name and version.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        if end > MANIFEST_BYTES_MAX {
            return Err(ManifestError::TooLarge(end));
        }
        let manifest: Self = serde_json::from_slice(&bytes[..end])
            .map_err(|error| ManifestError::Json(error.to_string()))?;
        if !manifest.name.is_valid() {
            return Err(ManifestError::Name(manifest.name.to_string()));
        }
        if manifest.api_version().is_none() {
            return Err(ManifestError::Api(manifest.api));
        }
        Ok(manifest)
    }

    /// Returns the major, minor and patch version of the plugin-api with which it was built.
    pub fn api_version(&self) -> Option<(u64, u64, u64)> {
        parse_version(&self.api)
    }
}

fn parse_version(text: &str) -> Option<(u64, u64, u64)> {
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    let version = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_refused(json: &str, expected: &str) {
        let error = Manifest::parse(json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn manifest_of_a_newer_version_can_be_read() {
        let json = r#"{"v":2,"name":"tool-moon","version":"0.1.0","api":"1.7.0",
            "kinds":["tool","telepathy"],"scope":"galaxy","isolation":"vault","colour":"blue"}"#;
        let manifest = Manifest::parse(&[json.as_bytes(), &[0; 9]].concat()).unwrap();
        assert_eq!(manifest.kinds, [PluginKind::Tool, PluginKind::Unknown]);
        assert_eq!((manifest.scope, manifest.isolation), (PluginScope::Session, Isolation::Worker));
        assert_eq!(manifest.api_version(), Some((1, 7, 0)));
    }

    #[test]
    fn invalid_manifest_is_refused_with_the_reason() {
        assert_refused("", "EOF while parsing");
        assert_refused("[]", "cannot be read");
        assert_refused(r#"{"v":1,"name":"../x","version":"","api":"1.0.0","kinds":[]}"#, "`../x`");
        assert_refused(r#"{"v":1,"name":"x","version":"","api":"1.0","kinds":[]}"#, "`1.0`");
        assert_refused(&" ".repeat(MANIFEST_BYTES_MAX + 1), "at most 16384");
    }
}
