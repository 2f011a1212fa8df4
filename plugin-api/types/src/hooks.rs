//! Hooks: questions that the host asks a plugin outside the plugin's own calls: before a prompt, a
//! request and a tool call, after a tool call, and about events. For the plugin's own tools and
//! commands, it also asks for previews and completions.
//!
//! Each hook is an operation of the plugin's instance.
//! [`Description::hooks`](crate::Description::hooks) lists the [`Hook`]s that a plugin wants; a
//! tool declares `previews`, a command `completes`. Hooks run with a read-only context, which
//! answers other services with `permission_denied`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::command_words::{COMPLETE_WORDS, CompleteWords, WordChoice, WordChoices};
pub use crate::preview::{PREVIEW, Preview, PreviewRequest, SHELL_PROMPT};
use crate::service::ContextFacts;
use crate::{
    Annotations, CallId, Error, ErrorKind, EventEnvelope, Message, PluginName, RequestOptions,
    ToolName,
};

/// The maximum wait for the text that a plugin adds to a prompt. It is short because the user has
/// just pressed Enter.
pub const BEFORE_PROMPT_MS_MAX: u64 = 200;
/// The maximum wait for any other answer.
pub const HOOK_MS_MAX: u64 = 1_000;

/// Returns the error for a service that a hook must not use.
pub fn reading_only_error(operation: &str) -> Error {
    let text = format!("`{operation}` is not available in a hook, which can only read");
    Error::new(ErrorKind::PermissionDenied, text)
        .with_hint("keep the data in the plugin's state, and act in a tool call or a command")
}

/// A hook that a plugin may implement. Its name is the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// Adds text before a prompt. Takes a [`BeforePrompt`], returns a [`PromptAddition`].
    BeforePrompt,
    /// Changes the options of a request and adds text after its newest message. Takes a
    /// [`BeforeRequest`], returns a [`RequestChange`].
    BeforeRequest,
    /// Decides whether and how a tool call continues to the permission check. Takes a
    /// [`BeforeTool`], returns a [`GuardAnswer`].
    BeforeTool,
    /// Changes the result that the model gets. Takes an [`AfterTool`], returns a [`ResultChange`].
    AfterTool,
    /// Receives events. Takes [`EventBatch`], returns `{}`.
    Event,
    /// A word from a newer version. It is ignored.
    #[serde(other)]
    Unknown,
}

impl Hook {
    /// Returns the name of the operation, which is also the word in a description.
    pub fn name(self) -> &'static str {
        match self {
            Self::BeforePrompt => "before_prompt",
            Self::BeforeRequest => "before_request",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::Event => "event",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the hook of an operation.
    pub fn from_operation(operation: &str) -> Option<Self> {
        let all = [
            Self::BeforePrompt,
            Self::BeforeRequest,
            Self::BeforeTool,
            Self::AfterTool,
            Self::Event,
        ];
        all.into_iter().find(|hook| hook.name() == operation)
    }
}

/// A user's prompt, before the model gets it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforePrompt {
    /// The prompt.
    pub prompt: String,
    /// The model and token counts of the session.
    pub context: ContextFacts,
}

impl BeforePrompt {
    /// Creates a request. Only the host and tests need this.
    pub fn new(prompt: impl Into<String>, context: ContextFacts) -> Self {
        Self { prompt: prompt.into(), context }
    }
}

/// Text to add before a prompt, as a part of its message that names the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptAddition {
    /// The text. An empty text adds nothing. The host truncates a text that is too long.
    pub text: String,
}

impl PromptAddition {
    /// Creates an addition from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Creates an empty addition.
    pub fn nothing() -> Self {
        Self::default()
    }
}

/// A request to the model, before it is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforeRequest {
    /// The options, after changes by earlier plugins and without the user's own headers and body.
    pub options: RequestOptions,
    /// The names of the options that may change, because the provider supports them.
    pub may_change: Vec<String>,
    /// The newest message. The model has seen all others.
    pub newest: Message,
}

impl BeforeRequest {
    /// Creates a request. Only the host and tests need this.
    pub fn new(options: RequestOptions, may_change: Vec<String>, newest: Message) -> Self {
        Self { options, may_change, newest }
    }
}

/// A change to a request. If it has other keys, the host refuses the answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestChange {
    /// Options to change in this request, by their names in
    /// [`RequestOptions`](crate::RequestOptions). `null` removes an option.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Text to add after the newest message, as a part that names the plugin.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl RequestChange {
    /// Creates an empty change.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Sets an option.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Adds a text after the newest message.
    #[must_use]
    pub fn with_text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

/// The originator of a tool call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallOrigin {
    /// The model.
    #[default]
    Model,
    /// A user, who typed it.
    Person,
    /// Another plugin, which waits for it.
    Plugin,
    /// No one: the tool runs automatically.
    Itself,
    /// An originator from a newer version.
    #[serde(other)]
    Unknown,
}

