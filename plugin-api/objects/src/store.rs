//! The store of objects, and the changes to it. The cost of a change depends on its size, not on
//! the size of the store.

use std::collections::{BTreeSet, HashMap};

use jaato_types::objects::{ObjectsAdd, ObjectsChangeAnswer, ToolObjects};
use jaato_types::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use crate::hidden::{HiddenChanges, HiddenValue, HiddenValues};
use crate::item::object_reference;
use crate::shelf::{DuplicateFinder, IndexedItem, ToolItems, map_size_bytes, objects_size_bytes};
use crate::{EnvironmentItem, ItemFilter, Object};

/// The maximum size of all objects and hidden values of a session, in bytes of their JSON.
pub const ENVIRONMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The object environment of a session.
#[derive(Debug, Clone, Default)]
pub struct ObjectEnvironment {
    /// The tools, in the order of their first objects.
    pub(crate) tools: Vec<ToolItems>,
    pub(crate) hidden: HiddenValues,
    pub(crate) hidden_changes: HiddenChanges,
    /// How often the model's output mentioned each reference.
    pub(crate) named: HashMap<String, u64>,
    /// The number of changes, including those of hidden values.
    pub(crate) changes: u64,
    /// The last change that the model can see.
    pub(crate) revision: u64,
    /// The items, ordered by their last change.
    pub(crate) by_change: BTreeSet<LastItemChange>,
    /// The size of everything, in bytes.
    bytes: usize,
}

/// The last change of an item, with the item's indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LastItemChange {
    pub(crate) at: u64,
    pub(crate) shelf: usize,
    pub(crate) item: usize,
}

/// Objects to add.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectsAddition {
    /// The tool's name for the result. Results with different names are separate items.
    pub name: Option<String>,
    /// The objects.
    pub objects: Vec<Object>,
    /// Their common metadata.
    pub metadata: Map<String, Value>,
    /// Whether to store an object again that is equal to an existing object of the item.
    pub include_duplicates: bool,
}

impl ObjectsAddition {
    /// Creates an addition without a name and without duplicates.
    pub fn new(objects: Vec<Object>, metadata: Map<String, Value>) -> Self {
        Self { objects, metadata, ..Self::default() }
    }
}

impl From<ObjectsAdd> for ObjectsAddition {
    fn from(added: ObjectsAdd) -> Self {
        let ObjectsAdd { name, objects, metadata, include_duplicates, .. } = added;
        Self { name, objects, metadata, include_duplicates }
    }
}

impl ObjectEnvironment {
    /// Adds objects to the tool's item with the same name and metadata, or to a new item.
    ///
    /// # Errors
    /// Kind `limit_reached` if [`ENVIRONMENT_BYTES_MAX`] is exceeded. Nothing is stored then.
    pub fn add(&mut self, tool: &str, addition: ObjectsAddition) -> Result<ObjectsChangeAnswer> {
        self.check_size(
            0,
            objects_size_bytes(&addition.objects) + map_size_bytes(&addition.metadata),
        )?;
        let ObjectsAddition { name, objects, metadata, include_duplicates } = addition;
        let revision = self.changes + 1;
        let shelf = self.tool_index(tool);
        let item = match self.tools[shelf].find_item(name.as_deref(), &metadata) {
            Some(item) => item,
            None => self.append_empty_item(shelf, name, metadata, revision),
        };
        let mut references = Vec::with_capacity(objects.len());
        // Equal rows of one result are separate objects, so each one matches a different object of
        // the item.
        let mut twins = DuplicateFinder::for_item(&self.tools[shelf].items()[item]);
        for object in objects {
            let known = &self.tools[shelf].items()[item];
            let twin = if include_duplicates { None } else { twins.next_duplicate(known, &object) };
            references.push(match twin {
                Some(twin) => twin.to_owned(),
                None => self.append_object(shelf, item, object, revision),
            });
        }
        Ok(ObjectsChangeAnswer { matched: 1, references, ..ObjectsChangeAnswer::default() })
    }

    /// Adds objects to the first item that matches, including duplicates.
    ///
    /// # Errors
    /// Kind `not_found` if no item matches, `limit_reached` if the limit is exceeded.
    pub fn append(
        &mut self,
        tool: &str,
        objects: Vec<Object>,
        filter: &ItemFilter,
    ) -> Result<ObjectsChangeAnswer> {
        let (shelf, matching) = self.matching_items(tool, Some(filter))?;
        self.check_size(0, objects_size_bytes(&objects))?;
        let revision = self.changes + 1;
        let objects = objects.into_iter();
        let references =
            objects.map(|it| self.append_object(shelf, matching[0], it, revision)).collect();
        Ok(ObjectsChangeAnswer { matched: 1, references, ..ObjectsChangeAnswer::default() })
    }

