//! The hidden part: values under keys that the model never sees.

use std::collections::BTreeMap;

use serde_json::Value;

/// A hidden value. What cannot be one of these stays in its plugin, under a key that it keeps here.
#[derive(Debug, Clone, PartialEq)]
pub enum HiddenValue {
    /// JSON.
    Json(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl HiddenValue {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Json(value) => value.to_string().len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The hidden values of a session.
pub type Hidden = BTreeMap<String, HiddenValue>;
