//! What a plugin is asked beside its own calls: before a prompt, a request and a tool call, after a
//! tool call, of events; and of its own tools and commands, what a call would change and which word
//! comes next.
//!
//! Each is an operation of the plugin's instance. [`Description::hooks`](crate::Description::hooks)
//! lists those of [`Hook`] that a plugin wants; a tool says `previews`, a command `completes`. All
//! are asked with a context that only reads: it answers other services with `permission_denied`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::command_words::{COMPLETE_WORDS, CompleteWords, WordChoice, WordChoices};
pub use crate::preview::{PREVIEW, Preview, PreviewRequest, SHELL_PROMPT};
use crate::service::ContextFacts;
use crate::{
    Annotations, CallId, Envelope, Error, ErrorKind, Message, PluginName, RequestOptions, ToolName,
};

/// Longest wait for the text that a plugin adds to a prompt: the person has just pressed Enter.
pub const BEFORE_PROMPT_MS_MAX: u64 = 200;
/// Longest wait for any other answer.
pub const HOOK_MS_MAX: u64 = 1_000;

/// The error for a service that a plugin asks while it is asked something itself.
pub fn only_reads(operation: &str) -> Error {
    let text = format!("`{operation}` cannot be asked here: an answer to a question only reads");
    Error::new(ErrorKind::PermissionDenied, text)
        .with_hint("keep it in the plugin's state, and do it in a call of a tool or a command")
}

/// What a plugin may ask to be asked. Its name is the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// Text to put before a prompt: [`BeforePrompt`], [`PromptAddition`].
    BeforePrompt,
    /// Options of a request, and text behind its newest message: [`BeforeRequest`],
    /// [`RequestChange`].
    BeforeRequest,
    /// Whether and how a tool call goes on to the gate: [`BeforeTool`], [`GuardAnswer`].
    BeforeTool,
    /// What the model is given of a result: [`AfterTool`], [`ResultChange`].
    AfterTool,
    /// To be told what happens: [`EventsTold`], `{}`.
    Event,
    /// A word that this side does not know; it is passed over.
    #[serde(other)]
    Unknown,
}

impl Hook {
    /// Returns the name of the operation, which is the word in a description.
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

    /// Finds the hook of an operation.
    pub fn of(operation: &str) -> Option<Self> {
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

/// A person's prompt, before the model has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforePrompt {
    /// What the person said.
    pub prompt: String,
    /// Model and tokens of the session.
    pub context: ContextFacts,
}

impl BeforePrompt {
    /// Makes the question; the host does, and tests.
    pub fn new(prompt: impl Into<String>, context: ContextFacts) -> Self {
        Self { prompt: prompt.into(), context }
    }
}

/// What stands before a prompt from here on, as a part of its message that names the plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptAddition {
    /// The text; an empty one adds nothing. The host cuts one that is too long.
    pub text: String,
}

impl PromptAddition {
    /// Adds a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Adds nothing.
    pub fn nothing() -> Self {
        Self::default()
    }
}

/// A request that is about to be sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforeRequest {
    /// Its options, as the plugins that were asked before left them; without the person's own
    /// headers and body.
    pub options: RequestOptions,
    /// The names of those that may be changed: the provider honours them.
    pub may_change: Vec<String>,
    /// The newest message; the model has seen all others.
    pub newest: Message,
}

impl BeforeRequest {
    /// Makes the question; the host does, and tests.
    pub fn new(options: RequestOptions, may_change: Vec<String>, newest: Message) -> Self {
        Self { options, may_change, newest }
    }
}

/// What becomes of a request. Anything beside these keys makes the host refuse the answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestChange {
    /// Options that are others in this request, by their names in
    /// [`RequestOptions`](crate::RequestOptions); `null` takes one away.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// What stands behind the newest message, as a part that names the plugin.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl RequestChange {
    /// Changes nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Sets an option.
    #[must_use]
    pub fn option(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options.insert(name.into(), value.into());
        self
    }

    /// Puts a text behind the newest message.
    #[must_use]
    pub fn saying(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }
}

/// Whose act a tool call is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalledBy {
    /// The model's.
    #[default]
    Model,
    /// A person's, who typed it.
    Person,
    /// Another plugin's, which waits for it.
    Plugin,
    /// Nobody's: the tool runs by itself.
    Itself,
    /// Somebody's whom this side does not know.
    #[serde(other)]
    Unknown,
}

/// A tool call, before the person's rules decide about it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct BeforeTool {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The plugin that it comes from; empty for a tool of the host.
    pub plugin: PluginName,
    /// The arguments, which match the tool's schema, as the plugins that were asked before left
    /// them.
    pub arguments: Value,
    /// What the tool promises of its effects.
    pub annotations: Annotations,
    /// Whose act it is.
    pub called_by: CalledBy,
    /// The plugin whose act it is; empty where it is no plugin's.
    pub caller: PluginName,
}