    /// Returns the items of a tool, or `None` if the tool never added any.
    pub fn get(&self, tool: &str) -> Option<Vec<EnvironmentItem>> {
        let shelf = self.tools.iter().find(|shelf| shelf.tool == tool)?;
        Some(shelf.items().iter().map(|placed| placed.item.clone()).collect())
    }

    /// Returns the objects of all items of a tool that match, or of all its items without a filter.
    /// Returns `None` if no item matches.
    pub fn get_objects(&self, tool: &str, filter: Option<&ItemFilter>) -> Option<Vec<Object>> {
        let shelf = self.tools.iter().find(|shelf| shelf.tool == tool)?;
        let matching = shelf.matching_items(filter);
        if matching.is_empty() {
            return None;
        }
        let objects = matching.into_iter().flat_map(|at| &shelf.items()[at].item.objects);
        Some(objects.cloned().collect())
    }

    /// Replaces the objects of each item that matches. Metadata stays. An object with the reference
    /// of one that it replaces keeps this reference.
    ///
    /// # Errors
    /// Kind `not_found` if no item matches, `limit_reached` if the limit is exceeded. Nothing
    /// changes then.
    pub fn replace(
        &mut self,
        tool: &str,
        objects: Vec<Object>,
        filter: &ItemFilter,
    ) -> Result<ObjectsChangeAnswer> {
        let (shelf, matching) = self.matching_items(tool, Some(filter))?;
        let old: usize = matching.iter().map(|&at| self.tools[shelf].items()[at].bytes).sum();
        self.check_size(old, objects_size_bytes(&objects) * matching.len())?;
        let revision = self.changes + 1;
        let mut references = Vec::new();
        for &at in &matching {
            let placed = self.tools[shelf].assign_missing_references(at, objects.clone());
            if references.is_empty() {
                references =
                    placed.iter().filter_map(object_reference).map(str::to_owned).collect();
            }
            self.change_item(shelf, at, revision, |item| item.set_objects(placed, revision));
        }
        Ok(ObjectsChangeAnswer {
            matched: matching.len(),
            references,
            ..ObjectsChangeAnswer::default()
        })
    }

    /// Removes the objects of each item that matches, or of all items of the tool without a filter.
    /// The items stay, with their metadata.
    ///
    /// # Errors
    /// Kind `not_found` if no item matches.
    pub fn remove(
        &mut self,
        tool: &str,
        filter: Option<&ItemFilter>,
    ) -> Result<ObjectsChangeAnswer> {
        let (shelf, matching) = self.matching_items(tool, filter)?;
        let revision = self.changes + 1;
        for &at in &matching {
            self.change_item(shelf, at, revision, |item| item.set_objects(Vec::new(), revision));
        }
        Ok(ObjectsChangeAnswer {
            matched: matching.len(),
            references: Vec::new(),
            ..ObjectsChangeAnswer::default()
        })
    }

    /// Removes the objects of all items, either of all tools or of the named ones. The items stay,
    /// with their metadata.
    pub fn clear(&mut self, of: Option<&[String]>) -> ObjectsChangeAnswer {
        let revision = self.changes + 1;
        let mut matched = 0;
        for shelf in 0..self.tools.len() {
            let is_meant = of.is_none_or(|tools| tools.contains(&self.tools[shelf].tool));
            for item in 0..self.tools[shelf].items().len() {
                if is_meant && !self.tools[shelf].items()[item].item.objects.is_empty() {
                    self.change_item(shelf, item, revision, |item| {
                        item.set_objects(Vec::new(), revision)
                    });
                    matched += 1;
                }
            }
        }
        ObjectsChangeAnswer { matched, ..ObjectsChangeAnswer::default() }
    }

    /// Lists the tools that have items, with their numbers, in the order of their first objects.
    pub fn tools(&self) -> Vec<ToolObjects> {
        let has_items = self.tools.iter().filter(|shelf| !shelf.items().is_empty());
        let facts = |shelf: &ToolItems| {
            ToolObjects::new(shelf.tool.clone(), shelf.items().len(), shelf.objects)
        };
        has_items.map(facts).collect()
    }

    /// Returns true if no item of the tool, or of any tool if none is named, has objects.
    pub fn is_empty(&self, tool: Option<&str>) -> bool {
        let mut shelves =
            self.tools.iter().filter(|shelf| tool.is_none_or(|tool| shelf.tool == tool));
        shelves.all(|shelf| shelf.objects == 0)
    }

    /// Returns a number that increases with each change that the model can see.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the size of everything, as it counts toward [`ENVIRONMENT_BYTES_MAX`].
    pub fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the hidden values.
    pub fn hidden_values(&self) -> &HiddenValues {
        &self.hidden
    }

    /// Sets or removes a hidden value. Returns the previous one.
    ///
    /// # Errors
    /// Kind `limit_reached` if [`ENVIRONMENT_BYTES_MAX`] is exceeded.
    pub fn set_hidden(
        &mut self,
        key: &str,
        value: Option<HiddenValue>,
    ) -> Result<Option<HiddenValue>> {
        if value.is_none() && !self.hidden.contains_key(key) {
            return Ok(None);
        }
        self.put_hidden(key, value, self.changes + 1)
    }

