//! What plugin authors use: plain Rust traits, an export macro, a panic fence.
//!
//! A plugin is a `cdylib` crate whose `Cargo.toml` names only this crate. A first tool:
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
//! Not for the host: it stands on `jaato-plugin-api` and sees plugins through their frames.

// The macros name this crate by its own name, in its tests and doctests too.
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
mod tool;
mod tool_calls;

pub use context::stream::{Piece, Stream};
pub use context::{BlobReader, Blobs, Cx, Home, Level, Reporter};
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

/// What tools put in front of the model across a session, reached by [`Reporter::objects`].
pub mod object_environment {
    pub use crate::objects::{Hidden, IntoObjects, Matching, Objects};
    pub use crate::types::objects::{
        EnvironmentItem, Object, ObjectsAdd, ObjectsChanged, ObjectsClear, ToolObjects,
    };
}

/// The files of the session's execution environment, reached by [`Reporter::files`].
pub mod files {
    pub use crate::session_files::{FileTree, FileUpload, SearchPages, SessionFiles};
    pub use crate::types::files::*;
}

/// Terminals of the session's execution environment, made by [`Reporter::terminal`].
pub mod terminal {
    pub use crate::session_terminals::{
        SessionTerminal, TerminalControl, TerminalHappened, TerminalStream, TerminalWatch,
    };
    pub use crate::types::terminal::*;
}

/// What a plugin is asked beside its own calls, by the methods of [`hooks::Hooks`].
pub mod hooks {
    pub use crate::hook::Hooks;
    pub use crate::types::hooks::*;
}

/// Models that are asked beside the conversation, by [`Reporter::model`], and the conversation
/// itself, read by [`Reporter::history`].
pub mod model {
    pub use crate::conversation::{Conversation, ModelStream, ask};
    pub use crate::types::history::{HistoryMessage, HistoryRead};
    pub use crate::types::model::{ModelAnswer, ModelComplete, ObjectsShown};
}

/// Forms for the person, shown by [`Reporter::ask`].
pub mod form {
    pub use crate::forms::{FormBuilder, form};
    pub use crate::types::ask::{FieldKind, FieldOption, Form, FormAnswer, FormField, FormOutcome};
}

/// Calls that nobody waits for, reached by [`Reporter::tasks`].
pub mod task {
    pub use crate::tool_calls::Tasks;
    pub use crate::types::tasks::{TaskFacts, TaskRead, TaskReadAnswer, TaskStart, TaskStatus};
    pub use crate::types::tools_list::ToolFacts;
}

/// Tools that change while the plugin runs, set by [`Reporter::set_tools`].
pub mod dynamic {
    pub use crate::types::tools_set::{
        RefusedTool, ToolSource, ToolsAwaited, ToolsMissing, ToolsSet, ToolsSetAnswer,
    };
}

/// Sessions that a plugin opens beside its own, by [`Reporter::open_session`].
pub mod child {
    pub use crate::children::{ChildEvents, ChildSession};
    pub use crate::types::child::{ChildOpen, ChildOpened, ChildState, ChildTurn, ObjectsLent};
}

/// Programs that a call runs, started by [`Reporter::process`], and those that outlive it, started
/// by [`Reporter::start_process`].
pub mod process {
    pub use crate::processes::{Finished, Happened, Process, ProcessControl, ProcessEvents};
    pub use crate::started::StartedProcess;
    pub use crate::types::process::{
        LeftRunning, OutputStream, ProcessExit, ProcessFacts, ProcessOutput, Signal, Spawn, Stdin,
        signal_name,
    };
}

/// What a plugin's file begins with: `use jaato_plugin_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::types::{
        Completion, ConditionAnswer, Delta, Description, FinishReason, GcPlan, GcRequest, Message,
        ModelInfo, Part, ProviderSpec, Request, Role, ToolCall, ToolSpec, Usage,
    };
    pub use crate::{
        Cx, Error, ErrorKind, Gc, Home, Level, Output, Provider, Reporter, Result, State, SyncTool,
        Tool, ToolInput, export_plugin, json_object, sync_tool, to_object, tool, tool_fn,
        tool_type,
    };
    pub use serde_json::{Value, json};
}

/// For the macros; not to be used by name.
#[doc(hidden)]
pub mod __private {
    pub use crate::context::detached::{detached_call, detached_home};
    pub use crate::definition::{Definition, Module};
    pub use crate::environment::{AnyDesk, EnvironmentEntry, Running};
    pub use crate::export::{describe_answer, factory_answer};
    pub use crate::gc::GcEntry;
    pub use crate::hook::HookEntry;
    pub use crate::instance::{bad_answer, bad_frame, value_frame};
    pub use crate::manifest::{Facts, bytes, length};
    pub use crate::provider::ProviderEntry;
    pub use crate::schema::{object, parse_arguments, schema_of};
    pub use crate::tool::ToolEntry;
    pub use inventory;
    pub use jaato_plugin_api::abi;
}
