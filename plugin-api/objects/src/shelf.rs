//! The items of one tool, indexed by name and metadata.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value};

use crate::item::{
    content_hash, entry_hash, has_same_content, is_same_map, map_hash, object_reference,
};
use crate::{EnvironmentItem, ItemFilter, Object, REFERENCE_KEY};

/// The items of one tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolItems {
    pub(crate) tool: String,
    /// Items are never removed: an item without objects keeps its index and metadata.
    items: Vec<IndexedItem>,
    /// The number of the last assigned reference. No reference is assigned twice.
    pub(crate) last_reference: u64,
    /// The number of objects in all items.
    pub(crate) objects: usize,
    /// The indices of items by the hash of name and metadata.
    by_identity: HashMap<u64, Vec<usize>>,
    /// The indices of items by the hash of their metadata.
    by_metadata: HashMap<u64, Vec<usize>>,
    /// The indices of items by the hash of each metadata key with its value.
    by_entry: HashMap<u64, Vec<usize>>,
}

/// An item with its history and indexes.
#[derive(Debug, Clone)]
pub(crate) struct IndexedItem {
    pub(crate) item: EnvironmentItem,
    /// The change that created it.
    pub(crate) made: u64,
    /// The last change that removed objects from it.
    pub(crate) replaced: u64,
    /// The last change of it.
    pub(crate) revision: u64,
    /// The change that added each object, in ascending order.
    pub(crate) came: Vec<u64>,
    /// The indices of objects by the hash of their content, to find duplicates.
    by_content: HashMap<u64, Vec<usize>>,
    /// The size in bytes.
    pub(crate) bytes: usize,
}

impl ToolItems {
    pub(crate) fn new(tool: &str) -> Self {
        Self { tool: tool.to_owned(), ..Self::default() }
    }

    pub(crate) fn items(&self) -> &[IndexedItem] {
        &self.items
    }

    /// Returns an item whose objects may be changed. Its name and metadata must not change, because
    /// it is indexed by them.
    pub(crate) fn item_mut(&mut self, at: usize) -> &mut IndexedItem {
        &mut self.items[at]
    }

    /// Appends an item without objects.
    pub(crate) fn append_empty_item(
        &mut self,
        name: Option<String>,
        metadata: Map<String, Value>,
        revision: u64,
    ) -> usize {
        let at = self.items.len();
        self.by_identity.entry(identity_hash(name.as_deref(), &metadata)).or_default().push(at);
        self.by_metadata.entry(map_hash(&metadata)).or_default().push(at);
        for (key, value) in &metadata {
            self.by_entry.entry(entry_hash(key, value)).or_default().push(at);
        }
        let item =
            EnvironmentItem { name, metadata, objects: Vec::new(), ..EnvironmentItem::default() };
        self.items.push(IndexedItem::new(item, revision));
        at
    }

    /// Returns the item with this name and metadata.
    pub(crate) fn find_item(
        &self,
        name: Option<&str>,
        metadata: &Map<String, Value>,
    ) -> Option<usize> {
        let is_this = |at: &&usize| {
            let item = &self.items[**at].item;
            item.name.as_deref() == name && is_same_map(&item.metadata, metadata)
        };
        self.by_identity.get(&identity_hash(name, metadata))?.iter().find(is_this).copied()
    }

    /// Returns the items that match, in order.
    pub(crate) fn matching_items(&self, filter: Option<&ItemFilter>) -> Vec<usize> {
        let found = match filter {
            None => return (0..self.items.len()).collect(),
            Some(ItemFilter::Metadata(metadata)) => self.by_metadata.get(&map_hash(metadata)),
            Some(ItemFilter::Key { key, value }) => self.by_entry.get(&entry_hash(key, value)),
        };
        let matches = |at: &usize| filter.is_none_or(|it| it.is_match(&self.items[*at].item));
        found.into_iter().flatten().copied().filter(matches).collect()
    }

