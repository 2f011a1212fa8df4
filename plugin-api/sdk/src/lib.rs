//! The SDK for plugin authors: plain Rust traits, an export macro, and a panic fence.
//!
//! A plugin is a `cdylib` crate whose `Cargo.toml` depends only on this crate. A first tool:
//!
//! ```
//! #![forbid(unsafe_code)]
//! use jaato_plugin_sdk::prelude::*;
//!
//! /// Counts the words in a text.
//! #[derive(ToolInput)]
//! #[tool(read_only, idempotent, example("how many words has 'a b c'?", text = "a b c"))]
//! struct WordCount {
//!     /// Text to count. At most 1 MiB.
//!     text: String,
//! }
//!
//! impl Tool for WordCount {
//!     type State = ();
//!
//!     async fn call(self, _cx: &Cx) -> Result<Output> {
//!         Ok(Output::json(json!({ "words": self.text.split_whitespace().count() })))
//!     }
//! }
//!
//! tool!(WordCount);
//! export_plugin! { state: (), tools }
//! # fn main() {}
//! ```
//!
//! The host does not use this crate: it depends on `jaato-plugin-api` and accesses plugins through
//! their frames.

// The macros refer to this crate by its name, also in its own tests and doctests.
extern crate self as jaato_plugin_sdk;

#[macro_use]
mod operations;

mod block_on;
mod blocking;
mod children;
mod context;
mod conversation;
mod count;
mod definition;
mod environment;
mod export;
mod fence;
mod forms;
mod gc;
mod hook;
mod http;
mod instance;
mod json_object;
mod large;
mod manifest;
mod objects;
mod output_file;
mod processes;
mod provider;
pub mod resources;
mod schema;
mod secrets;
mod session_files;
mod session_terminals;
mod started;
mod state;
pub mod store;
#[cfg(feature = "tokio")]
pub mod tokio;
mod tool;
mod tool_calls;

pub use context::stream::{ServiceStream, StreamPiece};
pub use context::{BlobReader, Blobs, Cx, Home, LogLevel, Reporter};
pub use gc::Gc;
pub use http::{HttpRequestBuilder, HttpResponse};
/// ```
/// # #![forbid(unsafe_code)]
/// use jaato_plugin_sdk::prelude::*;
///
/// /// Counts the words in a text.
/// #[tool_fn(read_only, idempotent, example("how many words has 'a b c'?", text = "a b c"))]
/// async fn word_count(
///     _cx: &Cx,
///     /// Text to count. At most 1 MiB.
///     text: String,
/// ) -> Result<Output> {
///     Ok(Output::json(json!({ "words": text.split_whitespace().count() })))
/// }
///
/// export_plugin! { state: (), tools }
/// # fn main() {}
/// ```
pub use jaato_plugin_macros::tool_fn;
pub use jaato_plugin_macros::{ToolInput, export_plugin, tool_type};
pub use jaato_types as types;
pub use jaato_types::{Error, ErrorKind, Output, Result, to_object};
pub use provider::Provider;
pub use secrets::Secrets;
pub use state::State;
pub use tool::{SyncTool, Tool, ToolInput};
pub use {schemars, serde, serde_json};

/// Objects that tools add to the model's context across a session, accessed with
/// [`Reporter::objects`].
pub mod object_environment {
    pub use crate::objects::{HiddenData, IntoObjects, ItemMatcher, Objects};
    pub use crate::types::objects::{
        EnvironmentItem, Object, ObjectsAdd, ObjectsChangeAnswer, ObjectsClear, ToolObjects,
    };
}

/// The files of the session's execution environment, accessed with [`Reporter::files`].
pub mod files {
    pub use crate::session_files::{FileTree, FileUpload, SearchPages, SessionFiles};
    pub use crate::types::files::*;
}

