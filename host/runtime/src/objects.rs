//! The operations of the service `objects`, for one call.

use jaato_loader::Served;
use jaato_objects::{Filter, HiddenValue};
use jaato_session::{SharedObjects, addition};
use jaato_types::objects::{
    ADD, APPEND, GET, GET_OBJECTS, HIDDEN_GET, HIDDEN_SET, HiddenForm, HiddenFound, HiddenKey,
    HiddenSet, IS_EMPTY, ItemsFound, ObjectsAdd, ObjectsChange, ObjectsEmpty, ObjectsFilter,
    ObjectsFound, REMOVE, REPLACE, RESULT,
};
use jaato_types::{Error, ErrorKind, Frame, FrameError};
use serde::Serialize;

/// The objects of a session, as one call of a plugin has them.
#[derive(Clone)]
pub struct CallObjects {
    /// The session's.
    pub shared: SharedObjects,
    /// The tool that runs; the command's name where it is none.
    pub tool: String,
}

impl CallObjects {
    /// Answers an operation; none for a name that is not of this service. `source` is the plugin's name
    /// without its kind.
    pub fn call(
        &self,
        source: &str,
        operation: &str,
        request: &[u8],
    ) -> Option<Result<Served, Error>> {
        Some(match operation {
            RESULT | ADD => self.add(source, operation == RESULT, request),
            APPEND => self.change(request, |objects, tool, change, filter| {
                objects.append(tool, change, filter)
            }),
            REPLACE => self.change(request, |objects, tool, change, filter| {
                objects.replace(tool, change, filter)
            }),
            GET => self.look(request, |objects, tool, _| ItemsFound { items: objects.get(tool) }),
            GET_OBJECTS => self.look(request, |objects, tool, filter| ObjectsFound {
                objects: objects.get_objects(tool, filter),
            }),
            REMOVE => self.remove(request),
            IS_EMPTY => self.is_empty(request),
            HIDDEN_GET => self.hidden(request),
            HIDDEN_SET => self.hide(request),
            _ => return None,
        })
    }

    fn add(&self, source: &str, is_result: bool, request: &[u8]) -> Result<Served, Error> {
        let added: ObjectsAdd = read(request)?;
        let tool = self.tool_of(added.tool.as_ref()).to_owned();
        frame(&match is_result {
            true => self.shared.result(source, &tool, added)?,
            false => self.shared.with(|objects| objects.add(&tool, addition(added)))?,
        })
    }

    fn change(
        &self,
        request: &[u8],
        change: impl FnOnce(
            &mut jaato_objects::ObjectEnvironment,
            &str,
            Vec<jaato_objects::Object>,
            &Filter,
        ) -> Result<jaato_types::objects::ObjectsChanged, Error>,
    ) -> Result<Served, Error> {
        let ObjectsChange { filter: asked, objects } = read(request)?;
        let Some(filter) = filter_of(&asked)? else {
            return Err(Error::new(ErrorKind::InvalidArguments, "a filter is wanted")
                .with_hint("give `metadata`, or `metadata_key` with `metadata_value`"));
        };
        let tool = self.tool_of(asked.tool.as_ref());
        frame(&self.shared.with(|all| change(all, tool, objects, &filter))?)
    }

    fn look<T: Serialize>(
        &self,
        request: &[u8],
        look: impl FnOnce(&jaato_objects::ObjectEnvironment, &str, Option<&Filter>) -> T,
    ) -> Result<Served, Error> {
        let asked: ObjectsFilter = read(request)?;
        let filter = filter_of(&asked)?;
        let tool = self.tool_of(asked.tool.as_ref());
        frame(&self.shared.with(|objects| look(objects, tool, filter.as_ref())))
    }

    fn remove(&self, request: &[u8]) -> Result<Served, Error> {
        let asked: ObjectsFilter = read(request)?;
        let filter = filter_of(&asked)?;
        let tool = self.tool_of(asked.tool.as_ref());
        frame(&self.shared.with(|objects| objects.remove(tool, filter.as_ref()))?)
    }

    fn is_empty(&self, request: &[u8]) -> Result<Served, Error> {
        let asked: ObjectsFilter = read(request)?;
        let is_empty = self.shared.with(|objects| objects.is_empty(asked.tool.as_deref()));
        frame(&ObjectsEmpty { is_empty })
    }

    fn hidden(&self, request: &[u8]) -> Result<Served, Error> {
        let HiddenKey { key } = read(request)?;
        found(self.shared.with(|objects| objects.hidden().get(&key).cloned()))
    }

    fn hide(&self, request: &[u8]) -> Result<Served, Error> {
        let parsed = Frame::parse(request).map_err(bad_request)?;
        let HiddenSet { key, value } = parsed.json().map_err(bad_request)?;
        let value = match value {
            HiddenForm { bytes: true, .. } => Some(HiddenValue::Bytes(parsed.bytes.to_vec())),
            HiddenForm { json, .. } => json.map(HiddenValue::Json),
        };
        found(self.shared.with(|objects| objects.set_hidden(&key, value))?)
    }

    fn tool_of<'a>(&'a self, named: Option<&'a String>) -> &'a str {
        named.map_or(self.tool.as_str(), String::as_str)
    }
}

/// Writes a hidden value, its bytes behind the JSON.
fn found(value: Option<HiddenValue>) -> Result<Served, Error> {
    let (value, bytes) = match value {
        None => (HiddenForm::default(), Vec::new()),
        Some(HiddenValue::Json(value)) => {
            (HiddenForm { json: Some(value), bytes: false }, Vec::new())
        }
        Some(HiddenValue::Bytes(bytes)) => (HiddenForm { json: None, bytes: true }, bytes),
    };
    let written = Frame::write_with_bytes(&HiddenFound { value }, &bytes);
    written.map(Served::Frame).map_err(too_large)
}

fn filter_of(asked: &ObjectsFilter) -> Result<Option<Filter>, Error> {
    let ObjectsFilter { metadata, metadata_key, metadata_value, .. } = asked.clone();
    Filter::of(metadata, metadata_key, metadata_value)
}

/// Reads a request; one without JSON asks for everything.
fn read<T: serde::de::DeserializeOwned + Default>(request: &[u8]) -> Result<T, Error> {
    let parsed = Frame::parse(request).map_err(bad_request)?;
    let asked: Option<T> = parsed.json().map_err(bad_request)?;
    Ok(asked.unwrap_or_default())
}

fn frame<T: Serialize>(value: &T) -> Result<Served, Error> {
    Frame::write(value).map(Served::Frame).map_err(too_large)
}

/// What is asked for may be more than crosses at once.
fn too_large(error: FrameError) -> Error {
    Error::new(ErrorKind::LimitReached, error.to_string()).with_hint("ask for less, by a filter")
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}
