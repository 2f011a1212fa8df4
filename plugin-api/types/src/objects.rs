//! The service `objects`: what tools put in front of the model across a session, and what they keep
//! hidden.
//!
//! Items are grouped by tool; an item has objects and the metadata that they have in common. A
//! filter is the whole metadata, or one of its keys with a value; both match exactly.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{Result as Answer, to_object};

crate::operations::service_operations! { $ object_operations, None, passed_on;
    /// Adds a result for the model and shows it to the readers of the session's events.
    result RESULT "objects.result": ObjectsAdd => ObjectsChanged;
    /// Adds objects and shows them to the model only.
    add ADD "objects.add": ObjectsAdd => ObjectsChanged;
    /// Adds objects to the first item that matches.
    append APPEND "objects.append": ObjectsChange => ObjectsChanged;
    /// Reads a tool's items. The request has no filter.
    get GET "objects.get": ObjectsFilter => ItemsFound;
    /// Reads the objects of all items that match.
    get_objects GET_OBJECTS "objects.get_objects": ObjectsFilter => ObjectsFound;
    /// Replaces the objects of every item that matches.
    replace REPLACE "objects.replace": ObjectsChange => ObjectsChanged;
    /// Removes the objects of every item that matches.
    remove REMOVE "objects.remove": ObjectsFilter => ObjectsChanged;
    /// Asks whether a tool, or the session if no tool is named, has no objects.
    is_empty IS_EMPTY "objects.is_empty": ObjectsFilter => ObjectsEmpty;
    /// Lists the tools that have items, with their number. `get` reads the items of each. An
    /// untrusted plugin sees its own tools. The error is `limit_reached` if the list is too large.
    tools TOOLS "objects.tools": () => ToolsFound, sdk [().tools: Vec<ToolObjects>];
    /// Removes the objects of all tools. Items stay, with their metadata. The hidden values are
    /// removed if the request says so. An untrusted plugin clears its own. The error is
    /// `unavailable` outside of tools and commands.
    clear CLEAR "objects.clear": ObjectsClear => ObjectsChanged, sdk [(ObjectsClear)];
    /// Lists the keys of hidden values. The error is `limit_reached` if the list is too large.
    hidden_keys HIDDEN_KEYS "objects.hidden_keys": () => HiddenKeys, sdk [().keys: Vec<String>];
    /// Reads a hidden value.
    hidden HIDDEN_GET "objects.hidden_get": HiddenKey => HiddenFound + bytes;
    /// Sets or removes a hidden value. The answer has the value that was there.
    set_hidden HIDDEN_SET "objects.hidden_set": HiddenSet + bytes => HiddenFound + bytes;
}

/// A JSON object that a tool put in front of the model.
pub type Object = Map<String, Value>;

/// The key under which each object carries its reference, which the host gives it.
pub const REFERENCE_KEY: &str = "_REF_ID";

/// Objects of one tool with the metadata that they have in common.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentItem {
    /// What the tool calls this result, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What holds for all of the objects: the collection that was asked, the words that were
    /// searched for.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// The objects, in the order in which they came. Empty once they were removed.
    pub objects: Vec<Object>,
}

/// Objects to be added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsAdd {
    /// Under which tool; the one that is running where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the tool calls the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The objects.
    pub objects: Vec<Object>,
    /// What they have in common.
    pub metadata: Map<String, Value>,
    /// Whether an object is stored again that says what one says which the item had before. Equal
    /// objects of one addition are several in any case.
    pub include_duplicates: bool,
    /// How a result is shown: `table`, `document`, whatever clients know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_type: Option<String>,
    /// A result in words, for clients that know no better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Which fields clients are shown of a result, and as what: their name to the object's key.
    /// Without it they are shown whole. The model sees them whole in any case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mapping: BTreeMap<String, String>,
}

impl ObjectsAdd {
    /// Returns an object as clients are shown it: with its reference, and of its fields those that
    /// are mapped and there.
    pub fn mapped(&self, object: &Object) -> Object {
        if self.mapping.is_empty() {
            return object.clone();
        }
        let own = self.mapping.iter().map(|(shown, key)| (shown.as_str(), key.as_str()));
        let fields = own.chain([(REFERENCE_KEY, REFERENCE_KEY)]);
        fields
            .filter_map(|(shown, key)| Some((shown.to_owned(), object.get(key)?.clone())))
            .collect()
    }

