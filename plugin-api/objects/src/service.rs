//! The operations of the service `objects` on a session's environment, shared by all hosts.

use jaato_types::objects::{
    ADD, APPEND, CLEAR, GET, GET_OBJECTS, HIDDEN_GET, HIDDEN_KEYS, HIDDEN_SET, HiddenKey,
    HiddenKeys, HiddenSet, HiddenValueAnswer, HiddenValueEncoding, IS_EMPTY, Object,
    ObjectItemsAnswer, ObjectToolsAnswer, ObjectsAdd, ObjectsAnswer, ObjectsClear,
    ObjectsEmptyAnswer, ObjectsFilter, REMOVE, REPLACE, RESULT, TOOLS,
};
use jaato_types::{Error, ErrorKind, Frame, FrameError, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{HiddenValue, ItemFilter, ObjectEnvironment};

/// The prefix of all operations of the service.
const SERVICE: &str = "objects.";

/// The caller of an operation.
#[derive(Debug, Clone, Copy)]
pub struct ObjectsCaller<'a> {
    /// The running tool. It owns the objects if a request does not name a tool.
    pub tool: &'a str,
    /// The objects and hidden values that the caller can access.
    pub reach: ObjectsAccess<'a>,
}

/// The objects and hidden values that a plugin can access.
#[derive(Debug, Clone, Copy)]
pub enum ObjectsAccess<'a> {
    /// Those of all tools.
    All,
    /// Those of its own tools. Its hidden values are separate from those of other plugins.
    Own {
        /// The plugin's name.
        plugin: &'a str,
        /// Its tools.
        tools: &'a [String],
    },
}

impl<'a> ObjectsCaller<'a> {
    /// Returns the tool whose objects a request concerns: the named one, or the running one.
    ///
    /// # Errors
    /// `permission_denied` for a tool that the caller cannot access.
    pub fn target_tool<'b>(&self, named: Option<&'b str>) -> Result<&'b str>
    where
        'a: 'b,
    {
        let tool = named.unwrap_or(self.tool);
        match self.reach {
            ObjectsAccess::Own { plugin, tools } if !tools.iter().any(|own| own == tool) => {
                let text = format!(
                    "plugin `{plugin}` is not trusted: it can access only the objects of its own tools, not those of `{tool}`"
                );
                Err(Error::new(ErrorKind::PermissionDenied, text)
                    .with_hint("`jaato plugin list` shows how to trust it"))
            }
            ObjectsAccess::All | ObjectsAccess::Own { .. } => Ok(tool),
        }
    }

    fn is_empty(&self, environment: &ObjectEnvironment, named: Option<&str>) -> Result<bool> {
        match (named, self.reach) {
            (None, ObjectsAccess::Own { tools, .. }) => {
                Ok(tools.iter().all(|tool| environment.is_empty(Some(tool))))
            }
            (None, ObjectsAccess::All) => Ok(environment.is_empty(None)),
            (Some(_), _) => Ok(environment.is_empty(Some(self.target_tool(named)?))),
        }
    }

    fn can_reach(&self, tool: &str) -> bool {
        self.target_tool(Some(tool)).is_ok()
    }

    /// Lists the accessible keys, by the caller's names for them.
    fn visible_hidden_keys(&self, environment: &ObjectEnvironment) -> Vec<String> {
        let keys = environment.hidden_values().keys();
        match self.reach {
            ObjectsAccess::All => keys.cloned().collect(),
            ObjectsAccess::Own { plugin, .. } => {
                let own =
                    |key: &String| Some(key.strip_prefix(plugin)?.strip_prefix('/')?.to_owned());
                keys.filter_map(own).collect()
            }
        }
    }

    /// Returns the key under which a hidden value is stored. No plugin's name contains a `/`.
    fn stored_hidden_key(&self, key: String) -> String {
        match self.reach {
            ObjectsAccess::All => key,
            ObjectsAccess::Own { plugin, .. } => format!("{plugin}/{key}"),
        }
    }
}

/// Returns true if an operation belongs to this service.
pub fn is_operation(operation: &str) -> bool {
    operation.starts_with(SERVICE)
}

