//! Access to the session's object environment for tools and commands: [`Objects`].

use jaato_types::objects::{
    ADD, APPEND, EnvironmentItem, GET, GET_OBJECTS, HIDDEN_GET, HIDDEN_SET, HiddenKey, HiddenKeys,
    HiddenSet, HiddenValueAnswer, HiddenValueEncoding, IS_EMPTY, Object, ObjectItemsAnswer,
    ObjectToolsAnswer, ObjectsAdd, ObjectsAnswer, ObjectsChange, ObjectsChangeAnswer, ObjectsClear,
    ObjectsEmptyAnswer, ObjectsFilter, REMOVE, REPLACE, RESULT, ToolObjects,
};
use jaato_types::{Result, to_object};
use serde_json::{Map, Value};

use crate::context::Reporter;

/// The objects that tools add to the model's context across a session, and their hidden values.
///
/// Objects are grouped by tool. Without a tool's name, the methods use the tool that is running.
/// All returned objects are copies. Only these methods change the originals.
pub struct Objects<'a> {
    host: &'a Reporter,
}

/// A filter for the items of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemMatcher {
    /// The items with exactly this metadata.
    Metadata(Map<String, Value>),
    /// The items whose metadata has this value under this key.
    Key(String, Value),
}

impl ItemMatcher {
    /// Matches the items with exactly this metadata, written as `json!({…})`.
    ///
    /// # Errors
    /// `invalid_arguments` if the metadata is not an object.
    pub fn metadata(metadata: impl Into<Value>) -> Result<Self> {
        to_object(metadata).map(Self::Metadata)
    }

    /// Matches the items whose metadata has this value under this key.
    pub fn key(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Key(key.into(), value.into())
    }
}

/// A type that can be a result. It determines its objects, their metadata and how clients show
/// them.
pub trait IntoObjects: Send {
    /// Converts the value to objects.
    ///
    /// # Errors
    /// The type's own error; `invalid_arguments` if a value is not an object.
    fn into_objects(self) -> Result<ObjectsAdd>;
}

impl IntoObjects for ObjectsAdd {
    fn into_objects(self) -> Result<Self> {
        Ok(self)
    }
}

/// A hidden value.
#[derive(Debug, Clone, PartialEq)]
pub enum HiddenData {
    /// JSON.
    Json(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Reporter {
    /// Returns access to the session's objects, for tools and commands. All other callers get
    /// `unavailable`.
    pub fn objects(&self) -> Objects<'_> {
        Objects { host: self }
    }
}

impl Objects<'_> {
    jaato_types::object_operations!(methods [.host]);

    /// Adds a result to the model's context and shows it to clients at once. A tool may call it
    /// several times.
    ///
    /// # Errors
    /// `limit_reached` if the session has too many objects; `unavailable` outside of tools and
    /// commands.
    pub async fn result(&self, result: impl IntoObjects) -> Result<ObjectsChangeAnswer> {
        self.host.service(RESULT, &result.into_objects()?).await
    }

    /// Adds objects that only the model sees.
    ///
    /// # Errors
    /// As [`Objects::result`].
    pub async fn add(&self, addition: impl IntoObjects) -> Result<ObjectsChangeAnswer> {
        self.host.service(ADD, &addition.into_objects()?).await
    }

    /// Adds objects, each written as `json!({…})`, to the first item that matches.
    ///
    /// # Errors
    /// `not_found` if no item matches; `invalid_arguments` if a value is not an object; otherwise
    /// as [`Objects::result`].
    pub async fn append<O: Into<Value>>(
        &self,
        tool: Option<&str>,
        matching: ItemMatcher,
        objects: impl IntoIterator<Item = O>,
    ) -> Result<ObjectsChangeAnswer> {
        let objects = to_objects(objects)?;
        let filter = to_filter(tool, Some(matching));
        self.host
            .service(APPEND, &ObjectsChange { filter, objects, ..ObjectsChange::default() })
            .await
    }

    /// Returns a tool's items, or `None` if it never added any.
    ///
    /// # Errors
    /// `limit_reached` if there are too many items for one answer; `unavailable` as
    /// [`Objects::result`].
    pub async fn get(&self, tool: Option<&str>) -> Result<Option<Vec<EnvironmentItem>>> {
        let found: ObjectItemsAnswer = self.host.service(GET, &to_filter(tool, None)).await?;
        Ok(found.items)
    }

