//! Hidden values under keys, which the model never sees.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A hidden value. For other types, a plugin keeps the value itself and stores only its key here.
#[derive(Debug, Clone, PartialEq)]
pub enum HiddenValue {
    /// JSON.
    Json(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl HiddenValue {
    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            Self::Json(value) => value.to_string().len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// The hidden values of a session.
pub type HiddenValues = BTreeMap<String, HiddenValue>;

/// The last change of each hidden value. For removed values, only the key is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenChanges {
    last: HashMap<String, u64>,
    by_change: BTreeSet<(u64, String)>,
}

impl HiddenChanges {
    /// Returns true if a value exists or has existed.
    pub(crate) fn has_known(&self, key: &str) -> bool {
        self.last.contains_key(key)
    }

    pub(crate) fn record_change(&mut self, key: &str, change: u64) {
        if let Some(last) = self.last.insert(key.to_owned(), change) {
            self.by_change.remove(&(last, key.to_owned()));
        }
        self.by_change.insert((change, key.to_owned()));
    }

    /// Lists the keys of values that changed after a given change.
    pub(crate) fn keys_since(&self, change: u64) -> impl Iterator<Item = &str> {
        let later = self.by_change.range((change.saturating_add(1), String::new())..);
        later.map(|(_, key)| key.as_str())
    }
}
