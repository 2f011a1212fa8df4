//! Events: the single stream that terminals, JSON lines, pages and tests read.
//!
//! An event is written as `{"v":1,"seq":…,"session":…,"event":"text_delta",…}`. Names are in snake
//! case and are only ever added. The seed's `(source, text, mode)` can be derived: `source` is
//! `model` or the plugin's name, without its kind for a plugin that comes with jaato. A delta that
//! follows another of its kind appends, any other writes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ask::{Form, FormOutcome};
use crate::file_change::FileChange;
use crate::permission_prompt::PermissionPrompt;
use crate::work_plan::WorkPlan;
use crate::{CallId, Error, FinishReason, GcReason, Message, SessionId, ToolName, Usage};

/// An event with its position in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventEnvelope {
    /// Version of this format.
    pub v: u32,
    /// The position, counted from 1 within a session, without gaps.
    pub seq: u64,
    /// The session.
    pub session: SessionId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl EventEnvelope {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Gives an event its position in a session's stream.
    pub fn new(seq: u64, session: SessionId, event: Event) -> Self {
        Self { v: Self::VERSION, seq, session, event }
    }
}

/// An event in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session begins.
    SessionStarted {
        /// `provider/model`.
        model: String,
        /// The tools in the request, by name.
        tools: Vec<ToolName>,
        /// The name that the user sees, if another session opened this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The session that opened this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opener: Option<SessionId>,
    },
    /// Another model answers from this point on.
    ModelChanged {
        /// `provider/model`.
        model: String,
        /// The parts of the conversation that the new model does not get, one per line.
        left_out: Vec<String>,
        /// The permanent error of the previous model, if that caused the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// A turn began, with a user's prompt or because something woke the session.
    TurnStarted {
        /// The prompt. Empty if the user entered nothing.
        prompt: String,
        /// What woke the session: a background task, or the plugin that notified.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        woken_by: Vec<String>,
    },
    /// A plugin added text before a user's prompt, as a part of the prompt's message that names the
    /// plugin.
    PromptAdded {
        /// The plugin's name without its kind.
        source: String,
        /// The estimated length of the text, in tokens.
        tokens: u64,
        /// Whether the text was too long and is truncated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// A plugin changed the next request.
    RequestChanged {
        /// The plugin's name without its kind.
        source: String,
        /// The names of the options that differ in this request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// The estimated number of tokens that it added after the newest message.
        #[serde(default)]
        tokens: u64,
    },
    /// A plugin made the turn continue after the model's answer.
    TurnContinued {
        /// The plugin's name without its kind.
        source: String,
        /// Its message to the model.
        text: String,
    },
    /// A request is sent to the provider.
    StepStarted {
        /// The number of the step, counted from 1 within the turn.
        step: u32,
    },
    /// A piece of the answer's text.
    TextDelta {
        /// `model`.
        source: String,
        /// The piece.
        text: String,
    },
    /// A piece of the model's reasoning.
    ThoughtDelta {
        /// `model`.
        source: String,
        /// The piece.
        text: String,
    },
    /// A status line for a step that shows nothing else.
    Notice {
        /// The source: a plugin's name without its kind, or `host`.
        source: String,
        /// The text, in one line.
        text: String,
    },
    /// The progress of a long step.
    Progress {
        /// The source.
        source: String,
        /// A label for the step.
        label: String,
        /// The amount done.
        done: u64,
        /// The total, in the same unit. 0 if it is unknown.
        total: u64,
    },
    /// A plugin changed the arguments of a tool call before its permission check.
    ToolCallChanged {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The name, without its kind, of the plugin that changed them.
        source: String,
        /// The changed arguments.
        arguments: Value,
    },
    /// The user must be asked before a call may run.
    PermissionAsked(Box<PermissionPrompt>),
    /// The permission check of a call reached a decision.
    PermissionDecided {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// Whether the call may run.
        allowed: bool,
        /// The rule that decided.
        rule: String,
        /// The location of that rule, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// The user's comment on the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        /// The channel through which the user answered: `terminal`, `client`, `webhook`, `file`.
        /// Empty if a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        answered_by: String,
        /// How long the answer applies: `once`, `turn`, `session`, `always`. Empty if a rule
        /// decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        scope: String,
        /// A description of the later calls to which the answer applies.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<String>,
        /// The kind of pattern that these calls match: `exact`, `command`, `path`, `host`,
        /// `terminal`, `tool`. Empty if nothing is remembered.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pattern: String,
        /// The kind of agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// The name of that agent for users. Empty for the main agent.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// The user changed the approval mode.
    ModeChanged {
        /// The new mode: `ask`, `accept-edits`, `plan`, `read-only`.
        mode: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// The arguments.
        arguments: Value,
        /// The plugin's call within which this call is made, if a plugin makes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// The plugin that makes the call. `None` if the model or a user makes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// Output of a running tool. A `\r` that is not part of a line end restarts the line, as
    /// progress bars do: the following text replaces the line.
    ToolOutput {
        /// The call.
        call_id: CallId,
        /// The plugin's name without its kind.
        source: String,
        /// The piece.
        text: String,
    },
    /// A running tool has changed a file.
    FileChanged {
        /// The call.
        call_id: CallId,
        /// The plugin's name without its kind.
        source: String,
        /// The change.
        change: FileChange,
    },
    /// A running tool changed the model's work plan.
    PlanChanged {
        /// The call.
        call_id: CallId,
        /// The plugin's name without its kind.
        source: String,
        /// The complete plan after the change.
        plan: WorkPlan,
    },
    /// A plugin changed the result that the model gets for a call.
    ToolResultChanged {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The name, without its kind, of the plugin that changed it.
        source: String,
    },
    /// A tool call has its result.
    ToolCallFinished {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// The result that the model gets.
        result: Map<String, Value>,
        /// Whether the result is an error.
        is_error: bool,
        /// The duration, in milliseconds.
        duration_ms: u64,
    },
    /// A tool added objects to the model's context.
    ObjectsAdded {
        /// The plugin's name without its kind.
        source: String,
        /// The tool to which the objects belong.
        tool: String,
        /// The tool's name for the result, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Metadata that applies to all objects.
        metadata: Map<String, Value>,
        /// The objects, each with its reference under `_REF_ID`.
        objects: Vec<Map<String, Value>>,
        /// How to show the objects, for clients that know the word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload_type: Option<String>,
        /// The result as text, for clients that cannot show the objects.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A call continues as a background task, because it exceeded the threshold or was started as
    /// one. Its result is the handle.
    TaskStarted {
        /// The task.
        task_id: String,
        /// The call that became the task.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// The plugin that started it as a detached task, for which no turn waits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A background task finished. The model gets the outcome with the next request.
    TaskFinished {
        /// The task.
        task_id: String,
        /// The call that it was.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// The result that the model gets.
        result: Map<String, Value>,
        /// Whether the result is an error.
        is_error: bool,
        /// The duration since the call began, in milliseconds.
        duration_ms: u64,
    },
    /// A message that the user sent during a turn joins the next request.
    MessageJoined {
        /// The user's message.
        text: String,
    },
    /// The record of the conversation has a new message, complete, as a saved session has it. Only
    /// front ends that ask for messages get this event.
    MessageAdded {
        /// The message.
        #[serde(flatten)]
        message: Message,
        /// The model that gave the answer, `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Whether it is an answer that broke off. Its last text says so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
    },
    /// A message from a plugin to the model joins the next request.
    Notified {
        /// The plugin.
        source: String,
        /// The message.
        text: String,
    },
    /// A command that a user entered begins.
    CommandStarted {
        /// The command's own id. Its output refers to it as the call.
        call_id: CallId,
        /// The command.
        name: String,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// The arguments.
        arguments: Value,
    },
    /// A command has its answer.
    CommandFinished {
        /// The command's own id.
        call_id: CallId,
        /// The command.
        name: String,
        /// The plugin's name without its kind, or `host`.
        source: String,
        /// The answer that the user gets.
        result: Map<String, Value>,
        /// Whether the answer is an error.
        is_error: bool,
        /// Whether the model gets the answer with the next request.
        shared: bool,
        /// The duration, in milliseconds.
        duration_ms: u64,
    },
    /// The screen of a tool's terminal: the newest state. Intermediate states may be skipped.
    TerminalScreen {
        /// The plugin's name without its kind.
        source: String,
        /// The plugin's name for the terminal: `session_0`.
        name: String,
        /// The command that runs on the terminal.
        command: String,
        /// The number of lines.
        rows: u16,
        /// The number of columns.
        columns: u16,
        /// Row and column of the cursor, counted from 0. `None` if it is hidden.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<(u16, u16)>,
        /// Whether a full-screen program draws the screen.
        is_full_screen: bool,
        /// The lines, without trailing blanks and without blank lines at the end.
        lines: Vec<String>,
        /// Whether the program is still running.
        is_alive: bool,
    },
    /// A user who joined a terminal typed there. The event does not contain the typed text.
    TerminalTyped {
        /// The plugin's name without its kind.
        source: String,
        /// The plugin's name for the terminal.
        name: String,
        /// The number of bytes since the last such event. Only bytes that the terminal echoed
        /// count: hidden input may be a password, whose length must stay secret.
        bytes: u64,
    },
    /// The user is asked to type a secret into a terminal.
    TerminalAsked {
        /// The plugin's name without its kind.
        source: String,
        /// The plugin's name for the terminal.
        name: String,
        /// The command that runs on the terminal.
        command: String,
        /// The program's prompt.
        prompt: String,
    },
    /// The user's secret input for a terminal ended.
    TerminalAnswered {
        /// The plugin's name without its kind.
        source: String,
        /// The plugin's name for the terminal.
        name: String,
        /// How it ended.
        outcome: SecretOutcome,
    },
    /// A plugin sends a request to a model outside the conversation.
    CompletionStarted {
        /// The request: `completion_1`.
        completion_id: String,
        /// The plugin.
        by: String,
        /// The plugin's call within which the request is made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// `provider/model`.
        model: String,
    },
    /// A plugin's request to a model finished or failed.
    CompletionFinished {
        /// The request.
        completion_id: String,
        /// The plugin.
        by: String,
        /// `provider/model`.
        model: String,
        /// The token usage.
        usage: Usage,
        /// The error, if the request failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// The duration, in milliseconds.
        duration_ms: u64,
    },
    /// A plugin shows the user a form. A client that supports forms answers it by its id.
    FormAsked {
        /// The form: `form_1`.
        form_id: String,
        /// The plugin that asks.
        source: String,
        /// The form's content.
        form: Form,
    },
    /// A form ended. Only the plugin gets the answers.
    FormAnswered {
        /// The form.
        form_id: String,
        /// The plugin that asked.
        source: String,
        /// How it ended.
        outcome: FormOutcome,
    },
    /// A program that answers the user's questions wrote something that is not an answer. The
    /// question still waits.
    AnswerRefused {
        /// The id of the question, if the form does not fit it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The number of the line on standard input, if the line is not an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        /// What is wrong with it.
        error: Error,
    },
    /// The token usage of a step.
    Usage {
        /// The tokens.
        #[serde(flatten)]
        usage: Usage,
    },
    /// The messages sent to the model were shortened, or a gc failed to shorten them. If they were,
    /// later requests begin differently.
    Gc {
        /// The reason.
        reason: GcReason,
        /// The gc's name without its kind, or `host` if the session itself shortened messages.
        source: String,
        /// The number of messages that jaato stopped sending.
        messages_removed: u64,
        /// The number of turns that jaato stopped sending completely.
        turns_removed: u64,
        /// The number of messages of which only the head and tail are sent.
        messages_cut: u64,
        /// Tokens in use before, estimated if no provider reported them.
        tokens_before: u64,
        /// Tokens in use after, estimated.
        tokens_after: u64,
        /// The gc's note about the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// The error, if nothing was changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// The host retries a failed request.
    Retry {
        /// The number of the attempt, counted from 1.
        attempt: u32,
        /// The delay before the attempt, in milliseconds.
        delay_ms: u64,
        /// The error that caused the retry.
        error: Error,
        /// Whether a part of the answer was already shown. Discard that part, because the answer
        /// starts again from its beginning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answer_restarts: bool,
    },
    /// A step finished.
    StepFinished {
        /// The number of the step, counted from 1 within the turn.
        step: u32,
        /// Why the model stopped.
        finish_reason: FinishReason,
    },
    /// A turn finished.
    TurnFinished {
        /// How it ended.
        outcome: Outcome,
        /// The final answer's text.
        text: String,
        /// The error, if the turn failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// An event from a newer version. Readers skip it.
    #[serde(other)]
    Unknown,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model gave its answer.
    Done,
    /// The model gave its answer, but a call was refused because no user could be asked.
    Denied,
    /// A limit was reached.
    Limit,
    /// The turn was cancelled.
    Cancelled,
    /// The turn failed.
    Failed,
    /// An outcome from a newer version. It is not [`Outcome::Done`].
    #[serde(other)]
    Unknown,
}

/// How the request for a secret input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretOutcome {
    /// The user typed, and the program got the input.
    Typed,
    /// The user declined.
    Declined,
    /// No user could be asked.
    Nobody,
    /// The request was withdrawn, or the input could not be delivered.
    Withdrawn,
    /// An outcome from a newer version.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_event_is_read_and_keeps_its_sequence_number() {
        let line = r#"{"v":1,"seq":7,"session":"s","event":"smell","of":["roses"]}"#;
        let envelope: EventEnvelope = serde_json::from_str(line).unwrap();
        assert_eq!((envelope.seq, envelope.event), (7, Event::Unknown));
    }

    #[test]
    fn unknown_outcome_is_read_as_unknown() {
        let outcome: Outcome = serde_json::from_str(r#""postponed""#).unwrap();
        assert_eq!(outcome, Outcome::Unknown);
    }
}
