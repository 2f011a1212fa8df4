//! Changes since a save, written and read back. Their size depends on the changes, not on the whole
//! environment. An append-only file stores an environment with them.
//!
//! ```text
//! {"v": 1, "from": NUMBER, "to": NUMBER,
//!  "environment": {TOOL: [{"at": PLACE, "name"?, "metadata"?, "keep"?: NUMBER, "objects": […]}]},
//!  "last_references": {TOOL: NUMBER},
//!  "hidden_environment": {KEY: JSON}, "hidden_bytes": {KEY: LENGTH}, "hidden_removed": [KEY]}
//! ```
//!
//! An item has an index among its tool's items. It keeps the first `keep` of its previous objects,
//! and `objects` follow. Only new items have a name and metadata, because these never change.

use std::collections::BTreeSet;

use jaato_types::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::hidden::HiddenValue;
use crate::item::object_reference;
use crate::json::{COUNT_MAX, VERSION, invalid_state_error, read_map_field, read_u64_field};
use crate::store::LastItemChange;
use crate::{Object, ObjectEnvironment};

/// The change of an item.
#[derive(Serialize, Deserialize)]
struct ItemChange {
    at: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    keep: usize,
    objects: Vec<Object>,
}

impl ObjectEnvironment {
    /// Returns the number of changes so far. Remember it at a save, to write later only what has
    /// changed since.
    pub fn change_count(&self) -> u64 {
        self.changes
    }

    /// Returns the changes after a number of changes, in the format of this module: JSON, and the
    /// bytes of hidden values. Returns `None` if there are none.
    pub fn changes_since(&self, from: u64) -> Option<(Value, Vec<u8>)> {
        if from >= self.changes {
            return None;
        }
        let (mut items, mut last) = (Map::new(), Map::new());
        for (at_shelf, at) in self.changed_since(from) {
            let shelf = &self.tools[at_shelf];
            let placed = &shelf.items()[at];
            let is_new = placed.made > from;
            let kept = placed.came.partition_point(|came| *came <= from);
            let keep = if placed.replaced > from { 0 } else { kept };
            let change = ItemChange {
                at,
                name: placed.item.name.clone().filter(|_| is_new),
                metadata: is_new.then(|| placed.item.metadata.clone()),
                keep,
                objects: placed.item.objects[keep..].to_vec(),
            };
            let of_tool = items.entry(shelf.tool.clone()).or_insert_with(|| json!([]));
            if let Some(of_tool) = of_tool.as_array_mut() {
                of_tool.push(json!(change));
            }
            last.insert(shelf.tool.clone(), shelf.last_reference.into());
        }
        let (mut hidden, mut lengths, mut removed) = (Map::new(), Map::new(), Vec::new());
        let mut bytes = Vec::new();
        let keys: BTreeSet<&str> = self.hidden_changes.keys_since(from).collect();
        for key in keys {
            match self.hidden.get(key) {
                None => removed.push(key),
                Some(HiddenValue::Json(value)) => {
                    hidden.insert(key.to_owned(), value.clone());
                }
                Some(HiddenValue::Bytes(value)) => {
                    lengths.insert(key.to_owned(), value.len().into());
                    bytes.extend_from_slice(value);
                }
            }
        }
        let json = json!({
            "v": VERSION,
            "from": from,
            "to": self.changes,
            "environment": items,
            "last_references": last,
            "hidden_environment": hidden,
            "hidden_bytes": lengths,
            "hidden_removed": removed,
        });
        Some((json, bytes))
    }

    /// Applies the output of [`ObjectEnvironment::changes_since`] to the state on which it is
    /// based.
    ///
    /// # Errors
    /// Kind `invalid_arguments` if the changes do not follow the current state or are malformed;
    /// `limit_reached` if they exceed the limit.
    pub fn with_changes(mut self, changes: &Value, bytes: &[u8]) -> Result<Self> {
        let Some(changes) = changes.as_object() else {
            return Err(invalid_state_error("a change is not an object"));
        };
        if changes.get("v").and_then(Value::as_u64) != Some(VERSION) {
            return Err(invalid_state_error(&format!(
                "a change has another version than {VERSION}"
            )));
        }
        let (from, to) = (read_u64_field(changes, "from")?, read_u64_field(changes, "to")?);
        let (Some(from), Some(to)) = (from, to) else {
            return Err(invalid_state_error("a change has no `from` or no `to`"));
        };
        if from != self.changes || to <= from {
            let has = self.changes;
            return Err(invalid_state_error(&format!(
                "a change from {from} to {to} does not follow {has}"
            )));
        }
        let last = read_map_field(changes, "last_references")?;
        for (tool, items) in read_map_field(changes, "environment")? {
            let of_tool = |error| invalid_state_error(&format!("a change of `{tool}`: {error}"));
            let items: Vec<ItemChange> = serde_json::from_value(items.clone()).map_err(of_tool)?;
            let shelf = self.tool_index(tool);
            let given = last.get(tool).and_then(Value::as_u64).unwrap_or(0).min(COUNT_MAX);
            self.tools[shelf].last_reference = self.tools[shelf].last_reference.max(given);
            for change in items {
                self.apply_change(shelf, change, to)?;
            }
        }
        self.restore_hidden(changes, bytes, to)?;
        let removed = changes.get("hidden_removed").and_then(Value::as_array);
        for key in removed.into_iter().flatten().filter_map(Value::as_str) {
            self.put_hidden(key, None, to)?;
        }
        self.changes = to;
        self.check_size(0, 0)?;
        Ok(self)
    }

