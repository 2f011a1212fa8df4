//! The JSON format of the environment, for saving and restoring. It also reads the two known
//! versions of Elysia.
//!
//! The format is that of Elysia 0.3 with additions:
//!
//! ```text
//! {"v": 1,
//!  "environment": {TOOL: [{"name"?, "metadata", "objects": […]}]},
//!  "hidden_environment": {KEY: JSON},
//!  "hidden_bytes": {KEY: LENGTH},          in that order in the bytes after the JSON
//!  "last_references": {TOOL: NUMBER},
//!  "changes": NUMBER}                      how many there were; the next save continues the count
//! ```
//!
//! Version 0.2 has another level below the tool, with the result's name. It may have an entry
//! `SelfInfo`, which described that product to its model and is ignored.

use std::collections::HashSet;

use jaato_types::{Error, ErrorKind, Result};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use crate::hidden::HiddenValue;
use crate::item::object_reference;
use crate::{EnvironmentItem, ObjectEnvironment};

/// The version of the format.
pub(crate) const VERSION: u64 = 1;

/// The maximum number of changes and references that is accepted, so that counting further cannot
/// overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 53;

/// The entry in which version 0.2 describes itself to its model.
const SELF_INFO: &str = "SelfInfo";

impl ObjectEnvironment {
    /// Saves everything: JSON, and the bytes of hidden values.
    pub fn save(&self) -> (Value, Vec<u8>) {
        let mut bytes = Vec::new();
        let (mut hidden, mut lengths) = (Map::new(), Map::new());
        for (key, value) in &self.hidden {
            match value {
                HiddenValue::Json(value) => drop(hidden.insert(key.clone(), value.clone())),
                HiddenValue::Bytes(value) => {
                    lengths.insert(key.clone(), value.len().into());
                    bytes.extend_from_slice(value);
                }
            }
        }
        let last = self.tools.iter().map(|it| (it.tool.clone(), it.last_reference.into()));
        let json = json!({
            "v": VERSION,
            "environment": self.to_json(),
            "hidden_environment": hidden,
            "hidden_bytes": lengths,
            "last_references": last.collect::<Map<String, Value>>(),
            "changes": self.changes,
        });
        (json, bytes)
    }

    /// Returns everything that the model may see, by tool.
    pub fn to_json(&self) -> Value {
        let items = |shelf: &crate::shelf::ToolItems| -> Vec<Value> {
            shelf.items().iter().map(|placed| json!(placed.item)).collect()
        };
        let shelves = self.tools.iter();
        Value::Object(shelves.map(|it| (it.tool.clone(), items(it).into())).collect())
    }

    /// Returns the hidden values for users to inspect. For bytes, only their number.
    pub fn hidden_json(&self) -> Value {
        let shown = self.hidden.iter().map(|(key, value)| {
            let value = match value {
                HiddenValue::Json(value) => value.clone(),
                HiddenValue::Bytes(bytes) => json!({ "bytes": bytes.len() }),
            };
            (key.clone(), value)
        });
        Value::Object(shown.collect())
    }

    /// Restores the output of [`ObjectEnvironment::save`] or of Elysia. References are kept if they
    /// are unique within their tool.
    ///
    /// # Errors
    /// Kind `invalid_arguments` with the place of the mistake, or `limit_reached` if the limit is
    /// exceeded.
    pub fn restore(saved: &Value, bytes: &[u8]) -> Result<Self> {
        let Some(saved) = saved.as_object() else {
            return Err(invalid_state_error("it is not an object"));
        };
        if let Some(v) = saved.get("v").filter(|v| v.as_u64() != Some(VERSION)) {
            return Err(invalid_state_error(&format!("it has version {v}, expected {VERSION}")));
        }
        // All items count as changed at the time of the save.
        let saved_at = read_u64_field(saved, "changes")?.unwrap_or(0);
        let at = saved_at.max(1);
        let mut read = Self::default();
        for (tool, below) in read_map_field(saved, "environment")? {
            let last = saved.get("last_references").and_then(|it| it.get(tool)?.as_u64());
            read.restore_tool_items(tool, below, last.unwrap_or(0), at)?;
        }
        read.restore_hidden(saved, bytes, at)?;
        read.changes = read.changes.max(saved_at);
        Ok(read)
    }

    /// Reads hidden values in the format of [`ObjectEnvironment::save`].
    pub(crate) fn restore_hidden(
        &mut self,
        saved: &Map<String, Value>,
        bytes: &[u8],
        change: u64,
    ) -> Result<()> {
        for (key, value) in read_map_field(saved, "hidden_environment")? {
            self.put_hidden(key, Some(HiddenValue::Json(value.clone())), change)?;
        }
        let mut rest = bytes;
        for (key, length) in read_map_field(saved, "hidden_bytes")? {
            let length = length.as_u64().and_then(|length| usize::try_from(length).ok());
            let taken = length.and_then(|length| rest.split_at_checked(length));
            let Some((value, after)) = taken else {
                return Err(invalid_state_error(&format!(
                    "the bytes of the hidden value `{key}` are missing"
                )));
            };
            rest = after;
            self.put_hidden(key, Some(HiddenValue::Bytes(value.to_vec())), change)?;
        }
        Ok(())
    }