/// Terminals in the session's execution environment, started with [`Reporter::terminal`].
pub mod terminal {
    pub use crate::session_terminals::{
        SessionTerminal, TerminalControl, TerminalStream, TerminalUpdate, TerminalWatch,
    };
    pub use crate::types::terminal::*;
}

/// Hooks, which the host calls outside the plugin's own calls: the methods of [`hooks::Hooks`].
pub mod hooks {
    pub use crate::hook::Hooks;
    pub use crate::types::hooks::*;
}

/// Requests to models outside the conversation, with [`Reporter::model`], and the conversation
/// itself, read with [`Reporter::history`].
pub mod model {
    pub use crate::conversation::{Conversation, ModelStream, ask};
    pub use crate::types::history::{HistoryMessage, HistoryRead};
    pub use crate::types::model::{ModelAnswer, ModelComplete, ObjectVisibility};
}

/// Forms for the user, shown with [`Reporter::ask`].
pub mod form {
    pub use crate::forms::{FormBuilder, form};
    pub use crate::types::ask::{FieldKind, FieldOption, Form, FormAnswer, FormField, FormOutcome};
}

/// Detached tasks, accessed with [`Reporter::tasks`].
pub mod task {
    pub use crate::tool_calls::Tasks;
    pub use crate::types::tasks::{TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStatus};
    pub use crate::types::tools_list::ToolFacts;
}

/// Tools that change while the plugin runs, set with [`Reporter::set_tools`].
pub mod dynamic {
    pub use crate::types::tools_set::{
        RefusedTool, ToolSource, ToolsAwaited, ToolsMissing, ToolsSet, ToolsSetAnswer,
    };
}

/// Child sessions that a plugin opens, with [`Reporter::open_session`].
pub mod child {
    pub use crate::children::{ChildEvents, ChildSession};
    pub use crate::types::child::{ChildOpen, ChildState, ChildTurn, ObjectSharing, OpenedChild};
}

/// Programs of a call, started with [`Reporter::process`], and programs that outlive their call,
/// started with [`Reporter::start_process`].
pub mod process {
    pub use crate::processes::{
        FinishedProcess, Process, ProcessControl, ProcessEvents, ProcessUpdate,
    };
    pub use crate::started::StartedProcess;
    pub use crate::types::process::{
        LeftoverProcess, OutputStream, ProcessExit, ProcessFacts, ProcessOutput, Signal, Spawn,
        Stdin, signal_name,
    };
}

/// The items that most plugins need: `use jaato_plugin_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::types::{
        Completion, CompletionRequest, ConditionAnswer, Delta, Description, FinishReason, GcChange,
        GcEdit, GcPlan, GcRequest, Message, ModelInfo, Part, ProviderSpec, Role, ToolCall,
        ToolSpec, Usage,
    };
    pub use crate::{
        Cx, Error, ErrorKind, Gc, Home, LogLevel, Output, Provider, Reporter, Result, State,
        SyncTool, Tool, ToolInput, export_plugin, json_object, sync_tool, to_object, tool, tool_fn,
        tool_type,
    };
    pub use serde_json::{Value, json};
}

/// For the macros. Do not use it directly.
#[doc(hidden)]
pub mod __private {
    pub use crate::context::detached::{detached_call, detached_home};
    pub use crate::definition::{Definition, Module};
    pub use crate::environment::{
        AnyEnvironmentHandleTable, EnvironmentAnswerFuture, EnvironmentEntry,
    };
    pub use crate::export::{describe_answer, factory_answer};
    pub use crate::gc::GcEntry;
    pub use crate::hook::HookEntry;
    pub use crate::instance::{encode_value, invalid_answer_error, invalid_frame_error};
    pub use crate::manifest::{ManifestFacts, manifest_bytes, manifest_length};
    pub use crate::provider::ProviderEntry;
    pub use crate::schema::{parse_arguments, schema_of, to_json_object};
    pub use crate::tool::ToolEntry;
    pub use inventory;
    pub use jaato_plugin_api::abi;
}
