//! The store: items by tool, their references, and how they change.

use std::collections::{HashMap, HashSet};

use jaato_types::objects::{ObjectsAdd, ObjectsChanged};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use crate::hidden::{Hidden, HiddenValue};
use crate::item::{content_hash, reference, same_content, same_map};
use crate::{EnvironmentItem, Filter, Object, REFERENCE_KEY};

/// What all objects and hidden values of a session may take, in bytes of their JSON.
pub const ENVIRONMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The object environment of a session.
#[derive(Debug, Clone, Default)]
pub struct ObjectEnvironment {
    /// In the order in which the tools first came.
    pub(crate) tools: Vec<Shelf>,
    pub(crate) hidden: Hidden,
    /// How often what the model wrote named a reference.
    pub(crate) named: HashMap<String, u64>,
    /// Goes up with each change of what the model sees.
    pub(crate) revision: u64,
    pub(crate) hidden_bytes: usize,
}

/// What one tool put there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    pub(crate) tool: String,
    pub(crate) items: Vec<Placed>,
    /// The number of the last reference that was given out; none is given twice.
    pub(crate) last_reference: u64,
}

/// An item, and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) item: EnvironmentItem,
    /// When it changed last.
    pub(crate) revision: u64,
    /// When each of the objects came.
    pub(crate) came: Vec<u64>,
    /// Where objects of that content stand, to find duplicates.
    by_content: HashMap<u64, Vec<usize>>,
    /// What it takes.
    bytes: usize,
}

impl Placed {
    pub(crate) fn new(item: EnvironmentItem, revision: u64) -> Self {
        let mut placed =
            Self { item, revision, came: Vec::new(), by_content: HashMap::new(), bytes: 0 };
        placed.index_again();
        placed
    }

    /// Returns the reference of an object that says the same.
    fn twin(&self, object: &Object) -> Option<&str> {
        let places = self.by_content.get(&content_hash(object))?.iter();
        let mut known = places.map(|&at| &self.item.objects[at]);
        reference(known.find(|known| same_content(known, object))?)
    }

    fn push(&mut self, object: Object, revision: u64) {
        self.revision = revision;
        self.came.push(revision);
        self.bytes += bytes_of_map(&object);
        let at = self.item.objects.len();
        self.by_content.entry(content_hash(&object)).or_default().push(at);
        self.item.objects.push(object);
    }

    /// Puts other objects in place of all.
    fn set(&mut self, objects: Vec<Object>, revision: u64) {
        self.item.objects = objects;
        self.revision = revision;
        self.index_again();
    }

    fn index_again(&mut self) {
        self.by_content.clear();
        self.came = vec![self.revision; self.item.objects.len()];
        self.bytes = bytes_of_map(&self.item.metadata) + bytes_of(&self.item.objects);
        for (at, object) in self.item.objects.iter().enumerate() {
            self.by_content.entry(content_hash(object)).or_default().push(at);
        }
    }
}

/// Objects to be added.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Addition {
    /// What the tool calls the result. Items of another name are other items.
    pub name: Option<String>,
    /// The objects.
    pub objects: Vec<Object>,
    /// What they have in common.
    pub metadata: Map<String, Value>,
    /// Whether an object is stored again that says what one of the same item says.
    pub include_duplicates: bool,
}

impl Addition {
    /// Makes an addition without a name and without duplicates.
    pub fn new(objects: Vec<Object>, metadata: Map<String, Value>) -> Self {
        Self { objects, metadata, ..Self::default() }
    }
}

impl From<ObjectsAdd> for Addition {
    fn from(added: ObjectsAdd) -> Self {
        let ObjectsAdd { name, objects, metadata, include_duplicates, .. } = added;
        Self { name, objects, metadata, include_duplicates }
    }
}

impl ObjectEnvironment {
    /// Adds objects: to the tool's item of the same name and metadata, else as a new item.
    ///
    /// # Errors
    /// Kind `limit_reached` beyond [`ENVIRONMENT_BYTES_MAX`]; nothing is stored then.
    pub fn add(&mut self, tool: &str, addition: Addition) -> Result<ObjectsChanged> {
        self.make_room(0, bytes_of(&addition.objects) + bytes_of_map(&addition.metadata))?;
        let Addition { name, objects, metadata, include_duplicates } = addition;
        let revision = self.next_revision();
        let shelf = self.shelf(tool);
        let is_this = |it: &EnvironmentItem| it.name == name && same_map(&it.metadata, &metadata);
        let at = shelf.items.iter().position(|placed| is_this(&placed.item));
        let at = at.unwrap_or_else(|| {
            let item = EnvironmentItem { name, metadata, objects: Vec::new() };
            shelf.items.push(Placed::new(item, revision));
            shelf.items.len() - 1
        });
        let mut references = Vec::with_capacity(objects.len());
        for object in objects {
            let twin = if include_duplicates { None } else { shelf.items[at].twin(&object) };
            if let Some(twin) = twin {
                references.push(twin.to_owned());
                continue;
            }
            let (object, given) = shelf.with_new_reference(object);
            references.push(given);
            shelf.items[at].push(object, revision);
        }
        Ok(ObjectsChanged { matched: 1, references })
    }