    fn apply_change(&mut self, shelf: usize, change: ItemChange, to: u64) -> Result<()> {
        let ItemChange { at, name, metadata, keep, objects } = change;
        let items = self.tools[shelf].items();
        let kept = items.get(at).map_or(0, |placed| placed.item.objects.len());
        if at > items.len() || keep > kept {
            let tool = &self.tools[shelf].tool;
            return Err(invalid_state_error(&format!(
                "a change of `{tool}` refers to an item or object that is not there"
            )));
        }
        if at == items.len() {
            self.append_empty_item(shelf, name, metadata.unwrap_or_default(), to);
        }
        let mut fresh = Vec::with_capacity(objects.len());
        for object in objects {
            let has_reference = object_reference(&object).is_some();
            let tools = &mut self.tools[shelf];
            fresh.push(if has_reference { object } else { tools.assign_reference(object).0 });
        }
        self.change_item(shelf, at, to, |placed| {
            if keep < kept {
                let rest = placed.item.objects[..keep].to_vec();
                placed.set_objects(rest, to);
            }
            fresh.into_iter().for_each(|object| placed.push_object(object, to));
        });
        Ok(())
    }

    /// Lists the items that changed after a number of changes, by the indices of shelf and item.
    pub(crate) fn changed_since(&self, from: u64) -> BTreeSet<(usize, usize)> {
        let first = LastItemChange { at: from.saturating_add(1), shelf: 0, item: 0 };
        self.by_change.range(first..).map(|change| (change.shelf, change.item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemFilter, ObjectsAddition};

    fn to_object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    fn add_number_object(store: &mut ObjectEnvironment, tool: &str, of: u64, value: u64) {
        let metadata = to_object(json!({ "of": of }));
        store
            .add(tool, ObjectsAddition::new(vec![to_object(json!({ "value": value }))], metadata))
            .unwrap();
    }

    /// Returns a deterministic sequence of pseudo-random numbers.
    fn random_numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        }
    }

    /// Makes a change that depends on the numbers.
    fn make_random_change(store: &mut ObjectEnvironment, next: &mut impl FnMut(u64) -> u64) {
        let tool = ["a", "b"][usize::try_from(next(2)).unwrap()];
        let filter = ItemFilter::key("of", json!(next(4)));
        let some = vec![to_object(json!({ "value": next(9) })), to_object(json!({ "v": next(9) }))];
        let key = format!("k{}", next(3));
        // A change that matches nothing is refused without effect.
        match next(7) {
            0..=2 => add_number_object(store, tool, next(4), next(9)),
            3 => drop(store.append(tool, some, &filter)),
            4 => drop(store.replace(tool, some, &filter)),
            5 => drop(store.remove(tool, Some(&filter))),
            _ => {
                let value = [None, Some(HiddenValue::Json(json!(next(9))))];
                let bytes = Some(HiddenValue::Bytes(vec![7; usize::try_from(next(5)).unwrap()]));
                let [none, json] = value;
                let value = [none, json, bytes].into_iter().nth(usize::try_from(next(3)).unwrap());
                store.set_hidden(&key, value.flatten()).unwrap();
            }
        }
    }

    /// Recounts the size of everything, including the keys of removed hidden values.
    fn computed_size(store: &ObjectEnvironment) -> usize {
        let length = |value: Value| value.to_string().len();
        let items = store.tools.iter().flat_map(|shelf| shelf.items()).map(|placed| {
            let objects = placed.item.objects.iter().map(|object| length(json!(object)));
            length(json!(placed.item.metadata)) + objects.sum::<usize>()
        });
        let keys = store.hidden_changes.keys_since(0).map(str::len).sum::<usize>();
        items.sum::<usize>()
            + keys
            + store.hidden.values().map(HiddenValue::size_bytes).sum::<usize>()
    }

