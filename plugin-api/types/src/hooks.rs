//! Hooks: questions that the host asks a plugin outside the plugin's own calls: before a prompt, a
//! request and a tool call, after a tool call, and about events. For the plugin's own tools and
//! commands, it also asks for previews and completions. Other hooks accompany sessions and turns.
//!
//! Each hook is an operation of the plugin's instance.
//! [`Description::hooks`](crate::Description::hooks) lists the [`Hook`]s that a plugin wants; a
//! tool declares `previews`, a command `completes`. A hook's context reads, runs programs and asks
//! models, the latter two with a grant. It answers other services with `permission_denied`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::command_words::{COMPLETE_WORDS, CompleteWords, WordChoice, WordChoices};
pub use crate::preview::{PREVIEW, Preview, PreviewRequest, SHELL_PROMPT};
use crate::service::ContextFacts;
pub use crate::session_hooks::{
    BeforeGc, BeforeGcAnswer, SessionEnd, SessionStart, SessionText, TURN_CONTINUATIONS_MAX,
    TurnEnd, TurnEndAnswer,
};
use crate::{
    Annotations, CallId, Error, ErrorKind, EventEnvelope, Message, PluginName, RequestOptions,
    ToolName,
};

/// The maximum wait for the text that a plugin adds to a prompt, unless the plugin asks for more.
/// It is short because the user has just pressed Enter.
pub const BEFORE_PROMPT_MS_MAX: u64 = 200;
/// The maximum wait for any other answer, unless the plugin asks for more.
pub const HOOK_MS_MAX: u64 = 1_000;

/// Returns the error for a service that a hook must not use.
pub fn reading_only_error(operation: &str) -> Error {
    let text = format!("`{operation}` is not available in a hook");
    Error::new(ErrorKind::PermissionDenied, text)
        .with_hint("keep the data in the plugin's state, and act in a tool call or a command")
}

/// Declares the hooks. A row has the documentation, the variant, the operation and the longest wait
/// for an answer if the plugin's description asks for no other.
macro_rules! declare_hooks {
    ($($(#[doc = $doc:literal])+ $hook:ident $name:literal $ms:expr;)+) => {
        /// A hook that a plugin may implement. Its name is the operation.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub enum Hook {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $hook,)+
            /// A word from a newer version. It is ignored.
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl Hook {
            /// All hooks.
            pub const ALL: &'static [Self] = &[$(Self::$hook),+];

            /// Returns the name of the operation, which is also the word in a description.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$hook => $name,)+
                    Self::Unknown => "unknown",
                }
            }

            /// Returns the longest wait for an answer if the plugin's description asks for no
            /// other, in milliseconds.
            pub fn default_deadline_ms(self) -> u64 {
                match self {
                    $(Self::$hook => $ms,)+
                    Self::Unknown => HOOK_MS_MAX,
                }
            }
        }
    };
}

declare_hooks! {
    /// Begins a session: asked before its first prompt. Takes a [`SessionStart`], returns a
    /// [`SessionText`].
    SessionStart "session_start" HOOK_MS_MAX;
    /// Adds text before a prompt, or refuses it. Takes a [`BeforePrompt`], returns a
    /// [`PromptAddition`].
    BeforePrompt "before_prompt" BEFORE_PROMPT_MS_MAX;
    /// Changes the options of a request, adds text after its newest message, or ends the turn.
    /// Takes a [`BeforeRequest`], returns a [`RequestChange`].
    BeforeRequest "before_request" HOOK_MS_MAX;
    /// Decides whether and how a tool call continues to the permission check. Takes a
    /// [`BeforeTool`], returns a [`GuardAnswer`].
    BeforeTool "before_tool" HOOK_MS_MAX;
    /// Changes the result that the model gets. Takes an [`AfterTool`], returns a [`ResultChange`].
    AfterTool "after_tool" HOOK_MS_MAX;
    /// Decides whether a turn ends with the model's answer. Takes a [`TurnEnd`], returns a
    /// [`TurnEndAnswer`].
    TurnEnd "turn_end" HOOK_MS_MAX;
    /// Acts before a gc removes messages, or refuses it. Takes a [`BeforeGc`], returns a
    /// [`BeforeGcAnswer`].
    BeforeGc "before_gc" HOOK_MS_MAX;
    /// Acts at the end of a session. Takes a [`SessionEnd`], returns `{}`.
    SessionEnd "session_end" HOOK_MS_MAX;
    /// Receives events. Takes [`EventBatch`], returns `{}`.
    Event "event" HOOK_MS_MAX;
}

impl Hook {
    /// Returns the hook of an operation.
    pub fn from_operation(operation: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|hook| hook.name() == operation)
    }

    /// Returns the longest wait for an answer: what the plugin asks for, up to the user's limit,
    /// or the default.
    pub fn deadline_ms(self, asked_ms: Option<u64>, limit_ms: u64) -> u64 {
        let default = self.default_deadline_ms();
        asked_ms.map_or(default, |asked| asked.min(limit_ms.max(default)))
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
    /// The reason why the model must not get the prompt. Empty if it may.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refusal: String,
}

impl PromptAddition {
    /// Creates an addition from a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Creates the answer that refuses the prompt. The user sees the reason, and the model gets
    /// nothing.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refusal: reason.into(), ..Self::default() }
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
    /// The reason why the request must not be sent, which ends the turn. Empty if it may.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub refusal: String,
}

impl RequestChange {
    /// Creates an empty change.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Creates the answer that ends the turn before the request. The user sees the reason.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self { refusal: reason.into(), ..Self::default() }
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
        /// The reason why the user must be asked about the changed call, even if a rule allows it.
        /// Empty if the user's rules decide alone.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        ask: String,
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
        Self::Rewrite { arguments, ask: String::new() }
    }

    /// Creates the answer that changes the arguments, and has the user asked about the changed
    /// call.
    pub fn rewrite_and_ask(arguments: Value, reason: impl Into<String>) -> Self {
        Self::Rewrite { arguments, ask: reason.into() }
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
        for hook in Hook::ALL.iter().copied() {
            let read: Hook = serde_json::from_value(json!(hook.name())).unwrap();
            assert_eq!((read, Hook::from_operation(hook.name())), (hook, Some(hook)));
            assert_eq!(serde_json::to_value(hook).unwrap(), hook.name());
        }
        assert_eq!(Hook::from_operation("unknown"), None);
    }

    #[test]
    fn deadline_of_a_hook_is_bounded_by_the_user_and_never_below_the_default() {
        let deadline = |asked, limit| Hook::AfterTool.deadline_ms(asked, limit);
        assert_eq!(deadline(None, 60_000), HOOK_MS_MAX);
        assert_eq!(deadline(Some(5_000), 60_000), 5_000);
        assert_eq!(deadline(Some(90_000), 60_000), 60_000);
        assert_eq!(deadline(Some(90_000), 0), HOOK_MS_MAX);
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