    /// Makes it of objects and what they have in common, each written as `json!({…})`.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no object.
    pub fn of<O: Into<Value>>(
        objects: impl IntoIterator<Item = O>,
        metadata: impl Into<Value>,
    ) -> Answer<Self> {
        let objects = objects.into_iter().map(to_object).collect::<Answer<_>>()?;
        Ok(Self { objects, metadata: to_object(metadata)?, ..Self::default() })
    }
}

/// Which items are meant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsFilter {
    /// Of which tool; the one that is running where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The whole metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// One key of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_key: Option<String>,
    /// The key's value, which may be null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub metadata_value: Option<Value>,
}

/// Objects for items that are there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsChange {
    /// Which items.
    #[serde(flatten)]
    pub filter: ObjectsFilter,
    /// The objects.
    pub objects: Vec<Object>,
}

/// What a change did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsChanged {
    /// How many items it met.
    pub matched: usize,
    /// The references of the objects that were given, in their order; of one that was there before,
    /// that one's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
}

/// A tool's items.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ItemsFound {
    /// None where the tool never put one there.
    pub items: Option<Vec<EnvironmentItem>>,
}

/// Objects that were found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsFound {
    /// None where no item matches.
    pub objects: Option<Vec<Object>>,
}

/// Whether there are objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsEmpty {
    /// Items without an object count as none.
    pub is_empty: bool,
}

/// The tools that have items.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolsFound {
    /// In the order in which they first put something there.
    pub tools: Vec<ToolObjects>,
}

/// What one tool has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolObjects {
    /// The tool.
    pub tool: String,
    /// How many items.
    pub items: usize,
    /// How many objects in all of them.
    pub objects: usize,
}

crate::operations::made_by_host!(ToolObjects(tool: impl Into<String>, items: usize, objects: usize));

/// What is to be taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectsClear {
    /// Whether the hidden values go, too.
    pub hidden: bool,
}

/// Keys of hidden values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenKeys {
    /// By name. A plugin that is not trusted sees its own.
    pub keys: Vec<String>,
}

/// A hidden value's key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenKey {
    /// The key. All trusted plugins of a session share them; one that is not trusted has its own.
    pub key: String,
}

/// A hidden value to be kept; none is taken away.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenSet {
    /// The key.
    pub key: String,
    /// The value.
    #[serde(flatten)]
    pub value: HiddenForm,
}

/// A hidden value that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenFound {
    /// The value.
    #[serde(flatten)]
    pub value: HiddenForm,
}

/// What a hidden value is: JSON, bytes, or none of both where there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HiddenForm {
    /// JSON, which may be null.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub json: Option<Value>,
    /// The bytes behind this JSON.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bytes: bool,
}

/// Tells null from what is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_of_null_is_one() {
        let read = |json: Value| serde_json::from_value::<ObjectsFilter>(json).unwrap();
        let filter = read(json!({ "metadata_key": "k", "metadata_value": null }));
        assert_eq!(filter.metadata_value, Some(Value::Null));
        assert_eq!(read(json!({ "metadata_key": "k" })).metadata_value, None);
        assert_eq!(json!(filter), json!({ "metadata_key": "k", "metadata_value": null }));
    }

    #[test]
    fn a_mapping_says_what_clients_are_shown() {
        let mut added =
            ObjectsAdd::of([json!({ "a": 1, "b": 2, "_REF_ID": "t_1" })], json!({})).unwrap();
        let object = added.objects[0].clone();
        assert_eq!(added.mapped(&object), object, "whole without one");
        added.mapping =
            [("title", "a"), ("missing", "c")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(Value::Object(added.mapped(&object)), json!({ "title": 1, "_REF_ID": "t_1" }));
    }

    #[test]
    fn a_change_is_a_filter_with_objects() {
        let json = json!({ "tool": "t", "metadata": { "m": 1 }, "objects": [{ "a": 1 }] });
        let change: ObjectsChange = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(change.filter.tool.as_deref(), Some("t"));
        assert_eq!(json!(change), json);
    }
}
