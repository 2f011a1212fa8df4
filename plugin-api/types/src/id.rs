//! Names and ids as distinct types, so that a tool's name cannot be used as a plugin's.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Creates a value from a text without validating it. Code that reads it from outside
            /// must validate it first.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

id! {
    /// The name by which a model calls a tool: `^[a-zA-Z0-9_-]{1,64}$`, the strictest format that
    /// providers require.
    ToolName
}
id! {
    /// A plugin's name, as in its folder and manifest: `tool-environment`.
    PluginName
}
id! {
    /// The id of one tool call, unique within its session.
    CallId
}
id! {
    /// The id of a session.
    SessionId
}
id! {
    /// The name of a model for users: `provider/model`.
    ModelId
}

impl ToolName {
    /// The maximum length of a name, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// Returns true if every provider accepts the name.
    pub fn is_valid(&self) -> bool {
        is_plain(&self.0, Self::BYTES_MAX)
    }
}

impl PluginName {
    /// The maximum length of a name, in bytes.
    pub const BYTES_MAX: usize = 64;

    /// Returns true if the name is valid in paths, lists and configuration keys.
    pub fn is_valid(&self) -> bool {
        is_plain(&self.0, Self::BYTES_MAX)
            && self.0.starts_with(|c: char| c.is_ascii_alphanumeric())
    }

    /// Returns the name without its kind, as in an event's `source`: `environment` for
    /// `tool-environment`.
    pub fn source(&self) -> &str {
        ["tool-", "gc-", "provider-", "environment-", "hook-"]
            .iter()
            .find_map(|kind| self.0.strip_prefix(kind))
            .filter(|rest| !rest.is_empty())
            .unwrap_or(&self.0)
    }
}

impl ModelId {
    /// Splits `provider/model` at the first slash. Returns `None` if the slash is missing or a side
    /// is empty.
    pub fn split(&self) -> Option<(&str, &str)> {
        self.0.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty())
    }
}

fn is_plain(text: &str, bytes_max: usize) -> bool {
    !text.is_empty()
        && text.len() <= bytes_max
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_source_is_the_name_without_its_kind() {
        assert_eq!(PluginName::from("tool-environment").source(), "environment");
        assert_eq!(PluginName::from("moon").source(), "moon");
        assert_eq!(PluginName::from("tool-").source(), "tool-");
    }

    #[test]
    fn names_that_some_provider_refuses_are_not_valid() {
        assert!(ToolName::new("a".repeat(64)).is_valid());
        for bad in ["", "a b", "a.b", "é", &"a".repeat(65)] {
            assert!(!ToolName::from(bad).is_valid(), "{bad}");
        }
        assert!(!PluginName::from("-x").is_valid());
        assert!(!PluginName::from("../x").is_valid());
    }
}