    fn restore_tool_items(
        &mut self,
        tool: &str,
        below: &Value,
        last: u64,
        revision: u64,
    ) -> Result<()> {
        let items = match below {
            Value::Object(_) if tool == SELF_INFO => Vec::new(),
            Value::Object(names) => {
                let mut all = Vec::new();
                for (name, items) in names {
                    let place = format!("{tool}.{name}");
                    all.extend(
                        read_items(&place, items)?
                            .into_iter()
                            .map(|item| EnvironmentItem { name: Some(name.clone()), ..item }),
                    );
                }
                all
            }
            items => read_items(tool, items)?,
        };
        if items.is_empty() {
            return Ok(());
        }
        let at = self.tool_index(tool);
        let mut known = HashSet::new();
        let given = items.iter().flat_map(|item| &item.objects).filter_map(object_reference);
        let number_of = |it: &str| it.strip_prefix(tool)?.strip_prefix('_')?.parse().ok();
        let is_too_great = |it: &str| number_of(it).is_some_and(|number: u64| number > COUNT_MAX);
        let numbers = given.filter_map(number_of).filter(|number| *number <= COUNT_MAX);
        self.tools[at].last_reference = numbers.fold(last.min(COUNT_MAX), u64::max);
        for EnvironmentItem { name, metadata, mut objects, .. } in items {
            for object in &mut objects {
                let is_kept = |it: &str| !is_too_great(it) && known.insert(it.to_owned());
                if !object_reference(object).is_some_and(is_kept) {
                    let taken = std::mem::take(object);
                    let (with, given) = self.tools[at].assign_reference(taken);
                    known.insert(given);
                    *object = with;
                }
            }
            let item = self.append_empty_item(at, name, metadata, revision);
            self.change_item(at, item, revision, |item| item.set_objects(objects, revision));
        }
        self.check_size(0, 0)
    }
}

/// Parses a list of items. An error contains the place of the mistake.
fn read_items(place: &str, items: &Value) -> Result<Vec<EnvironmentItem>> {
    let Some(items) = items.as_array() else {
        return Err(invalid_state_error(&format!("`{place}` is not a list of items")));
    };
    let read = |(index, item): (usize, &Value)| {
        let objects = item.get("objects").and_then(Value::as_array);
        let wrong = objects.and_then(|all| all.iter().position(|object| !object.is_object()));
        if let Some(object) = wrong {
            return Err(invalid_state_error(&format!(
                "`{place}[{index}].objects[{object}]` is not an object"
            )));
        }
        EnvironmentItem::deserialize(item)
            .map_err(|error| invalid_state_error(&format!("`{place}[{index}]`: {error}")))
    };
    items.iter().enumerate().map(read).collect()
}

/// Returns the number of changes under a key, if it exists.
pub(crate) fn read_u64_field(saved: &Map<String, Value>, key: &str) -> Result<Option<u64>> {
    let Some(number) = saved.get(key) else { return Ok(None) };
    let known = number.as_u64().filter(|number| *number <= COUNT_MAX);
    known.map(Some).ok_or_else(|| {
        invalid_state_error(&format!("its `{key}` is {number}, which is not a number of changes"))
    })
}

/// Returns the map under a key, or an empty one if the key is missing.
pub(crate) fn read_map_field<'a>(
    saved: &'a Map<String, Value>,
    key: &str,
) -> Result<&'a Map<String, Value>> {
    static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
    match saved.get(key) {
        None | Some(Value::Null) => Ok(EMPTY.get_or_init(Map::new)),
        Some(Value::Object(map)) => Ok(map),
        Some(_) => Err(invalid_state_error(&format!("its `{key}` is not an object"))),
    }
}