    /// Adds objects to the first item that matches, as they are, duplicates too.
    ///
    /// # Errors
    /// Kind `not_found` when none matches, `limit_reached` beyond the bound.
    pub fn append(
        &mut self,
        tool: &str,
        objects: Vec<Object>,
        filter: &Filter,
    ) -> Result<ObjectsChanged> {
        let at = *self.matching(tool, Some(filter))?.first().unwrap_or(&0);
        self.make_room(0, bytes_of(&objects))?;
        let revision = self.next_revision();
        let shelf = self.shelf(tool);
        let mut references = Vec::with_capacity(objects.len());
        for object in objects {
            let (object, given) = shelf.with_new_reference(object);
            references.push(given);
            shelf.items[at].push(object, revision);
        }
        Ok(ObjectsChanged { matched: 1, references })
    }

    /// Returns the items of a tool; none where it never put one there.
    pub fn get(&self, tool: &str) -> Option<Vec<EnvironmentItem>> {
        let shelf = self.tools.iter().find(|shelf| shelf.tool == tool)?;
        Some(shelf.items.iter().map(|placed| placed.item.clone()).collect())
    }

    /// Returns the objects of all items of a tool that match, of all its items without a filter; none where
    /// no item does.
    pub fn get_objects(&self, tool: &str, filter: Option<&Filter>) -> Option<Vec<Object>> {
        let shelf = self.tools.iter().find(|shelf| shelf.tool == tool)?;
        let mut matching = shelf.matching(filter).peekable();
        matching.peek()?;
        Some(matching.flat_map(|at| shelf.items[at].item.objects.clone()).collect())
    }

    /// Puts other objects in place of those of every item that matches. Metadata stays. An object that carries
    /// the reference of one that it replaces keeps it.
    ///
    /// # Errors
    /// Kind `not_found` when none matches, `limit_reached` beyond the bound; nothing changes then.
    pub fn replace(
        &mut self,
        tool: &str,
        objects: Vec<Object>,
        filter: &Filter,
    ) -> Result<ObjectsChanged> {
        let matching = self.matching(tool, Some(filter))?;
        let shelf = self.shelf(tool);
        let old: usize = matching.iter().map(|&at| shelf.items[at].bytes).sum();
        self.make_room(old, bytes_of(&objects) * matching.len())?;
        let revision = self.next_revision();
        let shelf = self.shelf(tool);
        let mut references = Vec::new();
        for (number, &at) in matching.iter().enumerate() {
            let replaced = shelf.items[at].item.objects.clone();
            let mut known: HashSet<&str> = replaced.iter().filter_map(reference).collect();
            let mut placed = Vec::with_capacity(objects.len());
            for object in objects.clone() {
                let is_known = reference(&object).is_some_and(|given| known.remove(given));
                let (object, given) = match reference(&object).filter(|_| is_known) {
                    Some(given) => (object.clone(), given.to_owned()),
                    None => shelf.with_new_reference(object),
                };
                if number == 0 {
                    references.push(given);
                }
                placed.push(object);
            }
            shelf.items[at].set(placed, revision);
        }
        Ok(ObjectsChanged { matched: matching.len(), references })
    }

    /// Takes the objects out of every item that matches, of all items of the tool without a filter. The items
    /// stay, with their metadata.
    ///
    /// # Errors
    /// Kind `not_found` when none matches.
    pub fn remove(&mut self, tool: &str, filter: Option<&Filter>) -> Result<ObjectsChanged> {
        let matching = self.matching(tool, filter)?;
        let revision = self.next_revision();
        let shelf = self.shelf(tool);
        for &at in &matching {
            shelf.items[at].set(Vec::new(), revision);
        }
        Ok(ObjectsChanged { matched: matching.len(), references: Vec::new() })
    }

