//! Serde types of the JSON that crosses the plugin boundary: messages, specs, requests, results,
//! errors.
//!
//! The crate contains neither the boundary itself (that is `jaato-plugin-api`) nor behaviour beyond
//! building, validating and converting these values. The host and every plugin depend on this
//! crate, each with its own compiled copy. They share only the JSON. Therefore fields are added
//! with a default and never removed or retyped, and unknown fields are ignored, except in JSON that
//! users write.
//!
//! The source code of plugins stays compatible too. A struct that an author creates has `Default`
//! or a constructor, and is written with `..`. A struct that an author only reads, and each enum
//! variant with fields, is `#[non_exhaustive]`. An enum reads an unknown word as `Unknown` (or
//! `Other`), unless its documentation says that it refuses unknown words.

#[cfg(not(unix))]
compile_error!("jaato runs on Linux and macOS; Windows is not supported yet");

pub mod ask;
mod asset;
pub mod child;
pub mod command_hooks;
mod command_words;
mod completion;
mod condition;
pub mod count;
mod data;
mod description;
pub mod dotenv;
mod error;
mod event;
pub mod execution;
pub mod file_change;
pub mod files;
mod fitting;
mod frame;
mod gc;
mod glob;
pub mod grant;
pub mod history;
pub mod hooks;
pub mod host_process;
pub mod http;
mod id;
pub mod large;
mod manifest;
pub mod mask;
pub mod mcp_entry;
pub mod media_type;
mod message;
pub mod model;
pub mod notify;
mod object;
pub mod objects;
pub mod operations;
pub mod permission_prompt;
mod preview;
mod price;
pub mod process;
pub mod protected;
mod pull;
pub mod resources;
pub mod secret;
pub mod service;
mod session_hooks;
pub mod store;
pub mod tasks;
pub mod terminal;
pub mod text;
mod tool;
pub mod tool_calls;
pub mod tools_list;
pub mod tools_set;
pub mod touches;
pub mod work_plan;
mod worker_variable;
pub mod workspace_file;

pub use asset::{Asset, AssetSource};
pub use completion::{
    Completion, CompletionRequest, Delta, Effort, FinishReason, ModelInfo, RequestOptions,
    TOOLS_CHANGED, ToolChoice, Usage,
};
pub use condition::{
    CONDITION, Condition, ConditionAnswer, ConditionDecision, ConditionRequest, Offer, VisibleMedia,
};
pub use data::{DataContent, DataPart};
pub use description::{
    CommandSpec, CredentialSpec, Description, MediaLimit, PATH_ROOTS, ProviderPreset, ProviderSpec,
    TokenRecipe,
};
pub use error::{Error, ErrorKind, Result, Retry};
pub use event::{Event, EventEnvelope, Outcome, SecretOutcome};
pub use fitting::{arguments_as_object, fit_arguments};
pub use frame::{FRAME_BYTES_MAX, Frame, FrameError};
pub use gc::{GcChange, GcEdit, GcPlan, GcReason, GcRequest};
pub use glob::{Glob, PathGlob};
pub use id::{CallId, ModelId, PluginName, SessionId, ToolName};
pub use manifest::{
    API_VERSION, Isolation, MANIFEST_BYTES_MAX, Manifest, ManifestError, PluginKind, PluginScope,
};
pub use message::{Message, OpaqueData, Part, Role, ToolCall, ToolResult, ToolsChanged};
pub use object::to_object;
pub use price::{Price, PriceTier};
pub use pull::{PULL_MODEL, PullModel, PullModelAnswer};
pub use tool::{Annotations, Availability, Example, Output, ToolSpec};
pub use worker_variable::WorkerVariable;