/// Answers an operation for a tool call. A result is added here, but the host must show it.
///
/// # Errors
/// Errors of the environment; `permission_denied` for objects that the caller cannot access,
/// `invalid_arguments` for a request that cannot be parsed, `unknown_operation`.
pub fn answer_operation(
    environment: &mut ObjectEnvironment,
    asker: &ObjectsCaller<'_>,
    operation: &str,
    request: &[u8],
) -> Result<Vec<u8>> {
    match operation {
        RESULT | ADD => {
            let added: ObjectsAdd = read_request(request)?;
            let under = added.tool.clone();
            write_frame(&environment.add(asker.target_tool(under.as_deref())?, added.into())?)
        }
        APPEND | REPLACE => answer_change(environment, asker, operation, request),
        GET => {
            let asked: ObjectsFilter = read_request(request)?;
            let tool = asker.target_tool(asked.tool.as_deref())?;
            write_frame(&ObjectItemsAnswer {
                items: environment.get(tool),
                ..ObjectItemsAnswer::default()
            })
        }
        GET_OBJECTS => {
            let asked: ObjectsFilter = read_request(request)?;
            let filter = filter_from_request(&asked)?;
            let tool = asker.target_tool(asked.tool.as_deref())?;
            let objects = environment.get_objects(tool, filter.as_ref());
            write_frame(&ObjectsAnswer { objects, ..ObjectsAnswer::default() })
        }
        REMOVE => {
            let asked: ObjectsFilter = read_request(request)?;
            let filter = filter_from_request(&asked)?;
            write_frame(
                &environment.remove(asker.target_tool(asked.tool.as_deref())?, filter.as_ref())?,
            )
        }
        IS_EMPTY => {
            let asked: ObjectsFilter = read_request(request)?;
            let is_empty = asker.is_empty(environment, asked.tool.as_deref())?;
            write_frame(&ObjectsEmptyAnswer { is_empty, ..ObjectsEmptyAnswer::default() })
        }
        TOOLS => {
            let mut tools = environment.tools();
            tools.retain(|facts| asker.can_reach(&facts.tool));
            write_frame(&ObjectToolsAnswer { tools, ..ObjectToolsAnswer::default() })
        }
        CLEAR => clear_objects(environment, asker, request),
        HIDDEN_KEYS => {
            let keys = asker.visible_hidden_keys(environment);
            write_frame(&HiddenKeys { keys, ..HiddenKeys::default() })
        }
        HIDDEN_GET => {
            let HiddenKey { key, .. } = read_request(request)?;
            hidden_frame(environment.hidden_values().get(&asker.stored_hidden_key(key)).cloned())
        }
        HIDDEN_SET => {
            let parsed = Frame::parse(request).map_err(bad_request_error)?;
            let HiddenSet { key, value, .. } = parsed.json().map_err(bad_request_error)?;
            let value = match value {
                HiddenValueEncoding { bytes: true, .. } => {
                    Some(HiddenValue::Bytes(parsed.bytes.to_vec()))
                }
                HiddenValueEncoding { json, .. } => json.map(HiddenValue::Json),
            };
            hidden_frame(environment.set_hidden(&asker.stored_hidden_key(key), value)?)
        }
        other => {
            let text = format!("this host has no service `{other}`");
            Err(Error::new(ErrorKind::UnknownOperation, text))
        }
    }
}

fn answer_change(
    environment: &mut ObjectEnvironment,
    asker: &ObjectsCaller<'_>,
    operation: &str,
    request: &[u8],
) -> Result<Vec<u8>> {
    let ObjectsChangeRequest { filter: asked, objects } = read_request(request)?;
    let Some(objects) = objects else {
        return Err(Error::new(ErrorKind::InvalidArguments, "`objects` are missing")
            .with_hint("use `objects.remove` to remove the objects of an item"));
    };
    let Some(filter) = filter_from_request(&asked)? else {
        return Err(Error::new(ErrorKind::InvalidArguments, "a filter is missing")
            .with_hint("give `metadata`, or `metadata_key` with `metadata_value`"));
    };
    let tool = asker.target_tool(asked.tool.as_deref())?;
    write_frame(&match operation {
        APPEND => environment.append(tool, objects, &filter)?,
        _ => environment.replace(tool, objects, &filter)?,
    })
}

fn clear_objects(
    environment: &mut ObjectEnvironment,
    asker: &ObjectsCaller<'_>,
    request: &[u8],
) -> Result<Vec<u8>> {
    let ObjectsClear { hidden, .. } = read_request(request)?;
    let keys = if hidden { asker.visible_hidden_keys(environment) } else { Vec::new() };
    for key in keys {
        environment.set_hidden(&asker.stored_hidden_key(key), None)?;
    }
    write_frame(&environment.clear(match asker.reach {
        ObjectsAccess::All => None,
        ObjectsAccess::Own { tools, .. } => Some(tools),
    }))
}

