//! Filters for a tool's items: by their exact metadata, or by the value of one metadata key.

use jaato_types::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use crate::EnvironmentItem;
use crate::item::{is_same_json, is_same_map};

/// A filter for items.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemFilter {
    /// The whole metadata.
    Metadata(Map<String, Value>),
    /// A key of the metadata.
    Key {
        /// The key.
        key: String,
        /// The value. Null matches only null, not a missing key.
        value: Value,
    },
}

impl ItemFilter {
    /// Creates a filter for one key.
    pub fn key(key: impl Into<String>, value: Value) -> Self {
        Self::Key { key: key.into(), value }
    }

    /// Creates a filter from a request: the whole metadata, or a key with a value. Returns `None`
    /// if nothing is given.
    ///
    /// # Errors
    /// Kind `invalid_arguments` if both are given, or if only one of key and value is given.
    pub fn from_request(
        metadata: Option<Map<String, Value>>,
        key: Option<String>,
        value: Option<Value>,
    ) -> Result<Option<Self>> {
        match (metadata, key, value) {
            (None, None, None) => Ok(None),
            (Some(metadata), None, None) => Ok(Some(Self::Metadata(metadata))),
            (None, Some(key), Some(value)) => Ok(Some(Self::Key { key, value })),
            (Some(_), _, _) => Err(filter_error("both `metadata` and a key of it")),
            (None, Some(_), None) => Err(filter_error("`metadata_key` without `metadata_value`")),
            (None, None, Some(_)) => Err(filter_error("`metadata_value` without `metadata_key`")),
        }
    }

    pub(crate) fn is_match(&self, item: &EnvironmentItem) -> bool {
        match self {
            Self::Metadata(metadata) => is_same_map(metadata, &item.metadata),
            Self::Key { key, value } => {
                item.metadata.get(key).is_some_and(|found| is_same_json(found, value))
            }
        }
    }
}

impl std::fmt::Display for ItemFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Metadata(metadata) => write!(f, "metadata {}", Value::Object(metadata.clone())),
            Self::Key { key, value } => write!(f, "`{key}` = {value} in its metadata"),
        }
    }
}

fn filter_error(what: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, format!("a filter has {what}"))
        .with_hint("give `metadata`, or `metadata_key` with `metadata_value`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn item_filter_is_complete_metadata_or_one_key_with_value() {
        let map = || Some(Map::new());
        let key = || Some("k".to_owned());
        assert_eq!(ItemFilter::from_request(None, None, None), Ok(None));
        assert_eq!(
            ItemFilter::from_request(map(), None, None),
            Ok(Some(ItemFilter::Metadata(Map::new())))
        );
        let null = ItemFilter::key("k", Value::Null);
        assert_eq!(ItemFilter::from_request(None, key(), Some(Value::Null)), Ok(Some(null)));
        for bad in [
            ItemFilter::from_request(map(), key(), Some(json!(1))),
            ItemFilter::from_request(map(), key(), None),
            ItemFilter::from_request(None, key(), None),
            ItemFilter::from_request(None, None, Some(json!(1))),
        ] {
            assert_eq!(bad.unwrap_err().kind, ErrorKind::InvalidArguments);
        }
    }

    #[test]
    fn null_metadata_differs_from_missing_metadata() {
        let item = |metadata: Value| EnvironmentItem {
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            ..EnvironmentItem::default()
        };
        let null = ItemFilter::key("k", Value::Null);
        assert!(null.is_match(&item(json!({ "k": null, "l": 1 }))));
        assert!(!null.is_match(&item(json!({ "l": 1 }))));
        assert!(ItemFilter::key("k", json!(2)).is_match(&item(json!({ "k": 2.0 }))));
        let whole = ItemFilter::Metadata(Map::from_iter([("k".to_owned(), json!([1]))]));
        assert!(whole.is_match(&item(json!({ "k": [1] }))));
        assert!(!whole.is_match(&item(json!({ "k": [1], "l": 1 }))));
    }
}
