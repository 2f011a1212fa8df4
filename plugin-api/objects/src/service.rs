//! The operations of the service `objects` on a session's environment: the same for every host.

use jaato_types::objects::{
    ADD, APPEND, GET, GET_OBJECTS, HIDDEN_GET, HIDDEN_SET, HiddenForm, HiddenFound, HiddenKey,
    HiddenSet, IS_EMPTY, ItemsFound, ObjectsAdd, ObjectsChange, ObjectsEmpty, ObjectsFilter,
    ObjectsFound, REMOVE, REPLACE, RESULT,
};
use jaato_types::{Error, ErrorKind, Frame, FrameError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Filter, HiddenValue, ObjectEnvironment};

/// What every operation of the service begins with.
const SERVICE: &str = "objects.";

/// Tells whether an operation is one of this service.
pub fn is_operation(operation: &str) -> bool {
    operation.starts_with(SERVICE)
}

/// Answers an operation for a call of a tool, under whose name objects stand that name none. A result is
/// added; to show it is the host's.
///
/// # Errors
/// What the environment answers; `invalid_arguments` for what cannot be read, `unknown_operation`.
pub fn answer(
    environment: &mut ObjectEnvironment,
    tool: &str,
    operation: &str,
    request: &[u8],
) -> Result<Vec<u8>> {
    match operation {
        RESULT | ADD => {
            let added: ObjectsAdd = read(request)?;
            let under = added.tool.clone();
            frame(&environment.add(named(&under, tool), added.into())?)
        }
        APPEND | REPLACE => {
            let ObjectsChange { filter: asked, objects } = read(request)?;
            let Some(filter) = filter_of(&asked)? else {
                return Err(Error::new(ErrorKind::InvalidArguments, "a filter is wanted")
                    .with_hint("give `metadata`, or `metadata_key` with `metadata_value`"));
            };
            let tool = named(&asked.tool, tool);
            frame(&match operation {
                APPEND => environment.append(tool, objects, &filter)?,
                _ => environment.replace(tool, objects, &filter)?,
            })
        }
        GET => {
            let asked: ObjectsFilter = read(request)?;
            frame(&ItemsFound { items: environment.get(named(&asked.tool, tool)) })
        }
        GET_OBJECTS => {
            let asked: ObjectsFilter = read(request)?;
            let filter = filter_of(&asked)?;
            let objects = environment.get_objects(named(&asked.tool, tool), filter.as_ref());
            frame(&ObjectsFound { objects })
        }
        REMOVE => {
            let asked: ObjectsFilter = read(request)?;
            let filter = filter_of(&asked)?;
            frame(&environment.remove(named(&asked.tool, tool), filter.as_ref())?)
        }
        IS_EMPTY => {
            let asked: ObjectsFilter = read(request)?;
            frame(&ObjectsEmpty { is_empty: environment.is_empty(asked.tool.as_deref()) })
        }
        HIDDEN_GET => {
            let HiddenKey { key } = read(request)?;
            hidden(environment.hidden().get(&key).cloned())
        }
        HIDDEN_SET => {
            let parsed = Frame::parse(request).map_err(bad_request)?;
            let HiddenSet { key, value } = parsed.json().map_err(bad_request)?;
            let value = match value {
                HiddenForm { bytes: true, .. } => Some(HiddenValue::Bytes(parsed.bytes.to_vec())),
                HiddenForm { json, .. } => json.map(HiddenValue::Json),
            };
            hidden(environment.set_hidden(&key, value)?)
        }
        other => {
            let text = format!("this host has no service `{other}`");
            Err(Error::new(ErrorKind::UnknownOperation, text))
        }
    }
}

/// The tool that is named, else the one that runs.
fn named<'a>(named: &'a Option<String>, running: &'a str) -> &'a str {
    named.as_deref().unwrap_or(running)
}

/// Writes a hidden value, its bytes behind the JSON.
fn hidden(value: Option<HiddenValue>) -> Result<Vec<u8>> {
    let (value, bytes) = match value {
        None => (HiddenForm::default(), Vec::new()),
        Some(HiddenValue::Json(value)) => {
            (HiddenForm { json: Some(value), bytes: false }, Vec::new())
        }
        Some(HiddenValue::Bytes(bytes)) => (HiddenForm { json: None, bytes: true }, bytes),
    };
    Frame::write_with_bytes(&HiddenFound { value }, &bytes).map_err(too_large)
}

fn filter_of(asked: &ObjectsFilter) -> Result<Option<Filter>> {
    let ObjectsFilter { metadata, metadata_key, metadata_value, .. } = asked.clone();
    Filter::of(metadata, metadata_key, metadata_value)
}

/// Reads a request; one without JSON asks for everything.
///
/// # Errors
/// `invalid_arguments`, where it cannot be read.
pub fn read<T: DeserializeOwned + Default>(request: &[u8]) -> Result<T> {
    let parsed = Frame::parse(request).map_err(bad_request)?;
    let asked: Option<T> = parsed.json().map_err(bad_request)?;
    Ok(asked.unwrap_or_default())
}

/// Writes an answer.
///
/// # Errors
/// `limit_reached`, where it is more than crosses at once.
pub fn frame<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    Frame::write(value).map_err(too_large)
}

/// What is asked for may be more than crosses at once.
fn too_large(error: FrameError) -> Error {
    Error::new(ErrorKind::LimitReached, error.to_string()).with_hint("ask for less, by a filter")
}

fn bad_request(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}
