//! The service `objects`: objects that tools add to the model's context across a session, and
//! values that they keep hidden from it.
//!
//! Items are grouped by tool. An item has objects and their common metadata. A filter is the whole
//! metadata, or one of its keys with a value. Both must match exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Result as Answer, to_object};

crate::operations::service_operations! { $ object_operations, None, passed_on;
    /// Adds a result to the model's context and shows it to the session's clients.
    result RESULT "objects.result": ObjectsAdd => ObjectsChangeAnswer;
    /// Adds objects for the model only, without showing them to clients.
    add ADD "objects.add": ObjectsAdd => ObjectsChangeAnswer;
    /// Adds objects to the first item that matches.
    append APPEND "objects.append": ObjectsChange => ObjectsChangeAnswer;
    /// Returns a tool's items. The request has no filter.
    get GET "objects.get": ObjectsFilter => ObjectItemsAnswer;
    /// Returns the objects of all items that match.
    get_objects GET_OBJECTS "objects.get_objects": ObjectsFilter => ObjectsAnswer;
    /// Replaces the objects of each item that matches.
    replace REPLACE "objects.replace": ObjectsChange => ObjectsChangeAnswer;
    /// Removes the objects of each item that matches.
    remove REMOVE "objects.remove": ObjectsFilter => ObjectsChangeAnswer;
    /// Checks whether a tool has no objects, or the session if the request names no tool. The
    /// request has no filter.
    is_empty IS_EMPTY "objects.is_empty": ObjectsFilter => ObjectsEmptyAnswer;
    /// Lists the tools that have items, with their number. Use `objects.get` to read the items of
    /// each tool. An untrusted plugin sees only its own tools. Fails with `limit_reached` if the
    /// list is too large.
    tools TOOLS "objects.tools": () => ObjectToolsAnswer, sdk [().tools: Vec<ToolObjects>];
    /// Removes the objects of all tools. Items stay, with their metadata. The request decides
    /// whether hidden values are removed too. An untrusted plugin clears only its own tools. Fails
    /// with `unavailable` outside tools and commands.
    clear CLEAR "objects.clear": ObjectsClear => ObjectsChangeAnswer, sdk [(ObjectsClear)];
    /// Lists the keys of hidden values. Fails with `limit_reached` if the list is too large.
    hidden_keys HIDDEN_KEYS "objects.hidden_keys": () => HiddenKeys, sdk [().keys: Vec<String>];
    /// Returns a hidden value.
    hidden HIDDEN_GET "objects.hidden_get": HiddenKey => HiddenValueAnswer + bytes;
    /// Sets or removes a hidden value, and returns the previous value.
    set_hidden HIDDEN_SET "objects.hidden_set": HiddenSet + bytes => HiddenValueAnswer + bytes;
}

/// A JSON object that a tool added to the model's context.
pub type Object = Map<String, Value>;

/// The key under which each object contains its reference, which the host assigns.
pub const REFERENCE_KEY: &str = "_REF_ID";

/// Objects of one tool with their common metadata.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentItem {
    /// The tool's name for this result, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Metadata that applies to all objects, such as the collection that was queried or the search
    /// terms.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The objects, in the order in which they were added. Empty after they were removed.
    pub objects: Vec<Object>,
}

/// A request to add objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsAdd {
    /// The tool to which the objects belong. If absent, the running tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool's name for the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Their common metadata.
    pub metadata: Map<String, Value>,
    /// Whether to store an object again that is equal to an existing object of the item. Equal
    /// objects within one request are always stored separately.
    pub include_duplicates: bool,
    /// The display format of a result: `table`, `document`, or any other word that clients know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_type: Option<String>,
    /// The result as text, for clients that cannot show the objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The fields that clients see, as a map from the displayed name to the object's key. If empty,
    /// clients see whole objects. The model always sees whole objects.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mapping: BTreeMap<String, String>,
}

impl ObjectsAdd {
    /// Returns an object as clients see it: with its reference, and with the mapped fields that it
    /// has.
    pub fn map_object(&self, object: &Object) -> Object {
        if self.mapping.is_empty() {
            return object.clone();
        }
        let own = self.mapping.iter().map(|(shown, key)| (shown.as_str(), key.as_str()));
        let fields = own.chain([(REFERENCE_KEY, REFERENCE_KEY)]);
        fields
            .filter_map(|(shown, key)| Some((shown.to_owned(), object.get(key)?.clone())))
            .collect()
    }