pub(crate) fn invalid_state_error(what: &str) -> Error {
    Error::new(
        ErrorKind::InvalidArguments,
        format!("this is not a saved object environment: {what}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemFilter, ObjectsAddition};

    fn to_object(value: Value) -> crate::Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn environment_survives_save_and_restore_without_reusing_references() {
        let mut store = ObjectEnvironment::default();
        let metadata = to_object(json!({ "m": 1 }));
        let objects = vec![to_object(json!({ "a": 1 })), to_object(json!({ "a": 2 }))];
        let named =
            ObjectsAddition { name: Some("n".into()), ..ObjectsAddition::new(objects, metadata) };
        store.add("t", named).unwrap();
        store
            .replace("t", vec![to_object(json!({ "a": 3 }))], &ItemFilter::key("m", json!(1)))
            .unwrap();
        store.set_hidden("k", Some(HiddenValue::Json(json!([1])))).unwrap();
        store.set_hidden("b", Some(HiddenValue::Bytes(vec![0, 255]))).unwrap();
        store.set_hidden("c", Some(HiddenValue::Bytes(vec![7]))).unwrap();
        let (json, bytes) = store.save();
        let text = json.to_string();
        let mut read = ObjectEnvironment::restore(&serde_json::from_str(&text).unwrap(), &bytes);
        let read = read.as_mut().unwrap();
        assert_eq!(read.save(), (json, bytes));
        let again =
            read.add("t", ObjectsAddition::new(vec![to_object(json!({}))], Default::default()));
        assert_eq!(again.unwrap().references, ["t_4"], "t_3 went with what replaced t_1 and t_2");
        assert_eq!(read.hidden_values()["b"], HiddenValue::Bytes(vec![0, 255]));
    }

    #[test]
    fn both_versions_of_elysia_are_read() {
        let three = json!({
            "environment": { "query": [{
                "metadata": { "collection_name": "pets" },
                "objects": [{ "animal": "frog", "_REF_ID": "query_0_0" }, { "animal": "toad" }],
            }] },
            "hidden_environment": { "items": [1, 2] },
        });
        let read = ObjectEnvironment::restore(&three, &[]).unwrap();
        let objects = read.get_objects("query", None).unwrap();
        assert_eq!(objects[0]["_REF_ID"], "query_0_0");
        assert_eq!(objects[1]["_REF_ID"], "query_1");
        assert_eq!(read.hidden_values()["items"], HiddenValue::Json(json!([1, 2])));
        let two = json!({
            "environment": {
                "SelfInfo": { "info": [{ "name": "Elysia" }] },
                "descriptor": { "animal_description": [
                    { "metadata": {}, "objects": [{ "animal": "frog" }] },
                    { "metadata": { "m": 1 }, "objects": [] },
                ], "empty": [] },
            },
        });
        let read = ObjectEnvironment::restore(&two, &[]).unwrap();
        let items = read.get("descriptor").unwrap();
        assert_eq!(items.len(), 2);
        assert_eq!(items[0].name.as_deref(), Some("animal_description"));
        assert_eq!(items[0].objects[0]["animal"], "frog");
        assert_eq!(read.get("SelfInfo"), None);
    }

    #[test]
    fn duplicate_references_are_renumbered_on_restore() {
        let same = json!({ "environment": { "a": [
            { "metadata": { "m": 1 }, "objects": [{ "x": 1, "_REF_ID": "a_7" }] },
            { "metadata": { "m": 2 }, "objects": [{ "x": 2, "_REF_ID": "a_7" }, { "x": 3, "_REF_ID": 4 }] },
        ] } });
        let read = ObjectEnvironment::restore(&same, &[]).unwrap();
        let objects = read.get_objects("a", None).unwrap();
        let references: Vec<_> = objects.iter().filter_map(object_reference).collect();
        assert_eq!(references, ["a_7", "a_8", "a_9"]);
    }

    #[test]
    fn invalid_saved_environment_is_refused_with_the_location() {
        let fine = json!({ "objects": [] });
        let wrong = json!({ "objects": [{}, {}, "x"] });
        for (value, what) in [
            (json!([]), "it is not an object"),
            (json!({ "v": 2 }), "it has version 2"),
            (json!({ "environment": [] }), "its `environment` is not an object"),
            (json!({ "environment": { "t": 1 } }), "`t` is not a list"),
            (json!({ "environment": { "t": [fine, {}] } }), "`t[1]`: missing field `objects`"),
            (
                json!({ "environment": { "t": [fine, wrong] } }),
                "`t[1].objects[2]` is not an object",
            ),
            (
                json!({ "environment": { "t": { "n": [wrong] } } }),
                "`t.n[0].objects[2]` is not an obj",
            ),
            (json!({ "environment": { "t": { "n": 1 } } }), "`t.n` is not a list"),
            (json!({ "environment": { "t": [{ "objects": 1 }] } }), "`t[0]`: invalid type"),
            (json!({ "hidden_bytes": { "k": 1 } }), "the bytes of the hidden value `k`"),
        ] {
            let error = ObjectEnvironment::restore(&value, &[]).unwrap_err();
            assert!(error.message.contains(what), "{value}: {error}");
        }
    }

    #[test]
    fn reference_above_the_count_limit_is_renumbered() {
        for great in [u64::MAX, COUNT_MAX + 1] {
            let (great, last) = (format!("t_{great}"), great);
            let objects = json!([{ "_REF_ID": great }, { "_REF_ID": "t_2" }]);
            let mut saved = json!({ "environment": { "t": [{ "objects": objects }] } });
            let read = ObjectEnvironment::restore(&saved, &[]).unwrap();
            let kept = read.get_objects("t", None).unwrap();
            let given: Vec<_> = kept.iter().filter_map(object_reference).collect();
            assert_eq!(given, ["t_3", "t_2"]);
            saved["last_references"] = json!({ "t": last });
            let mut read = ObjectEnvironment::restore(&saved, &[]).unwrap();
            let more = ObjectsAddition::new(vec![to_object(json!({ "a": 1 }))], Default::default());
            assert_eq!(read.add("t", more).unwrap().references, [format!("t_{}", COUNT_MAX + 2)]);
        }
    }
}
