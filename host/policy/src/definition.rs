//! The definition of another program's tool. A user's answer about the tool holds while this stays
//! the same.

use std::fmt;
use std::str::FromStr;

use jaato_types::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{JsonDigest, PluginSource};

/// The digests of another program's description of its tool, and of the entry that names the
/// program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDefinition {
    origin: JsonDigest,
    description: JsonDigest,
    parameters: JsonDigest,
}

impl ToolDefinition {
    /// Digests the definition of a tool. Returns `None` unless a shipped plugin passes the tool on.
    pub fn from_spec(spec: &ToolSpec, source: PluginSource) -> Option<Self> {
        let text = |text: &str| JsonDigest::from_json(&Value::from(text));
        (source == PluginSource::Relayed).then(|| Self {
            origin: text(&spec.origin),
            description: text(&spec.description),
            parameters: JsonDigest::from_json(&spec.parameters),
        })
    }

    /// Lists the parts that differ from `now`, such as `its description`.
    pub(crate) fn changed_parts(&self, now: &Self) -> Vec<&'static str> {
        let parts = [
            ("the server's entry", self.origin != now.origin),
            ("its description", self.description != now.description),
            ("its arguments", self.parameters != now.parameters),
        ];
        parts.into_iter().filter_map(|(name, is_changed)| is_changed.then_some(name)).collect()
    }
}

/// Formats the three digests with `:` between them, as rules in files contain them.
impl fmt::Display for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.origin, self.description, self.parameters)
    }
}

impl FromStr for ToolDefinition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let [origin, description, parameters] = parts.as_slice() else {
            return Err("a definition has three digests with `:` between them");
        };
        Ok(Self {
            origin: origin.parse()?,
            description: description.parse()?,
            parameters: parameters.parse()?,
        })
    }
}