    /// Like [`ObjectEnvironment::set_hidden`], with the number of the change.
    pub(crate) fn put_hidden(
        &mut self,
        key: &str,
        value: Option<HiddenValue>,
        change: u64,
    ) -> Result<Option<HiddenValue>> {
        let is_known = self.hidden_changes.has_known(key);
        let takes = |value: Option<&HiddenValue>| value.map_or(0, HiddenValue::size_bytes);
        // A removed key is remembered and counts toward the size.
        let old = if is_known { key.len() + takes(self.hidden.get(key)) } else { 0 };
        let new = key.len() + takes(value.as_ref());
        self.check_size(old, new)?;
        self.changes = change;
        self.hidden_changes.record_change(key, change);
        self.bytes = (self.bytes + new).saturating_sub(old);
        Ok(match value {
            Some(value) => self.hidden.insert(key.to_owned(), value),
            None => self.hidden.remove(key),
        })
    }

    /// Counts the references in a text of the model, because objects that it mentions are shown
    /// first.
    pub fn record_mentions(&mut self, text: &str) {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for word in text.split(|c| !is_part(c)).filter(|word| word.contains('_')) {
            let is_reference = self.tools.iter().any(|shelf| shelf.is_assigned_reference(word));
            if is_reference {
                *self.named.entry(word.to_owned()).or_default() += 1;
            }
        }
    }

    /// Returns the index of a tool's shelf, and creates the shelf if it is missing.
    pub(crate) fn tool_index(&mut self, tool: &str) -> usize {
        let known = self.tools.iter().position(|shelf| shelf.tool == tool);
        known.unwrap_or_else(|| {
            self.tools.push(ToolItems::new(tool));
            self.tools.len() - 1
        })
    }

    /// Appends an item without objects to a tool's shelf.
    pub(crate) fn append_empty_item(
        &mut self,
        shelf: usize,
        name: Option<String>,
        metadata: Map<String, Value>,
        revision: u64,
    ) -> usize {
        let item = self.tools[shelf].append_empty_item(name, metadata, revision);
        self.bytes += self.tools[shelf].items()[item].bytes;
        self.by_change.insert(LastItemChange { at: revision, shelf, item });
        self.record_change(revision);
        item
    }

    /// Adds an object to an item, and returns its new reference.
    fn append_object(
        &mut self,
        shelf: usize,
        item: usize,
        object: Object,
        revision: u64,
    ) -> String {
        let (object, given) = self.tools[shelf].assign_reference(object);
        self.change_item(shelf, item, revision, |item| item.push_object(object, revision));
        given
    }

    /// Changes the objects of an item, and updates the totals.
    pub(crate) fn change_item(
        &mut self,
        shelf: usize,
        item: usize,
        revision: u64,
        work: impl FnOnce(&mut IndexedItem),
    ) {
        let on = &mut self.tools[shelf];
        let placed = on.item_mut(item);
        let (bytes, objects, last) = (placed.bytes, placed.item.objects.len(), placed.revision);
        work(placed);
        placed.revision = revision;
        let (bytes_after, objects_after) = (placed.bytes, placed.item.objects.len());
        on.objects = on.objects + objects_after - objects;
        self.bytes = self.bytes + bytes_after - bytes;
        if last != revision {
            self.by_change.remove(&LastItemChange { at: last, shelf, item });
            self.by_change.insert(LastItemChange { at: revision, shelf, item });
        }
        self.record_change(revision);
    }

    fn record_change(&mut self, revision: u64) {
        (self.changes, self.revision) = (revision, revision);
    }

    pub(crate) fn check_size(&self, old: usize, new: usize) -> Result<()> {
        let wanted = (self.bytes + new).saturating_sub(old);
        if wanted <= ENVIRONMENT_BYTES_MAX {
            return Ok(());
        }
        let text = format!(
            "the session's objects would need {wanted} bytes, but the limit is {ENVIRONMENT_BYTES_MAX}"
        );
        Err(Error::new(ErrorKind::LimitReached, text).with_hint("remove some, or add fewer"))
    }

    /// Returns a tool's shelf and its items that match, at least one.
    fn matching_items(
        &self,
        tool: &str,
        filter: Option<&ItemFilter>,
    ) -> Result<(usize, Vec<usize>)> {
        let Some(shelf) = self.tools.iter().position(|shelf| shelf.tool == tool) else {
            let text = format!("there are no objects of `{tool}`");
            return Err(Error::new(ErrorKind::NotFound, text));
        };
        let matching = self.tools[shelf].matching_items(filter);
        if matching.is_empty() {
            let text = match filter {
                Some(filter) => format!("no item of `{tool}` has {filter}"),
                None => format!("`{tool}` has no item"),
            };
            return Err(Error::new(ErrorKind::NotFound, text));
        }
        Ok((shelf, matching))
    }
}