impl BeforeTool {
    /// Makes the question for a call of the model; the host does, and tests.
    pub fn new(tool: impl Into<ToolName>, arguments: Value) -> Self {
        Self { tool: tool.into(), arguments, ..Self::default() }
    }

    /// Names the call, the plugin and what the tool promises.
    #[must_use]
    pub fn of(self, call_id: CallId, plugin: PluginName, annotations: Annotations) -> Self {
        Self { call_id, plugin, annotations, ..self }
    }

    /// Says whose act it is, and which plugin's where it is one's.
    #[must_use]
    pub fn called_by(self, called_by: CalledBy, caller: PluginName) -> Self {
        Self { called_by, caller, ..self }
    }
}

/// What a guard says to a call. A word that the host does not know denies it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum GuardAnswer {
    /// The call goes on as it is. The person's rules decide about it.
    #[default]
    GoOn,
    /// The call goes on with other arguments. They must match the tool's schema.
    #[non_exhaustive]
    Rewrite {
        /// All of the arguments.
        arguments: Value,
    },
    /// The call must not run.
    #[non_exhaustive]
    Deny {
        /// What the model and the person are told.
        reason: String,
    },
    /// A person must be asked, whatever else allows the call.
    #[non_exhaustive]
    Ask {
        /// What the person is told.
        reason: String,
    },
    /// A word that this side does not know.
    #[serde(other)]
    Unknown,
}

impl GuardAnswer {
    /// The call goes on with other arguments.
    pub fn rewrite(arguments: Value) -> Self {
        Self::Rewrite { arguments }
    }

    /// The call must not run.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::Deny { reason: reason.into() }
    }

    /// A person must be asked.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::Ask { reason: reason.into() }
    }
}

/// A tool call that has its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AfterTool {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool: ToolName,
    /// The plugin that it comes from; empty for a tool of the host.
    pub plugin: PluginName,
    /// The arguments with which it ran.
    pub arguments: Value,
    /// What the model would be given, as the plugins that were asked before left it.
    pub result: Map<String, Value>,
    /// Whether it is an error.
    pub is_error: bool,
}

impl AfterTool {
    /// Makes the question; the host does, and tests.
    pub fn new(tool: impl Into<ToolName>, arguments: Value, result: Map<String, Value>) -> Self {
        Self { tool: tool.into(), arguments, result, ..Self::default() }
    }

    /// Names the call and the plugin, and says whether the result is an error.
    #[must_use]
    pub fn of(self, call_id: CallId, plugin: PluginName, is_error: bool) -> Self {
        Self { call_id, plugin, is_error, ..self }
    }
}

/// What becomes of a result. `replace` comes first, then `add`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResultChange {
    /// The whole result, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<Map<String, Value>>,
    /// Keys that the result has besides.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub add: Map<String, Value>,
}

impl ResultChange {
    /// Changes nothing.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Puts another result in its place.
    pub fn replace(result: Map<String, Value>) -> Self {
        Self { replace: Some(result), ..Self::default() }
    }

    /// Adds a key to the result.
    #[must_use]
    pub fn adding(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.add.insert(key.into(), value.into());
        self
    }
}

/// What happened since the plugin was told last, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EventsTold {
    /// The events.
    pub events: Vec<Envelope>,
    /// How many were left out before the first of these, because the plugin is slower than they
    /// come.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

impl EventsTold {
    /// Tells of events; the host does, and tests.
    pub fn new(events: Vec<Envelope>) -> Self {
        Self { events, ..Self::default() }
    }

    /// Says how many were left out before them.
    #[must_use]
    pub fn after_dropping(self, dropped: u64) -> Self {
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
    fn the_word_of_a_hook_is_its_operation() {
        for name in ["before_prompt", "before_request", "before_tool", "after_tool", "event"] {
            let hook: Hook = serde_json::from_value(json!(name)).unwrap();
            assert_eq!((hook.name(), Hook::of(name)), (name, Some(hook)));
        }
        assert_eq!(Hook::of("unknown"), None);
    }

    #[test]
    fn what_a_guard_says_is_one_word_with_what_belongs_to_it() {
        let said = |answer: GuardAnswer| serde_json::to_value(answer).unwrap();
        assert_eq!(said(GuardAnswer::GoOn), json!({ "decision": "go_on" }));
        assert_eq!(said(GuardAnswer::deny("no")), json!({ "decision": "deny", "reason": "no" }));
        let read = |json| serde_json::from_value::<GuardAnswer>(json);
        assert_eq!(read(json!({ "decision": "postpone" })).unwrap(), GuardAnswer::Unknown);
        assert!(read(json!({ "decision": "rewrite" })).is_err());
        assert!(read(json!({})).is_err());
    }
}