/// An `ObjectsChange` that distinguishes missing objects from an empty list, because a request
/// without objects must not empty an item.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectsChangeRequest {
    #[serde(flatten)]
    filter: ObjectsFilter,
    objects: Option<Vec<Object>>,
}

/// Writes a hidden value, with its bytes after the JSON.
fn hidden_frame(value: Option<HiddenValue>) -> Result<Vec<u8>> {
    let (value, bytes) = match value {
        None => (HiddenValueEncoding::default(), Vec::new()),
        Some(HiddenValue::Json(value)) => (
            HiddenValueEncoding {
                json: Some(value),
                bytes: false,
                ..HiddenValueEncoding::default()
            },
            Vec::new(),
        ),
        Some(HiddenValue::Bytes(bytes)) => (
            HiddenValueEncoding { json: None, bytes: true, ..HiddenValueEncoding::default() },
            bytes,
        ),
    };
    Frame::write_with_bytes(&HiddenValueAnswer { value, ..HiddenValueAnswer::default() }, &bytes)
        .map_err(too_large_error)
}

fn filter_from_request(asked: &ObjectsFilter) -> Result<Option<ItemFilter>> {
    let ObjectsFilter { metadata, metadata_key, metadata_value, .. } = asked.clone();
    ItemFilter::from_request(metadata, metadata_key, metadata_value)
}

/// Parses a request. A request without JSON is the default.
///
/// # Errors
/// `invalid_arguments` if the request cannot be parsed.
pub fn read_request<T: DeserializeOwned + Default>(request: &[u8]) -> Result<T> {
    let parsed = Frame::parse(request).map_err(bad_request_error)?;
    let asked: Option<T> = parsed.json().map_err(bad_request_error)?;
    Ok(asked.unwrap_or_default())
}

/// Writes an answer to a frame.
///
/// # Errors
/// `limit_reached` if the answer does not fit into a frame.
pub fn write_frame<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    Frame::write(value).map_err(too_large_error)
}

/// The requested data may exceed a frame.
fn too_large_error(error: FrameError) -> Error {
    Error::new(ErrorKind::LimitReached, error.to_string()).with_hint("request less with a filter")
}

