//! Renders the environment for the model: JSON within a token budget.

use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use crate::item::object_reference;
use crate::shelf::IndexedItem;
use crate::{ItemFilter, ObjectEnvironment};

/// The approximate number of bytes of JSON per token.
const BYTES_PER_TOKEN: usize = 4;

/// The approximate size of the names and brackets around an item.
const ITEM_BYTES: usize = 60;

/// The objects to show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectSelection {
    /// The tools. If empty, all tools.
    pub tools: Vec<String>,
    /// A filter for items.
    pub filter: Option<ItemFilter>,
    /// The number of objects to skip.
    pub skip: usize,
    /// The maximum number of objects.
    pub take: Option<usize>,
}

/// Estimates the number of tokens of a value.
pub fn estimate_tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(BYTES_PER_TOKEN)
}

impl ObjectEnvironment {
    /// Returns what has changed for the model since a revision, within the budget: first the items
    /// that the model mentioned most often, then the newest. For the rest, it returns only the
    /// number of objects. Returns `None` if nothing has changed, or if there have never been
    /// objects.
    ///
    /// ```text
    /// {"environment": {TOOL: [{"name"?, "metadata"?, "objects": […], "total_objects"?}]},
    ///  "more_objects": {TOOL: NUMBER}}
    /// ```
    ///
    /// `total_objects` is present if the item has more objects, which are not shown here or were
    /// shown before.
    pub fn render(&self, since: u64, tokens_max: usize) -> Option<Value> {
        let places = self.changed_since(since).into_iter();
        let items = places.map(|(shelf, item)| {
            let shelf = &self.tools[shelf];
            (shelf.tool.as_str(), &shelf.items()[item])
        });
        // The model never saw an item that was emptied before its first rendering.
        let is_something = |placed: &IndexedItem| since > 0 || !placed.item.objects.is_empty();
        let mut changed: Vec<(&str, &IndexedItem)> =
            items.filter(|(_, placed)| is_something(placed)).collect();
        if changed.is_empty() {
            return None;
        }
        // The sort is stable: among equal items, earlier ones come first.
        changed.sort_by_key(|(_, placed)| Reverse((self.count_mentions(placed), placed.revision)));
        let mut room = tokens_max.saturating_mul(BYTES_PER_TOKEN);
        let (mut shown, mut more) = (Map::new(), Map::new());
        for (tool, placed) in changed {
            let new = placed.came.len() - placed.came.partition_point(|&came| came <= since);
            let written = render_item(placed, new, &mut room);
            let left = new - written.as_ref().map_or(0, |(_, count)| *count);
            if let Some((item, _)) = written {
                push_item(&mut shown, tool, item);
            }
            if left > 0 {
                let count = more.get(tool).and_then(Value::as_u64).unwrap_or(0) + left as u64;
                more.insert(tool.to_owned(), count.into());
            }
        }
        let mut value = json!({ "environment": shown });
        if !more.is_empty() {
            value["more_objects"] = more.into();
        }
        Some(value)
    }

    /// Returns the requested objects, and the total number of matching ones.
    ///
    /// ```text
    /// {"environment": {TOOL: [{"name"?, "metadata"?, "objects": […], "total_objects"?}]},
    ///  "total_objects": NUMBER}
    /// ```
    pub fn select(&self, selection: &ObjectSelection) -> Value {
        let ObjectSelection { tools, filter, skip, take } = selection;
        let until = take.map_or(usize::MAX, |take| skip.saturating_add(take));
        let (mut found, mut count) = (Map::new(), 0_usize);
        for shelf in self.tools.iter().filter(|it| tools.is_empty() || tools.contains(&it.tool)) {
            for placed in shelf.items() {
                if !filter.as_ref().is_none_or(|filter| filter.is_match(&placed.item)) {
                    continue;
                }
                let objects = &placed.item.objects;
                let (from, to) = (count.max(*skip), (count + objects.len()).min(until));
                if from < to || objects.is_empty() {
                    let part = objects.get(from.saturating_sub(count)..to.saturating_sub(count));
                    let part = part.unwrap_or_default().iter().cloned().map(Value::Object);
                    push_item(&mut found, &shelf.tool, item_json(placed, part.collect()));
                }
                count += objects.len();
            }
        }
        json!({ "environment": found, "total_objects": count })
    }

    /// Lists all items without their objects: each with its metadata and the number of its objects.
    pub fn contents_json(&self) -> Value {
        let mut found = Map::new();
        for shelf in &self.tools {
            for placed in shelf.items() {
                let mut item = item_json(placed, Vec::new());
                item["objects"] = placed.item.objects.len().into();
                push_item(&mut found, &shelf.tool, item);
            }
        }
        found.into()
    }

    fn count_mentions(&self, placed: &IndexedItem) -> u64 {
        if self.named.is_empty() {
            return 0;
        }
        let references = placed.item.objects.iter().filter_map(object_reference);
        references.filter_map(|reference| self.named.get(reference)).sum()
    }
}

/// Returns an item with as many of its newest `new` objects as fit, and their number. Returns
/// `None` if none of them fits. An emptied item is included nevertheless.
fn render_item(placed: &IndexedItem, new: usize, room: &mut usize) -> Option<(Value, usize)> {
    let metadata = Value::Object(placed.item.metadata.clone()).to_string().len();
    let mut bytes = ITEM_BYTES + metadata;
    let objects = &placed.item.objects;
    let mut count = 0;
    for object in objects.iter().rev().take(new) {
        let next = Value::Object(object.clone()).to_string().len() + 1;
        if bytes + next > *room {
            break;
        }
        bytes += next;
        count += 1;
    }
    if count == 0 && new > 0 || bytes > *room {
        return None;
    }
    *room -= bytes;
    let part = objects[objects.len() - count..].iter().cloned().map(Value::Object);
    Some((item_json(placed, part.collect()), count))
}

/// Returns an item with some of its objects.
fn item_json(placed: &IndexedItem, objects: Vec<Value>) -> Value {
    let mut item = Map::new();
    if let Some(name) = &placed.item.name {
        item.insert("name".to_owned(), name.clone().into());
    }
    if !placed.item.metadata.is_empty() {
        item.insert("metadata".to_owned(), placed.item.metadata.clone().into());
    }
    let (shown, total) = (objects.len(), placed.item.objects.len());
    item.insert("objects".to_owned(), objects.into());
    if shown > 0 && shown < total {
        item.insert("total_objects".to_owned(), total.into());
    }
    item.into()
}

fn push_item(found: &mut Map<String, Value>, tool: &str, item: Value) {
    let items = found.entry(tool).or_insert_with(|| json!([]));
    if let Some(items) = items.as_array_mut() {
        items.push(item);
    }
}