    #[test]
    fn saved_state_plus_changes_equals_the_current_state() {
        for seed in 0..200 {
            let mut next = random_numbers(seed);
            let mut store = ObjectEnvironment::default();
            (0..next(20)).for_each(|_| make_random_change(&mut store, &mut next));
            let (json, bytes) = store.save();
            let mut copy = ObjectEnvironment::restore(&json, &bytes).unwrap();
            for _ in 0..5 {
                let from = store.change_count();
                (0..next(6)).for_each(|_| make_random_change(&mut store, &mut next));
                let Some((json, bytes)) = store.changes_since(from) else {
                    assert_eq!(store.change_count(), from);
                    continue;
                };
                let text = json.to_string();
                copy = copy.with_changes(&serde_json::from_str(&text).unwrap(), &bytes).unwrap();
                assert_eq!(copy.save(), store.save(), "seed {seed}");
                assert_eq!(copy.size_bytes(), computed_size(&copy), "seed {seed}");
            }
            assert_eq!(store.size_bytes(), computed_size(&store), "seed {seed}");
            // All changes since the beginning also result in the complete state.
            let Some((json, bytes)) = store.changes_since(0) else { continue };
            let again = ObjectEnvironment::default().with_changes(&json, &bytes).unwrap();
            assert_eq!(again.save(), store.save(), "seed {seed}");
        }
    }

    #[test]
    fn added_object_is_the_only_content_of_the_change() {
        let mut store = ObjectEnvironment::default();
        (0..100).for_each(|value| add_number_object(&mut store, "a", 1, value));
        let from = store.change_count();
        add_number_object(&mut store, "a", 1, 100);
        let (json, _) = store.changes_since(from).unwrap();
        let expected = json!({ "a": [{
            "at": 0, "keep": 100, "objects": [{ "value": 100, "_REF_ID": "a_101" }],
        }] });
        assert_eq!(json["environment"], expected);
        assert_eq!(json["last_references"], json!({ "a": 101 }));
        add_number_object(&mut store, "a", 1, 100);
        assert_eq!(store.change_count(), from + 1, "what is there already changes nothing");
        assert_eq!(store.changes_since(store.change_count()), None);
    }

    #[test]
    fn change_that_does_not_follow_the_state_is_refused() {
        let mut store = ObjectEnvironment::default();
        add_number_object(&mut store, "a", 1, 1);
        let (whole, bytes) = store.changes_since(0).unwrap();
        let with = |key: &str, value: Value| {
            let mut changed = whole.clone();
            changed[key] = value;
            changed
        };
        for (change, what) in [
            (json!(1), "a change is not an object"),
            (with("v", json!(2)), "another version"),
            (with("from", json!(null)), "its `from` is null"),
            (with("from", json!(3)), "from 3 to 1 does not follow 0"),
            (with("to", json!(0)), "from 0 to 0 does not follow 0"),
            (
                with("to", json!(COUNT_MAX + 1)),
                "its `to` is 9007199254740993, which is not a number",
            ),
            (with("to", json!(u64::MAX)), "its `to` is 18446744073709551615"),
            (with("environment", json!({ "a": [{}] })), "a change of `a`: missing field"),
            (with("environment", json!({ "a": [{ "at": 1, "objects": [] }] })), "not there"),
            (
                with("environment", json!({ "a": [{ "at": 0, "keep": 1, "objects": [] }] })),
                "not there",
            ),
            (with("hidden_bytes", json!({ "k": 1 })), "the bytes of the hidden value `k`"),
        ] {
            let error = ObjectEnvironment::default().with_changes(&change, &bytes).unwrap_err();
            assert!(error.message.contains(what), "{change}: {error}");
        }
    }

    #[test]
    fn huge_last_reference_of_a_change_is_limited() {
        let mut store = ObjectEnvironment::default();
        add_number_object(&mut store, "a", 1, 1);
        let (mut change, bytes) = store.changes_since(0).unwrap();
        change["last_references"] = json!({ "a": u64::MAX });
        change["to"] = json!(COUNT_MAX);
        let mut read = ObjectEnvironment::default().with_changes(&change, &bytes).unwrap();
        add_number_object(&mut read, "a", 1, 2);
        assert_eq!(read.change_count(), COUNT_MAX + 1);
        let references: Vec<_> = read.get_objects("a", None).unwrap();
        assert_eq!(object_reference(&references[1]), Some(format!("a_{}", COUNT_MAX + 1).as_str()));
    }
}
