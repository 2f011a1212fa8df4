//! What one tool put there: its items, found by name and metadata without looking at all of them.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Map, Value};

use crate::item::{content_hash, entry_hash, map_hash, reference, same_content, same_map};
use crate::{EnvironmentItem, Filter, Object, REFERENCE_KEY};

/// What one tool put there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    pub(crate) tool: String,
    /// Items stay: one without objects keeps its place and its metadata.
    items: Vec<Placed>,
    /// The number of the last reference that was given out; none is given twice.
    pub(crate) last_reference: u64,
    /// How many objects there are in all items.
    pub(crate) objects: usize,
    /// Where items of that name and metadata stand, by their hash.
    by_identity: HashMap<u64, Vec<usize>>,
    /// Where items of that metadata stand.
    by_metadata: HashMap<u64, Vec<usize>>,
    /// Where items stand that have this value under this key of their metadata.
    by_entry: HashMap<u64, Vec<usize>>,
}

/// An item, and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) item: EnvironmentItem,
    /// When it was made.
    pub(crate) made: u64,
    /// When objects of it were taken away last.
    pub(crate) replaced: u64,
    /// When it changed last.
    pub(crate) revision: u64,
    /// When each of the objects came; never falls.
    pub(crate) came: Vec<u64>,
    /// Where objects of that content stand, to find duplicates.
    by_content: HashMap<u64, Vec<usize>>,
    /// What it takes.
    pub(crate) bytes: usize,
}

impl Shelf {
    pub(crate) fn new(tool: &str) -> Self {
        Self { tool: tool.to_owned(), ..Self::default() }
    }

    pub(crate) fn items(&self) -> &[Placed] {
        &self.items
    }

    /// An item, to change its objects. Its name and metadata stay, for they are how it is found.
    pub(crate) fn item_mut(&mut self, at: usize) -> &mut Placed {
        &mut self.items[at]
    }

    /// Puts an item without objects behind all others.
    pub(crate) fn place(
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
        self.items.push(Placed::new(item, revision));
        at
    }

    /// Finds the item of that name and metadata.
    pub(crate) fn find(&self, name: Option<&str>, metadata: &Map<String, Value>) -> Option<usize> {
        let is_this = |at: &&usize| {
            let item = &self.items[**at].item;
            item.name.as_deref() == name && same_map(&item.metadata, metadata)
        };
        self.by_identity.get(&identity_hash(name, metadata))?.iter().find(is_this).copied()
    }

    /// Lists the items that match, in their order.
    pub(crate) fn matching(&self, filter: Option<&Filter>) -> Vec<usize> {
        let found = match filter {
            None => return (0..self.items.len()).collect(),
            Some(Filter::Metadata(metadata)) => self.by_metadata.get(&map_hash(metadata)),
            Some(Filter::Key { key, value }) => self.by_entry.get(&entry_hash(key, value)),
        };
        let matches = |at: &usize| filter.is_none_or(|it| it.matches(&self.items[*at].item));
        found.into_iter().flatten().copied().filter(matches).collect()
    }

    /// Gives an object a reference that no other had.
    pub(crate) fn with_new_reference(&mut self, mut object: Object) -> (Object, String) {
        self.last_reference += 1;
        let reference = format!("{}_{}", self.tool, self.last_reference);
        object.insert(REFERENCE_KEY.to_owned(), reference.clone().into());
        (object, reference)
    }

    /// Gives references to objects that take the place of an item's; those of its own stay.
    pub(crate) fn in_place_of(&mut self, at: usize, objects: Vec<Object>) -> Vec<Object> {
        let known = self.items[at].item.objects.iter().filter_map(reference).map(str::to_owned);
        let mut known: HashSet<String> = known.collect();
        let mut placed = Vec::with_capacity(objects.len());
        for object in objects {
            let is_known = reference(&object).is_some_and(|given| known.remove(given));
            placed.push(if is_known { object } else { self.with_new_reference(object).0 });
        }
        placed
    }

    pub(crate) fn has_given(&self, word: &str) -> bool {
        let number = word.strip_prefix(self.tool.as_str()).and_then(|rest| rest.strip_prefix('_'));
        number
            .and_then(|number| number.parse::<u64>().ok())
            .is_some_and(|number| (1..=self.last_reference).contains(&number))
    }
}

impl Placed {
    fn new(item: EnvironmentItem, revision: u64) -> Self {
        let bytes = bytes_of_map(&item.metadata);
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

    pub(crate) fn push(&mut self, object: Object, revision: u64) {
        self.came.push(revision);
        self.bytes += bytes_of_map(&object);
        let at = self.item.objects.len();
        self.by_content.entry(content_hash(&object)).or_default().push(at);
        self.item.objects.push(object);
    }

    /// Puts other objects in place of all.
    pub(crate) fn set(&mut self, objects: Vec<Object>, revision: u64) {
        self.replaced = revision;
        self.by_content.clear();
        self.came.clear();
        self.bytes = bytes_of_map(&self.item.metadata);
        self.item.objects = Vec::with_capacity(objects.len());
        for object in objects {
            self.push(object, revision);
        }
    }
}

/// Pairs the objects of one addition with those that an item had before it, each with one at most.
pub(crate) struct Twins {
    /// How many objects the item had.
    count: usize,
    /// How many of the places under a hash were looked at: each place is offered once, so that a
    /// thousand equal rows cost a thousand looks.
    looked_at: HashMap<u64, usize>,
}

impl Twins {
    pub(crate) fn before(item: &Placed) -> Self {
        Self { count: item.item.objects.len(), looked_at: HashMap::new() }
    }

    /// Returns the reference of the next object that says the same.
    pub(crate) fn next<'a>(&mut self, item: &'a Placed, object: &Object) -> Option<&'a str> {
        let hash = content_hash(object);
        let places = item.by_content.get(&hash)?;
        let looked_at = self.looked_at.entry(hash).or_default();
        while let Some(&at) = places.get(*looked_at).filter(|&&at| at < self.count) {
            *looked_at += 1;
            let known = &item.item.objects[at];
            // Two contents of one hash hide each other at worst, and an object is stored again.
            if same_content(known, object) {
                return reference(known);
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

pub(crate) fn bytes_of(objects: &[Object]) -> usize {
    objects.iter().map(bytes_of_map).sum()
}

/// The length of the JSON, without writing it.
pub(crate) fn bytes_of_map(map: &Map<String, Value>) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // A map of JSON values can be written, and the counter takes everything.
    let _ = serde_json::to_writer(&mut counter, map);
    counter.0
}
