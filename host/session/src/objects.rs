//! The session's object environment: calls fill it, the model sees it, and clients follow it.
//!
//! The model sees the objects that are new since it last looked, after the results or before the
//! prompt of its next request. They are data that stays in the history, so that earlier requests
//! remain the beginning of later ones. After a gc has removed messages, all objects count as new
//! again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jaato_objects::{ItemFilter, ObjectEnvironment, ObjectSelection};
use jaato_types::objects::{ObjectsAdd, ObjectsChangeAnswer, ObjectsFilter};
use jaato_types::touches::KEYWORD;
use jaato_types::{
    DataContent, DataPart, Error, ErrorKind, Event, Output, Part, Result, ToolCall, ToolSpec,
};
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Map, json};

use crate::KnownTool;
use crate::events::EventEmitter;
use crate::introspection;
use crate::session::InitialObjects;

/// The name of the tool with which a model looks at objects. It is offered once there are some.
pub const VIEW_ENVIRONMENT: &str = "view_environment";

/// How many objects one call of [`VIEW_ENVIRONMENT`] returns by default.
const VIEWED_OBJECTS: usize = 50;

/// The media type of objects for the model.
const SHOWN_TYPE: &str = "application/json";

/// A handle on a session's objects. Clones share them, so calls can fill them while a turn runs.
#[derive(Clone)]
pub struct SharedObjects {
    store: Arc<SharedObjectsInner>,
    /// The revision that the session's model has seen.
    seen: Arc<AtomicU64>,
}

struct SharedObjectsInner {
    emitter: EventEmitter,
    environment: Mutex<ObjectEnvironment>,
}

impl SharedObjects {
    pub(crate) fn new(environment: ObjectEnvironment, emitter: EventEmitter) -> Self {
        let store = Arc::new(SharedObjectsInner { emitter, environment: Mutex::new(environment) });
        Self { store, seen: Arc::default() }
    }

    /// Copies the objects for another session.
    pub fn copy_objects(&self) -> InitialObjects {
        InitialObjects::Own(self.lock_environment().clone())
    }

    /// Returns the same objects for another session, whose model has seen none of them.
    pub(crate) fn for_other_session(&self) -> Self {
        Self { store: Arc::clone(&self.store), seen: Arc::default() }
    }

    /// Reads or changes the objects. They are locked during `work`, so it must be short.
    pub fn with_objects<T>(&self, work: impl FnOnce(&mut ObjectEnvironment) -> T) -> T {
        work(&mut self.lock_environment())
    }

    /// Adds the objects of a tool's result, and emits an event. A result without objects emits
    /// nothing. A result whose objects were all there before emits an event, because the user may
    /// have asked to see them again.
    ///
    /// # Errors
    /// As [`ObjectEnvironment::add`], without an event.
    pub fn add_result(
        &self,
        source: &str,
        tool: &str,
        result: ObjectsAdd,
    ) -> Result<ObjectsChangeAnswer> {
        let mut shown = result.clone();
        let mut environment = self.lock_environment();
        let changed = environment.add(tool, result.into())?;
        let mut objects = std::mem::take(&mut shown.objects);
        if objects.is_empty() {
            return Ok(changed);
        }
        for (object, reference) in objects.iter_mut().zip(&changed.references) {
            object.insert(jaato_objects::REFERENCE_KEY.to_owned(), reference.clone().into());
            *object = shown.map_object(object);
        }
        // Emitted under the lock, so that clients see results in the order in which they were
        // stored.
        self.store.emitter.emit(Event::ObjectsAdded {
            source: source.to_owned(),
            tool: tool.to_owned(),
            name: shown.name,
            metadata: shown.metadata,
            objects,
            payload_type: shown.payload_type,
            text: shown.text,
        });
        Ok(changed)
    }

    /// Returns the objects that the model has not seen, as a part of its next message.
    pub(crate) fn unseen_objects(&self, tokens_max: usize) -> Option<Part> {
        let environment = self.lock_environment();
        let shown = environment.render(self.seen.load(Relaxed), tokens_max);
        self.seen.store(environment.revision(), Relaxed);
        let content = DataContent::json(shown?);
        Some(Part::Data(DataPart {
            mime_type: SHOWN_TYPE.to_owned(),
            content,
            ..DataPart::default()
        }))
    }

    /// Makes all objects new to the model again, because the messages with them may be gone.
    pub(crate) fn mark_all_unseen(&self) {
        self.seen.store(0, Relaxed);
    }

    /// Counts which objects the model mentions.
    pub(crate) fn count_mentions(&self, parts: &[Part]) {
        let mut environment = self.lock_environment();
        if environment.is_empty(None) {
            return;
        }
        for part in parts {
            match part {
                Part::Text { text, .. } => environment.record_mentions(text),
                Part::ToolCall(call) => environment.record_mentions(&call.arguments.to_string()),
                Part::Thought { .. }
                | Part::ToolResult(_)
                | Part::Data(_)
                | Part::Opaque(_)
                | Part::ToolsChanged(_)
                | Part::Unknown(_) => {}
            }
        }
    }

    /// Answers a call of [`VIEW_ENVIRONMENT`].
    pub(crate) fn answer_view_call(&self, call: &ToolCall) -> Result<Output> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct ViewEnvironmentArguments {
            tool_names: Vec<String>,
            #[serde(flatten)]
            items: ObjectsFilter,
            skip: usize,
            take: Option<usize>,
        }
        // The schema was checked, but it allows numbers that are too large.
        let view: ViewEnvironmentArguments = serde_json::from_value(call.arguments.clone())
            .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
        let filter =
            ItemFilter::from_request(None, view.items.metadata_key, view.items.metadata_value)?;
        let selection = ObjectSelection {
            tools: view.tool_names,
            filter,
            skip: view.skip,
            take: Some(view.take.unwrap_or(VIEWED_OBJECTS)),
        };
        let environment = self.lock_environment();
        let mut found = environment.select(&selection);
        if found["total_objects"] == 0 {
            found["contents"] = environment.contents_json();
        }
        Ok(Output::json(found))
    }

    fn lock_environment(&self) -> MutexGuard<'_, ObjectEnvironment> {
        self.store.environment.lock()
    }
}

/// Returns all of the host's own tools, for lists. Each is in requests only while there is
/// something to find or to look at.
pub fn host_tools() -> Vec<ToolSpec> {
    introspection::introspection_tools()
        .into_iter()
        .chain([view_environment_tool()])
        .map(KnownTool::into_spec)
        .collect()
}

/// Creates the tool.
pub(crate) fn view_environment_tool() -> KnownTool {
    let text = |about: &str, reason: &str| json!({ "type": "string", "description": about, KEYWORD: { "text": reason } });
    let number = |about: &str| json!({ "type": "integer", "minimum": 0, "description": about });
    let properties = Map::from_iter([
        (
            "tool_names".to_owned(),
            json!({
                "type": "array",
                "items": { "type": "string" },
                "description": "Only objects of these tools.",
                KEYWORD: { "text": "names of tools" },
            }),
        ),
        (
            "metadata_key".to_owned(),
            text("Only items with this metadata key…", "a key of metadata"),
        ),
        (
            "metadata_value".to_owned(),
            json!({
                "description": "…and this exact value.",
                KEYWORD: { "text": "a value to compare with" },
            }),
        ),
        ("skip".to_owned(), number("Objects to skip.")),
        ("take".to_owned(), number("Maximum objects (50).")),
    ]);
    introspection::host_tool(
        VIEW_ENVIRONMENT,
        "Look at objects that tools have found in this conversation.",
        properties.into(),
        &[],
    )
}