/// A tool call, before the user's rules decide about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforeTool {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The plugin that provides the tool. Empty for a tool of the host.
    pub plugin: PluginName,
    /// The arguments, after changes by earlier plugins. They match the tool's schema.
    pub arguments: Value,
    /// The tool's annotations about its effects.
    pub annotations: Annotations,
    /// The originator of the call.
    pub called_by: ToolCallOrigin,
    /// The plugin that makes the call. Empty if no plugin makes it.
    pub caller: PluginName,
}

impl BeforeTool {
    /// Creates a request for a call from the model. Only the host and tests need this.
    pub fn new(tool: impl Into<ToolName>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, ..Self::default() }
    }

    /// Sets the call id, the plugin and the annotations.
    #[must_use]
    pub fn with_call(self, call_id: CallId, plugin: PluginName, annotations: Annotations) -> Self {
        Self { call_id, plugin, annotations, ..self }
    }

    /// Sets the originator, and the plugin if a plugin makes the call.
    #[must_use]
    pub fn called_by(self, called_by: ToolCallOrigin, caller: PluginName) -> Self {
        Self { called_by, caller, ..self }
    }
}

/// A guard's decision about a call. The host denies the call if it does not know the decision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum GuardAnswer {
    /// The call continues unchanged. The user's rules decide about it.
    #[default]
    GoOn,
    /// The call continues with other arguments. They must match the tool's schema.
    #[non_exhaustive]
    Rewrite {
        /// The complete arguments.
        arguments: Value,
    },
    /// The call must not run.
    #[non_exhaustive]
    Deny {
        /// The reason, for the model and the user.
        reason: String,
    },
    /// The user must be asked, even if a rule allows the call.
    #[non_exhaustive]
    Ask {
        /// The reason, for the user.
        reason: String,
    },
    /// A decision from a newer version.
    #[serde(other)]
    Unknown,
}

impl GuardAnswer {
    /// Creates the answer that changes the arguments of the call.
    pub fn rewrite(arguments: Value) -> Self {
        Self::Rewrite { arguments }
    }

    /// Creates the answer that denies the call.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// Creates the answer that the user must be asked.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::Ask { reason: reason.into() }
    }
}

/// A tool call with its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AfterTool {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The plugin that provides the tool. Empty for a tool of the host.
    pub plugin: PluginName,
    /// The arguments of the call.
    pub arguments: Value,
    /// The result for the model, after changes by earlier plugins.
    pub result: Map<String, Value>,
    /// Whether the result is an error.
    pub is_error: bool,
}

impl AfterTool {
    /// Creates a request. Only the host and tests need this.
    pub fn new(tool: impl Into<ToolName>, arguments: Value, result: Map<String, Value>) -> Self {
        Self { tool: tool.into(), arguments, result, ..Self::default() }
    }

    /// Sets the call id, the plugin, and whether the result is an error.
    #[must_use]
    pub fn with_call(self, call_id: CallId, plugin: PluginName, is_error: bool) -> Self {
        Self { call_id, plugin, is_error, ..self }
    }
}

/// A change to a result. `replace` applies first, then `add`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultChange {
    /// The new result, if it is to be replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<Map<String, Value>>,
    /// Keys to add to the result.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub add: Map<String, Value>,
}

impl ResultChange {
    /// Creates an empty change.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Creates a change that replaces the result.
    pub fn replace(result: Map<String, Value>) -> Self {
        Self { replace: Some(result), ..Self::default() }
    }

    /// Adds a key to the result.
    #[must_use]
    pub fn with_entry(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.add.insert(key.into(), value.into());
        self
    }
}

/// The events since the last call, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventBatch {
    /// The events.
    pub events: Vec<EventEnvelope>,
    /// The number of events that were dropped before these, because the plugin was too slow.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

impl EventBatch {
    /// Creates a request. Only the host and tests need this.
    pub fn new(events: Vec<EventEnvelope>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Sets the number of events that were dropped before these.
    #[must_use]
    pub fn with_dropped(self, dropped: u64) -> Self {
        Self { dropped, ..self }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hook_name_is_its_operation_name() {
        for name in ["before_prompt", "before_request", "before_tool", "after_tool", "event"] {
            let hook: Hook = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((hook.name(), Hook::from_operation(name)), (name, Some(hook)));
        }
        assert_eq!(Hook::from_operation("unknown"), None);
    }

    #[test]
    fn guard_answer_is_read_and_written_by_its_decision() {
        let said = |answer: GuardAnswer| serde_json::to_value(answer).unwrap();
        assert_eq!(said(GuardAnswer::GoOn), json!({ "decision": "go_on" }));
        assert_eq!(said(GuardAnswer::deny("no")), json!({ "decision": "deny", "reason": "no" }));
        let read = |json| serde_json::from_value::<GuardAnswer>(json);
        assert_eq!(read(json!({ "decision": "postpone" })).unwrap(), GuardAnswer::Unknown);
        assert!(read(json!({ "decision": "rewrite" })).is_err());
        assert!(read(json!({})).is_err());
    }
}