    /// Creates a request from objects and their common metadata, each written as `json!({…})`.
    ///
    /// # Errors
    /// `invalid_arguments` if a value is not an object.
    pub fn from_objects<O: Into<Value>>(
        objects: impl IntoIterator<Item = O>,
        metadata: impl Into<Value>,
    ) -> Answer<Self> {
        let objects = objects.into_iter().map(to_object).collect::<Answer<_>>()?;
        Ok(Self { objects, metadata: to_object(metadata)?, ..Self::default() })
    }
}

/// A filter for items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsFilter {
    /// The tool. If absent, the running tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The whole metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// A key of the metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_key: Option<String>,
    /// The key's value, which may be null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
    pub metadata_value: Option<Value>,
}

/// Objects for existing items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsChange {
    /// The filter for the items.
    #[serde(flatten)]
    pub filter: ObjectsFilter,
    /// The objects.
    pub objects: Vec<Object>,
}

/// The result of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsChangeAnswer {
    /// The number of items that matched.
    pub matched: usize,
    /// The references of the given objects, in order. For an object that already existed, the
    /// reference of the existing one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}

/// A tool's items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectItemsAnswer {
    /// The items. `None` if the tool never added any.
    pub items: Option<Vec<EnvironmentItem>>,
}

/// The objects of the matching items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsAnswer {
    /// The objects. `None` if no item matches.
    pub objects: Option<Vec<Object>>,
}

/// Whether no objects exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsEmptyAnswer {
    /// Whether no objects exist. Items without objects do not count.
    pub is_empty: bool,
}

/// The tools that have items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectToolsAnswer {
    /// The tools, in the order in which they first added objects.
    pub tools: Vec<ToolObjects>,
}

/// The number of items and objects of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolObjects {
    /// The tool.
    pub tool: String,
    /// The number of items.
    pub items: usize,
    /// The number of objects in all of them.
    pub objects: usize,
}

crate::operations::made_by_host!(ToolObjects(tool: impl Into<String>, items: usize, objects: usize));

/// A request to remove all objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsClear {
    /// Whether to remove the hidden values too.
    pub hidden: bool,
}

/// Keys of hidden values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenKeys {
    /// The keys, sorted. An untrusted plugin sees only its own.
    pub keys: Vec<String>,
}

/// A hidden value's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenKey {
    /// The key. All trusted plugins of a session share their keys. An untrusted plugin has its own.
    pub key: String,
}

/// A request to set a hidden value, or to remove it if it is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenSet {
    /// The key.
    pub key: String,
    /// The value.
    #[serde(flatten)]
    pub value: HiddenValueEncoding,
}

/// The result of a request for a hidden value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenValueAnswer {
    /// The value.
    #[serde(flatten)]
    pub value: HiddenValueEncoding,
}

/// The form of a hidden value: JSON, bytes, or neither if the key has no value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenValueEncoding {
    /// JSON, which may be null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
    pub json: Option<Value>,
    /// Whether the value is the bytes after this JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bytes: bool,
}

/// Distinguishes null from an absent value.
fn deserialize_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_metadata_value_differs_from_a_missing_one() {
        let read = |json: Value| serde_json::from_value::<ObjectsFilter>(json).unwrap();
        let filter = read(json!({ "metadata_key": "k", "metadata_value": null }));
        assert_eq!(filter.metadata_value, Some(Value::Null));
        assert_eq!(read(json!({ "metadata_key": "k" })).metadata_value, None);
        assert_eq!(json!(filter), json!({ "metadata_key": "k", "metadata_value": null }));
    }

    #[test]
    fn mapping_selects_the_fields_shown_to_clients() {
        let mut added =
            ObjectsAdd::from_objects([json!({ "a": 1, "b": 2, "_REF_ID": "t_1" })], json!({}))
                .unwrap();
        let object = added.objects[0].clone();
        assert_eq!(added.map_object(&object), object, "whole without one");
        added.mapping =
            [("title", "a"), ("missing", "c")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(
            Value::Object(added.map_object(&object)),
            json!({ "title": 1, "_REF_ID": "t_1" })
        );
    }

    #[test]
    fn objects_change_is_written_as_a_filter_with_objects() {
        let json = json!({ "tool": "t", "metadata": { "m": 1 }, "objects": [{ "a": 1 }] });
        let change: ObjectsChange = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(change.filter.tool.as_deref(), Some("t"));
        assert_eq!(json!(change), json);
    }
}
