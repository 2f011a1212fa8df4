//! The session's object environment, as a tool or a command uses it: [`Objects`].

use jaato_types::objects::{
    ADD, APPEND, EnvironmentItem, GET, GET_OBJECTS, HIDDEN_GET, HIDDEN_SET, HiddenForm,
    HiddenFound, HiddenKey, HiddenKeys, HiddenSet, IS_EMPTY, ItemsFound, Object, ObjectsAdd,
    ObjectsChange, ObjectsChanged, ObjectsClear, ObjectsEmpty, ObjectsFilter, ObjectsFound, REMOVE,
    REPLACE, RESULT, ToolObjects, ToolsFound,
};
use jaato_types::{Result, to_object};
use serde_json::{Map, Value};

use crate::context::Reporter;

/// What tools put in front of the model across a session, and what they keep hidden beside it.
///
/// Objects are grouped by tool; where no tool is named it is the one that runs. Everything that
/// comes out is a copy: what changes, changes by these methods.
pub struct Objects<'a> {
    host: &'a Reporter,
}

/// Which items of a tool are meant.
#[derive(Debug, Clone, PartialEq)]
pub enum Matching {
    /// Those whose whole metadata this is.
    Metadata(Map<String, Value>),
    /// Those that have this value under this key of their metadata.
    Key(String, Value),
}

impl Matching {
    /// Means the items whose whole metadata this is, written as `json!({…})`.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no object.
    pub fn metadata(metadata: impl Into<Value>) -> Result<Self> {
        to_object(metadata).map(Self::Metadata)
    }

    /// Means the items that have this value under this key of their metadata.
    pub fn key(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::Key(key.into(), value.into())
    }
}

/// What can stand as a result: a type of a plugin's own, which knows its objects, their metadata
/// and how clients are shown them.
pub trait IntoObjects: Send {
    /// Makes the objects of it.
    ///
    /// # Errors
    /// What the type says; `invalid_arguments` for what is no object.
    fn into_objects(self) -> Result<ObjectsAdd>;
}

impl IntoObjects for ObjectsAdd {
    fn into_objects(self) -> Result<Self> {
        Ok(self)
    }
}

/// A hidden value.
#[derive(Debug, Clone, PartialEq)]
pub enum Hidden {
    /// JSON.
    Json(Value),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Reporter {
    /// Reaches the session's objects. For tools and commands; others are answered `unavailable`.
    pub fn objects(&self) -> Objects<'_> {
        Objects { host: self }
    }
}

