//! The format of a record: one line of the ledger.

use jaato_types::{CallId, ErrorKind, FinishReason, GcReason, Outcome, SessionId, ToolName};
use serde::{Deserialize, Serialize};

/// One record. Keys are only ever added, and readers ignore unknown ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRecord {
    /// Version of this format.
    pub v: u32,
    /// The time of the record: RFC 3339 in UTC, with milliseconds.
    pub ts: String,
    /// The session.
    pub session: SessionId,
    /// The turn, counted from 1 within the session, or 0 outside of turns.
    pub turn: u64,
    /// Counts a session's records from 1 without gaps. A gap is a lost record.
    pub event_index: u64,
    /// What happened.
    #[serde(flatten)]
    pub stage: LedgerStage,
}

impl LedgerRecord {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Returns the record as its line, including the newline.
    ///
    /// # Errors
    /// Only by a bug: every record can be written as JSON.
    pub fn to_line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// The stage of the record. The stages have the original's names if it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum LedgerStage {
    /// A request was answered, or cancelled during the answer.
    Response {
        /// `provider/model`.
        model: String,
        /// The step, counted from 1 within the turn.
        step: u32,
        /// The attempt of this request, counted from 1.
        attempt: u32,
        /// Tokens of the request. This field and the next three are `None` if the provider reported
        /// nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_tokens: Option<u64>,
        /// Tokens of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
        /// Their sum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_tokens: Option<u64>,
        /// Tokens of the request that came from a cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached_tokens: Option<u64>,
        /// The cost in millionths of a US dollar, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micro_usd: Option<u64>,
        /// Whether the cost was computed from the model's price instead of reported by the server.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_is_estimate: bool,
        /// Why the model stopped.
        finish_reason: FinishReason,
        /// The duration including earlier attempts, in milliseconds.
        duration_ms: u64,
    },
    /// A plugin asked a model for a completion outside of the conversation.
    Completion {
        /// The plugin.
        by: String,
        /// `provider/model`.
        model: String,
        /// Tokens of the request, estimated if not reported.
        prompt_tokens: u64,
        /// Tokens of the answer, estimated if not reported.
        output_tokens: u64,
        /// Tokens of the request that came from a cache.
        cached_tokens: u64,
        /// The cost in millionths of a US dollar, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micro_usd: Option<u64>,
        /// Whether the cost was computed from the model's price instead of reported by the server.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_is_estimate: bool,
        /// Whether there is an answer.
        ok: bool,
        /// The kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// An attempt of a request failed.
    ApiError {
        /// `provider/model`.
        model: String,
        /// The step, counted from 1 within the turn.
        step: u32,
        /// The attempt of this request, counted from 1.
        attempt: u32,
        /// The kind of error.
        error_kind: ErrorKind,
        /// Whether the request will be retried.
        transient: bool,
        /// The wait before the retry, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_delay_ms: Option<u64>,
    },
    /// A tool call has its result.
    ToolCall {
        /// The step whose answer made the call, or 0 for a call that a user typed.
        step: u32,
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// Size of the arguments as JSON, in bytes.
        arguments_bytes: u64,
        /// Keyed digest of the arguments. Within a session, equal digests mean equal arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_digest: Option<String>,
        /// Size of the result as JSON, in bytes.
        result_bytes: u64,
        /// Whether the result is not an error.
        ok: bool,
        /// The kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// The duration in milliseconds.
        duration_ms: u64,
        /// The plugin call that made this call, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// The plugin that made the call, or `None` if the model or a user did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A tool call continues as a background task.
    AutoBackground {
        /// The task.
        task_id: String,
        /// The call that started it.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind.
        source: String,
    },
    /// A background task has its outcome.
    Task {
        /// The task.
        task_id: String,
        /// The call that started it.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// Size of the outcome as JSON, in bytes.
        result_bytes: u64,
        /// Whether the outcome is not an error.
        ok: bool,
        /// The kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// The duration since the call began, in milliseconds.
        duration_ms: u64,
    },
    /// A permission prompt was shown.
    PermissionRequest {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The rule that requires the prompt.
        rule: String,
        /// The place of that rule, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The kind of the agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// The displayed name of that agent, empty for the main one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// A permission decision was made.
    PermissionCheck {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// Whether the call may run.
        allowed: bool,
        /// The rule that decided.
        rule: String,
        /// The place of that rule, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The channel of the user's answer, empty if a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        answered_by: String,
        /// How long the answer holds, empty if a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        scope: String,
        /// The kind of the remembered pattern, empty if nothing is remembered.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pattern: String,
        /// The kind of the agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// The displayed name of that agent, empty for the main one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// The context was made smaller, or should have been.
    Gc {
        /// Why.
        reason: GcReason,
        /// The gc's name without its kind, or `host`.
        source: String,
        /// Messages that the gc removed from later requests.
        messages_removed: u64,
        /// Messages that are sent as head and tail.
        messages_cut: u64,
        /// Tokens in use before.
        tokens_before: u64,
        /// Tokens in use after.
        tokens_after: u64,
        /// Why nothing was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
    },
    /// A user's command has its answer.
    Command {
        /// The command.
        command: String,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// Size of the arguments as JSON, in bytes.
        arguments_bytes: u64,
        /// As for a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_digest: Option<String>,
        /// Size of the answer as JSON, in bytes.
        result_bytes: u64,
        /// Whether the answer is not an error.
        ok: bool,
        /// The kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// Whether the model sees the answer.
        shared: bool,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// A turn is over.
    Turn {
        /// `provider/model`.
        model: String,
        /// How it ended.
        outcome: Outcome,
        /// The kind of error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// Number of steps.
        steps: u32,
        /// The duration in milliseconds.
        duration_ms: u64,
    },
    /// An unknown stage.
    #[serde(other)]
    Unknown,
}