    /// Returns the objects of all matching items, or of all the tool's items without a filter.
    /// Returns `None` if no item matches.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_objects(
        &self,
        tool: Option<&str>,
        matching: Option<ItemMatcher>,
    ) -> Result<Option<Vec<Object>>> {
        let found: ObjectsAnswer =
            self.host.service(GET_OBJECTS, &to_filter(tool, matching)).await?;
        Ok(found.objects)
    }

    /// Replaces the objects of all matching items with these, each written as `json!({…})`.
    ///
    /// # Errors
    /// As [`Objects::append`].
    pub async fn replace<O: Into<Value>>(
        &self,
        tool: Option<&str>,
        matching: ItemMatcher,
        objects: impl IntoIterator<Item = O>,
    ) -> Result<ObjectsChangeAnswer> {
        let objects = to_objects(objects)?;
        let filter = to_filter(tool, Some(matching));
        self.host
            .service(REPLACE, &ObjectsChange { filter, objects, ..ObjectsChange::default() })
            .await
    }

    /// Removes the objects of all matching items, or of all the tool's items without a filter. The
    /// items remain, with their metadata.
    ///
    /// # Errors
    /// As [`Objects::append`].
    pub async fn remove(
        &self,
        tool: Option<&str>,
        matching: Option<ItemMatcher>,
    ) -> Result<ObjectsChangeAnswer> {
        self.host.service(REMOVE, &to_filter(tool, matching)).await
    }

    /// Returns true if the tool has no objects. Without a tool, returns true if no tool has any.
    ///
    /// # Errors
    /// `unavailable` as [`Objects::result`].
    pub async fn is_empty(&self, tool: Option<&str>) -> Result<bool> {
        let asked = ObjectsFilter { tool: tool.map(str::to_owned), ..ObjectsFilter::default() };
        let empty: ObjectsEmptyAnswer = self.host.service(IS_EMPTY, &asked).await?;
        Ok(empty.is_empty)
    }

    /// Returns a hidden value. All trusted plugins of a session share the keys. An untrusted plugin
    /// has its own.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn hidden(&self, key: &str) -> Result<Option<HiddenData>> {
        let asked = HiddenKey { key: key.to_owned(), ..HiddenKey::default() };
        let (found, bytes) = self.host.service_for_bytes(HIDDEN_GET, &asked, &[]).await?;
        Ok(hidden_from_answer(found, bytes))
    }

    /// Sets a hidden value, or removes it with `None`. Returns the previous value. Keep values of
    /// other types in the plugin's state, and store their key here.
    ///
    /// # Errors
    /// As [`Objects::result`].
    pub async fn set_hidden(
        &self,
        key: &str,
        value: Option<HiddenData>,
    ) -> Result<Option<HiddenData>> {
        let (value, bytes) = match value {
            None => (HiddenValueEncoding::default(), Vec::new()),
            Some(HiddenData::Json(json)) => (
                HiddenValueEncoding {
                    json: Some(json),
                    bytes: false,
                    ..HiddenValueEncoding::default()
                },
                Vec::new(),
            ),
            Some(HiddenData::Bytes(bytes)) => (
                HiddenValueEncoding { json: None, bytes: true, ..HiddenValueEncoding::default() },
                bytes,
            ),
        };
        let asked = HiddenSet { key: key.to_owned(), value, ..HiddenSet::default() };
        let (found, bytes) = self.host.service_for_bytes(HIDDEN_SET, &asked, &bytes).await?;
        Ok(hidden_from_answer(found, bytes))
    }
}

fn to_objects<O: Into<Value>>(objects: impl IntoIterator<Item = O>) -> Result<Vec<Object>> {
    objects.into_iter().map(to_object).collect()
}

fn to_filter(tool: Option<&str>, matching: Option<ItemMatcher>) -> ObjectsFilter {
    let mut filter = ObjectsFilter { tool: tool.map(str::to_owned), ..ObjectsFilter::default() };
    match matching {
        None => {}
        Some(ItemMatcher::Metadata(metadata)) => filter.metadata = Some(metadata),
        Some(ItemMatcher::Key(key, value)) => {
            (filter.metadata_key, filter.metadata_value) = (Some(key), Some(value));
        }
    }
    filter
}

fn hidden_from_answer(
    HiddenValueAnswer { value, .. }: HiddenValueAnswer,
    bytes: Vec<u8>,
) -> Option<HiddenData> {
    if value.bytes { Some(HiddenData::Bytes(bytes)) } else { value.json.map(HiddenData::Json) }
}