impl Objects<'_> {
    jaato_types::object_operations!(methods [.host]);

    /// Puts a result in front of the model and shows it at once to whoever follows the session. May
    /// be called as often as the tool has something.
    ///
    /// # Errors
    /// `limit_reached` when the session has too many; `unavailable` outside of tools and commands.
    pub async fn result(&self, result: impl IntoObjects) -> Result<ObjectsChanged> {
        self.host.service(RESULT, &result.into_objects()?).await
    }

    /// Adds objects without showing them to anybody but the model.
    ///
    /// # Errors
    /// As [`Objects::result`].
    pub async fn add(&self, addition: impl IntoObjects) -> Result<ObjectsChanged> {
        self.host.service(ADD, &addition.into_objects()?).await
    }

    /// Adds objects, each written as `json!({…})`, to the first item that matches.
    ///
    /// # Errors
    /// `not_found` when none does, `invalid_arguments` for what is no object; else as
    /// [`Objects::result`].
    pub async fn append<O: Into<Value>>(
        &self,
        tool: Option<&str>,
        matching: Matching,
        objects: impl IntoIterator<Item = O>,
    ) -> Result<ObjectsChanged> {
        let objects = all(objects)?;
        let filter = filter(tool, Some(matching));
        self.host
            .service(APPEND, &ObjectsChange { filter, objects, ..ObjectsChange::default() })
            .await
    }

    /// Returns a tool's items; none where it never put one there.
    ///
    /// # Errors
    /// `limit_reached` when they are too many to be had at once; `unavailable` as
    /// [`Objects::result`].
    pub async fn get(&self, tool: Option<&str>) -> Result<Option<Vec<EnvironmentItem>>> {
        let found: ItemsFound = self.host.service(GET, &filter(tool, None)).await?;
        Ok(found.items)
    }

    /// Returns the objects of all items that match, of all items of the tool without a filter; none
    /// where no item does.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn get_objects(
        &self,
        tool: Option<&str>,
        matching: Option<Matching>,
    ) -> Result<Option<Vec<Object>>> {
        let found: ObjectsFound = self.host.service(GET_OBJECTS, &filter(tool, matching)).await?;
        Ok(found.objects)
    }

    /// Puts objects, each written as `json!({…})`, in place of those of every item that matches.
    ///
    /// # Errors
    /// As [`Objects::append`].
    pub async fn replace<O: Into<Value>>(
        &self,
        tool: Option<&str>,
        matching: Matching,
        objects: impl IntoIterator<Item = O>,
    ) -> Result<ObjectsChanged> {
        let objects = all(objects)?;
        let filter = filter(tool, Some(matching));
        self.host
            .service(REPLACE, &ObjectsChange { filter, objects, ..ObjectsChange::default() })
            .await
    }

    /// Takes the objects out of every item that matches, of all items of the tool without a filter.
    /// Items stay, with their metadata.
    ///
    /// # Errors
    /// As [`Objects::append`].
    pub async fn remove(
        &self,
        tool: Option<&str>,
        matching: Option<Matching>,
    ) -> Result<ObjectsChanged> {
        self.host.service(REMOVE, &filter(tool, matching)).await
    }

    /// Tells whether a tool has no object, or with none whether nobody has.
    ///
    /// # Errors
    /// `unavailable` as [`Objects::result`].
    pub async fn is_empty(&self, tool: Option<&str>) -> Result<bool> {
        let asked = ObjectsFilter { tool: tool.map(str::to_owned), ..ObjectsFilter::default() };
        let empty: ObjectsEmpty = self.host.service(IS_EMPTY, &asked).await?;
        Ok(empty.is_empty)
    }

    /// Returns a hidden value. All trusted plugins of a session share the keys; one that is not
    /// trusted has its own.
    ///
    /// # Errors
    /// As [`Objects::get`].
    pub async fn hidden(&self, key: &str) -> Result<Option<Hidden>> {
        let asked = HiddenKey { key: key.to_owned(), ..HiddenKey::default() };
        let (found, bytes) = self.host.service_for_bytes(HIDDEN_GET, &asked, &[]).await?;
        Ok(hidden(found, bytes))
    }

    /// Keeps a hidden value; none takes it away. Returns what was there. What cannot be one of
    /// these stays in the plugin's state, under a key that is kept here.
    ///
    /// # Errors
    /// As [`Objects::result`].
    pub async fn set_hidden(&self, key: &str, value: Option<Hidden>) -> Result<Option<Hidden>> {
        let (value, bytes) = match value {
            None => (HiddenForm::default(), Vec::new()),
            Some(Hidden::Json(json)) => {
                (HiddenForm { json: Some(json), bytes: false, ..HiddenForm::default() }, Vec::new())
            }
            Some(Hidden::Bytes(bytes)) => {
                (HiddenForm { json: None, bytes: true, ..HiddenForm::default() }, bytes)
            }
        };
        let asked = HiddenSet { key: key.to_owned(), value, ..HiddenSet::default() };
        let (found, bytes) = self.host.service_for_bytes(HIDDEN_SET, &asked, &bytes).await?;
        Ok(hidden(found, bytes))
    }
}

fn all<O: Into<Value>>(objects: impl IntoIterator<Item = O>) -> Result<Vec<Object>> {
    objects.into_iter().map(to_object).collect()
}

fn filter(tool: Option<&str>, matching: Option<Matching>) -> ObjectsFilter {
    let mut filter = ObjectsFilter { tool: tool.map(str::to_owned), ..ObjectsFilter::default() };
    match matching {
        None => {}
        Some(Matching::Metadata(metadata)) => filter.metadata = Some(metadata),
        Some(Matching::Key(key, value)) => {
            (filter.metadata_key, filter.metadata_value) = (Some(key), Some(value));
        }
    }
    filter
}

fn hidden(HiddenFound { value, .. }: HiddenFound, bytes: Vec<u8>) -> Option<Hidden> {
    if value.bytes { Some(Hidden::Bytes(bytes)) } else { value.json.map(Hidden::Json) }
}