    /// Tells whether no item has an object: of the tool, or with none of any.
    pub fn is_empty(&self, tool: Option<&str>) -> bool {
        let mut shelves =
            self.tools.iter().filter(|shelf| tool.is_none_or(|tool| shelf.tool == tool));
        shelves.all(|shelf| shelf.items.iter().all(|placed| placed.item.objects.is_empty()))
    }

    /// Returns a number that goes up with each change of what the model sees.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the hidden values.
    pub fn hidden(&self) -> &Hidden {
        &self.hidden
    }

    /// Keeps a hidden value; none takes it away. Returns what was there.
    ///
    /// # Errors
    /// Kind `limit_reached` beyond [`ENVIRONMENT_BYTES_MAX`].
    pub fn set_hidden(
        &mut self,
        key: &str,
        value: Option<HiddenValue>,
    ) -> Result<Option<HiddenValue>> {
        let old = self.hidden.get(key).map_or(0, |value| key.len() + value.bytes());
        let new = value.as_ref().map_or(0, |value| key.len() + value.bytes());
        self.make_room(old, new)?;
        let before = match value {
            Some(value) => self.hidden.insert(key.to_owned(), value),
            None => self.hidden.remove(key),
        };
        self.hidden_bytes = (self.hidden_bytes + new).saturating_sub(old);
        Ok(before)
    }

    /// Counts the references that a text of the model names: what it speaks of is shown first.
    pub fn note_named(&mut self, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for word in text.split(|c| !is_part(c)).filter(|word| word.contains('_')) {
            let is_reference = self.tools.iter().any(|shelf| shelf.has_given(word));
            if is_reference {
                *self.named.entry(word.to_owned()).or_default() += 1;
            }
        }
    }

    pub(crate) fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    pub(crate) fn shelf(&mut self, tool: &str) -> &mut Shelf {
        let at = self.tools.iter().position(|shelf| shelf.tool == tool).unwrap_or_else(|| {
            self.tools.push(Shelf { tool: tool.to_owned(), ..Shelf::default() });
            self.tools.len() - 1
        });
        &mut self.tools[at]
    }

    pub(crate) fn make_room(&self, old: usize, new: usize) -> Result<()> {
        let items = self.tools.iter().flat_map(|shelf| &shelf.items);
        let has = self.hidden_bytes + items.map(|placed| placed.bytes).sum::<usize>();
        let wanted = (has + new).saturating_sub(old);
        if wanted <= ENVIRONMENT_BYTES_MAX {
            return Ok(());
        }
        let text = format!(
            "the session's objects would take {wanted} bytes, at most {ENVIRONMENT_BYTES_MAX} are kept"
        );
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("remove some, or add fewer"))
    }

    fn matching(&self, tool: &str, filter: Option<&Filter>) -> Result<Vec<usize>> {
        let shelf = self.tools.iter().find(|shelf| shelf.tool == tool);
        let matching: Vec<usize> =
            shelf.map(|shelf| shelf.matching(filter).collect()).unwrap_or_default();
        if matching.is_empty() {
            let what = match (shelf, filter) {
                (None, _) => format!("there are no objects of `{tool}`"),
                (Some(_), Some(filter)) => format!("no item of `{tool}` has {filter}"),
                (Some(_), None) => format!("`{tool}` has no item"),
            };
            return Err(Error::new(ErrorKind::NotFound, what));
        }
        Ok(matching)
    }
}

impl Shelf {
    fn matching<'a>(&'a self, filter: Option<&'a Filter>) -> impl Iterator<Item = usize> + 'a {
        let items = self.items.iter().enumerate();
        let matches =
            move |item: &EnvironmentItem| filter.is_none_or(|filter| filter.matches(item));
        items.filter(move |(_, placed)| matches(&placed.item)).map(|(at, _)| at)
    }

    /// Gives an object a reference that no other had.
    pub(crate) fn with_new_reference(&mut self, mut object: Object) -> (Object, String) {
        self.last_reference += 1;
        let reference = format!("{}_{}", self.tool, self.last_reference);
        object.insert(REFERENCE_KEY.to_owned(), reference.clone().into());
        (object, reference)
    }

    fn has_given(&self, word: &str) -> bool {
        let number = word.strip_prefix(self.tool.as_str()).and_then(|rest| rest.strip_prefix('_'));
        number
            .and_then(|number| number.parse::<u64>().ok())
            .is_some_and(|number| (1..=self.last_reference).contains(&number))
    }
}

fn bytes_of(objects: &[Object]) -> usize {
    objects.iter().map(bytes_of_map).sum()
}

/// The length of the JSON, without writing it.
fn bytes_of_map(map: &Map<String, Value>) -> usize {
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