    /// Assigns a new reference to an object.
    pub(crate) fn assign_reference(&mut self, mut object: Object) -> (Object, String) {
        self.last_reference += 1;
        let reference = format!("{}_{}", self.tool, self.last_reference);
        object.insert(REFERENCE_KEY.to_owned(), reference.clone().into());
        (object, reference)
    }

    /// Assigns references to objects that replace those of an item. References of the item's own
    /// objects are kept.
    pub(crate) fn assign_missing_references(
        &mut self,
        at: usize,
        objects: Vec<Object>,
    ) -> Vec<Object> {
        let known =
            self.items[at].item.objects.iter().filter_map(object_reference).map(str::to_owned);
        let mut known: HashSet<String> = known.collect();
        let mut placed = Vec::with_capacity(objects.len());
        for object in objects {
            let is_known = object_reference(&object).is_some_and(|given| known.remove(given));
            placed.push(if is_known { object } else { self.assign_reference(object).0 });
        }
        placed
    }

    pub(crate) fn is_assigned_reference(&self, word: &str) -> bool {
        let number = word.strip_prefix(self.tool.as_str()).and_then(|rest| rest.strip_prefix('_'));
        number
            .and_then(|number| number.parse::<u64>().ok())
            .is_some_and(|number| (1..=self.last_reference).contains(&number))
    }
}

impl IndexedItem {
    fn new(item: EnvironmentItem, revision: u64) -> Self {
        let bytes = map_size_bytes(&item.metadata);
        Self {
            item,
            made: revision,
            replaced: revision,
            revision,
            came: Vec::new(),
            by_content: HashMap::new(),
            bytes,
        }
    }

    pub(crate) fn push_object(&mut self, object: Object, revision: u64) {
        self.came.push(revision);
        self.bytes += map_size_bytes(&object);
        let at = self.item.objects.len();
        self.by_content.entry(content_hash(&object)).or_default().push(at);
        self.item.objects.push(object);
    }

    /// Replaces all objects.
    pub(crate) fn set_objects(&mut self, objects: Vec<Object>, revision: u64) {
        self.replaced = revision;
        self.by_content.clear();
        self.came.clear();
        self.bytes = map_size_bytes(&self.item.metadata);
        self.item.objects = Vec::with_capacity(objects.len());
        for object in objects {
            self.push_object(object, revision);
        }
    }
}

/// Pairs the objects of one addition with equal objects that the item had before, each with at most
/// one.
pub(crate) struct DuplicateFinder {
    /// The number of objects that the item had.
    count: usize,
    /// The number of candidates that were checked for each hash. Each candidate is checked only
    /// once, so that a thousand equal rows need a thousand checks.
    looked_at: HashMap<u64, usize>,
}

impl DuplicateFinder {
    pub(crate) fn for_item(item: &IndexedItem) -> Self {
        Self { count: item.item.objects.len(), looked_at: HashMap::new() }
    }

    /// Returns the reference of the next object with the same content.
    pub(crate) fn next_duplicate<'a>(
        &mut self,
        item: &'a IndexedItem,
        object: &Object,
    ) -> Option<&'a str> {
        let hash = content_hash(object);
        let places = item.by_content.get(&hash)?;
        let looked_at = self.looked_at.entry(hash).or_default();
        while let Some(&at) = places.get(*looked_at).filter(|&&at| at < self.count) {
            *looked_at += 1;
            let known = &item.item.objects[at];
            // If two contents have the same hash, an object is stored again at worst.
            if has_same_content(known, object) {
                return object_reference(known);
            }
        }
        None
    }
}

fn identity_hash(name: Option<&str>, metadata: &Map<String, Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, map_hash(metadata)).hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn objects_size_bytes(objects: &[Object]) -> usize {
    objects.iter().map(map_size_bytes).sum()
}

/// Returns the length of the JSON, without writing it.
pub(crate) fn map_size_bytes(map: &Map<String, Value>) -> usize {
    struct JsonByteCounter(usize);
    impl std::io::Write for JsonByteCounter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = JsonByteCounter(0);
    // Writing cannot fail: JSON values can be serialized, and the counter accepts everything.
    let _ = serde_json::to_writer(&mut counter, map);
    counter.0
}