fn bad_request_error(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

#[cfg(test)]
mod tests {
    use jaato_types::objects::ObjectsChangeAnswer;
    use serde_json::{Value, json};

    use super::*;

    /// Creates a caller: the tool `query`, the only one of a trusted or untrusted plugin.
    fn query_objects(
        environment: &mut ObjectEnvironment,
        is_trusted: bool,
        operation: &str,
        request: Value,
    ) -> Result<Value> {
        let tools = ["query".to_owned()];
        let own = ObjectsAccess::Own { plugin: "tool-query", tools: &tools };
        let asker = ObjectsCaller {
            tool: "query",
            reach: if is_trusted { ObjectsAccess::All } else { own },
        };
        let answer =
            answer_operation(environment, &asker, operation, &Frame::write(&request).unwrap())?;
        Ok(Frame::read(&answer).unwrap())
    }

    #[test]
    fn untrusted_plugin_accesses_objects_of_its_own_tools_only() {
        let mut all = ObjectEnvironment::default();
        let theirs = json!({ "tool": "search", "objects": [{ "a": 1 }], "metadata": { "m": 1 } });
        query_objects(&mut all, true, ADD, theirs.clone()).unwrap();
        let filter = json!({ "tool": "search", "metadata_key": "m", "metadata_value": 1 });
        let mut change = filter.clone();
        change["objects"] = json!([]);
        let before = all.save();
        for (operation, request) in [
            (RESULT, theirs.clone()),
            (ADD, theirs),
            (APPEND, change.clone()),
            (REPLACE, change),
            (GET, json!({ "tool": "search" })),
            (GET_OBJECTS, filter.clone()),
            (REMOVE, filter),
            (IS_EMPTY, json!({ "tool": "search" })),
        ] {
            let refused = query_objects(&mut all, false, operation, request).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::PermissionDenied, "{operation}");
            assert!(refused.message.contains("not those of `search`"), "{refused}");
        }
        assert_eq!(all.save(), before, "nothing has changed");
        assert_eq!(query_objects(&mut all, false, IS_EMPTY, json!({})).unwrap()["is_empty"], true);
        let own = json!({ "objects": [{ "b": 1 }] });
        let added = query_objects(&mut all, false, ADD, own).unwrap();
        let added: ObjectsChangeAnswer = serde_json::from_value(added).unwrap();
        assert_eq!(added.references, ["query_1"]);
        assert_eq!(query_objects(&mut all, false, IS_EMPTY, json!({})).unwrap()["is_empty"], false);
        let named =
            query_objects(&mut all, false, GET_OBJECTS, json!({ "tool": "query" })).unwrap();
        assert_eq!(named["objects"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn hidden_values_of_an_untrusted_plugin_are_separate() {
        let mut all = ObjectEnvironment::default();
        let key = json!({ "key": "raw" });
        query_objects(&mut all, true, HIDDEN_SET, json!({ "key": "raw", "json": "theirs" }))
            .unwrap();
        assert_eq!(query_objects(&mut all, false, HIDDEN_GET, key.clone()).unwrap(), json!({}));
        query_objects(&mut all, false, HIDDEN_SET, json!({ "key": "raw", "json": "its" })).unwrap();
        let own = query_objects(&mut all, false, HIDDEN_GET, key.clone()).unwrap();
        assert_eq!(own, json!({ "json": "its" }));
        let theirs = query_objects(&mut all, true, HIDDEN_GET, key).unwrap();
        assert_eq!(theirs, json!({ "json": "theirs" }));
        query_objects(&mut all, false, HIDDEN_SET, json!({ "key": "raw" })).unwrap();
        assert_eq!(all.hidden_values().keys().collect::<Vec<_>>(), ["raw"]);
    }

    #[test]
    fn untrusted_plugin_lists_and_clears_only_its_own_tools_and_keys() {
        let mut all = ObjectEnvironment::default();
        let row = |tool: &str, at: u64| json!({ "tool": tool, "objects": [{ "a": at }, { "a": at }], "metadata": { "at": at } });
        for (tool, at) in [("search", 1), ("query", 1), ("query", 2)] {
            query_objects(&mut all, true, ADD, row(tool, at)).unwrap();
        }
        query_objects(&mut all, true, HIDDEN_SET, json!({ "key": "raw", "json": 1 })).unwrap();
        query_objects(&mut all, false, HIDDEN_SET, json!({ "key": "raw", "json": 2 })).unwrap();
        let search = json!({ "tool": "search", "items": 1, "objects": 2 });
        let query = json!({ "tool": "query", "items": 2, "objects": 4 });
        let nothing = Value::Null;
        let tools = |all: &mut _, is_trusted| {
            query_objects(all, is_trusted, TOOLS, Value::Null).unwrap()["tools"].clone()
        };
        assert_eq!(tools(&mut all, true), json!([search, query]));
        assert_eq!(tools(&mut all, false), json!([query]), "its own alone");
        let keys = |all: &mut _, is_trusted| {
            query_objects(all, is_trusted, HIDDEN_KEYS, Value::Null).unwrap()
        };
        assert_eq!(keys(&mut all, true), json!({ "keys": ["raw", "tool-query/raw"] }));
        assert_eq!(keys(&mut all, false), json!({ "keys": ["raw"] }));

        let cleared = query_objects(&mut all, false, CLEAR, json!({ "hidden": true })).unwrap();
        assert_eq!(cleared["matched"], 2);
        let emptied = json!({ "tool": "query", "items": 2, "objects": 0 });
        assert_eq!(tools(&mut all, true), json!([search, emptied]), "metadata stays");
        assert_eq!(keys(&mut all, true), json!({ "keys": ["raw"] }));
        assert_eq!(query_objects(&mut all, true, CLEAR, nothing).unwrap()["matched"], 1);
        assert!(all.is_empty(None));
        assert_eq!(
            keys(&mut all, true),
            json!({ "keys": ["raw"] }),
            "hidden values stay unless asked"
        );
        let again = all.revision();
        assert_eq!(
            query_objects(&mut all, true, CLEAR, json!({ "hidden": true })).unwrap()["matched"],
            0
        );
        assert_eq!(all.revision(), again, "nothing is new to the model");
        assert!(all.hidden_values().is_empty());
    }

    #[test]
    fn a_change_without_objects_is_refused() {
        let mut all = ObjectEnvironment::default();
        let added = json!({ "objects": [{ "a": 1 }], "metadata": { "m": 1 } });
        query_objects(&mut all, true, ADD, added).unwrap();
        for operation in [APPEND, REPLACE] {
            let filter = json!({ "metadata_key": "m", "metadata_value": 1 });
            let refused = query_objects(&mut all, true, operation, filter).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::InvalidArguments, "{operation}");
        }
        assert!(!all.is_empty(None));
    }
}
