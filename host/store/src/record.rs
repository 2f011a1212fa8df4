//! The shape of a record: one line of the ledger.

use jaato_types::{CallId, ErrorKind, FinishReason, GcReason, Outcome, SessionId, ToolName};
use serde::{Deserialize, Serialize};

/// One record. Keys are only ever added; a reader ignores those that it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this shape.
    pub v: u32,
    /// When it was made: RFC 3339 in UTC, with milliseconds.
    pub ts: String,
    /// The session.
    pub session: SessionId,
    /// Counts from 1 within the session; 0 outside a turn.
    pub turn: u64,
    /// Counts a session's records from 1 without gaps: a gap is a record that was lost.
    pub event_index: u64,
    /// What happened.
    #[serde(flatten)]
    pub stage: Stage,
}

impl Record {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Writes the record as its line, with the line's end.
    ///
    /// # Errors
    /// Only by a bug: every record can be written as JSON.
    pub fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// What happened. The names of the stages are those of the original where it has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "kebab-case")]
pub enum Stage {
    /// A request was answered, or cancelled while it was.
    Response {
        /// `provider/model`.
        model: String,
        /// Counts from 1 within the turn.
        step: u32,
        /// Counts the attempts of this request from 1.
        attempt: u32,
        /// Tokens of the request; this and the next three are absent where the provider told none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt_tokens: Option<u64>,
        /// Tokens of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tokens: Option<u64>,
        /// Their sum.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_tokens: Option<u64>,
        /// Tokens of the request that a cache gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached_tokens: Option<u64>,
        /// What it cost, in millionths of a US dollar; absent where nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micro_usd: Option<u64>,
        /// Whether that was worked out from the model's price; the server said it otherwise.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_is_estimate: bool,
        /// Why the model stopped.
        finish_reason: FinishReason,
        /// How long it took with everything that was tried before, in milliseconds.
        duration_ms: u64,
    },
    /// A plugin asked a model something beside the conversation.
    Completion {
        /// The plugin.
        by: String,
        /// `provider/model`.
        model: String,
        /// Tokens of the request; where nobody tells it, estimated.
        prompt_tokens: u64,
        /// Tokens of the answer, likewise.
        output_tokens: u64,
        /// Tokens of the request that a cache gave.
        cached_tokens: u64,
        /// What it cost, in millionths of a US dollar; absent where nobody knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_micro_usd: Option<u64>,
        /// Whether that was worked out from the model's price; the server said it otherwise.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cost_is_estimate: bool,
        /// Whether there is an answer.
        ok: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// An attempt of a request failed.
    ApiError {
        /// `provider/model`.
        model: String,
        /// Counts from 1 within the turn.
        step: u32,
        /// Counts the attempts of this request from 1.
        attempt: u32,
        /// What went wrong.
        error_kind: ErrorKind,
        /// Whether it is tried again.
        transient: bool,
        /// How long it is waited before that, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_delay_ms: Option<u64>,
    },
    /// A tool call has its result.
    ToolCall {
        /// The step whose answer made it; 0 for a call that a person typed.
        step: u32,
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// Bytes of the arguments as JSON.
        arguments_bytes: u64,
        /// Keyed digest of the arguments: the same within a session only for the same arguments.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_digest: Option<String>,
        /// Bytes of the result as JSON.
        result_bytes: u64,
        /// Whether it is no error.
        ok: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// How long it took, in milliseconds.
        duration_ms: u64,
        /// The call of the plugin that made it, where a plugin did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// The plugin that made it; none where the model or a person did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A tool call goes on as a task.
    AutoBackground {
        /// The task.
        task_id: String,
        /// The call that it was.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind.
        source: String,
    },
    /// A task has its outcome.
    Task {
        /// The task.
        task_id: String,
        /// The call that it was.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// Bytes of the outcome as JSON.
        result_bytes: u64,
        /// Whether it is no error.
        ok: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// How long it took since the call began, in milliseconds.
        duration_ms: u64,
    },
    /// Somebody is asked whether a call may run.
    PermissionRequest {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// The rule that says so.
        rule: String,
        /// Where that rule is written, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The kind of the agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// What people see that agent called; empty for the main one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// It was decided whether a call may run.
    PermissionCheck {
        /// The call.
        call_id: CallId,
        /// The tool.
        tool: ToolName,
        /// Whether it may.
        allowed: bool,
        /// The rule that decided.
        rule: String,
        /// Where that rule is written, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The way on which somebody answered; empty where a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        answered_by: String,
        /// How long the answer holds; empty where a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        scope: String,
        /// The kind of the pattern for which it holds; empty where nothing is remembered.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pattern: String,
        /// The kind of the agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// What people see that agent called; empty for the main one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// The context was made smaller, or should have been.
    Gc {
        /// Why.
        reason: GcReason,
        /// The gc's name without its kind, or `host`.
        source: String,
        /// Messages that are sent no more.
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
    /// A command that a person gave has its answer.
    Command {
        /// The command.
        command: String,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// Bytes of the arguments as JSON.
        arguments_bytes: u64,
        /// As that of a tool call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments_digest: Option<String>,
        /// Bytes of the answer as JSON.
        result_bytes: u64,
        /// Whether it is no error.
        ok: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// Whether the model is shown the answer.
        shared: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A turn is over.
    Turn {
        /// `provider/model`.
        model: String,
        /// How it ended.
        outcome: Outcome,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_kind: Option<ErrorKind>,
        /// Its steps.
        steps: u32,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A stage that this side does not know.
    #[serde(other)]
    Unknown,
}
