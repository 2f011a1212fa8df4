//! Events: the one stream that terminals, JSON lines, pages and tests read.
//!
//! An event is written as `{"v":1,"seq":…,"session":…,"event":"text_delta",…}`. Names are in snake
//! case and only ever added. The seed's `(source, text, mode)` is derivable: `source` is `model` or
//! the plugin's name, of a shipped one without its kind; a delta that follows another of its kind
//! appends, any other writes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ask::{Form, FormOutcome};
use crate::file_change::FileChange;
use crate::permission_prompt::PermissionPrompt;
use crate::work_plan::WorkPlan;
use crate::{CallId, Error, FinishReason, GcReason, SessionId, ToolName, Usage};

/// An event with its place in the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// Version of this shape.
    pub v: u32,
    /// Counts from 1 within a session, without gaps.
    pub seq: u64,
    /// The session.
    pub session: SessionId,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

impl Envelope {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Gives an event its place in a session's stream.
    pub fn new(seq: u64, session: SessionId, event: Event) -> Self {
        Self { v: Self::VERSION, seq, session, event }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A session begins.
    SessionStarted {
        /// `provider/model`.
        model: String,
        /// The tools in the request, by name.
        tools: Vec<ToolName>,
        /// What people see it called, where another session opened it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The session that opened it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opener: Option<SessionId>,
    },
    /// Another model answers from here on.
    ModelChanged {
        /// `provider/model`.
        model: String,
        /// What of the conversation it is not sent, a line each.
        left_out: Vec<String>,
        /// Why the one before failed for good, where that is the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// A person's prompt was taken, or something woke the session.
    TurnStarted {
        /// The prompt; empty where nobody said anything.
        prompt: String,
        /// What woke the session, where that is why: the task, or the plugin that notified.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        woken_by: Vec<String>,
    },
    /// A plugin put text before a person's prompt: it is a part of the prompt's message that names
    /// the plugin.
    PromptAdded {
        /// The plugin's name without its kind.
        source: String,
        /// How long the text is, estimated.
        tokens: u64,
        /// Whether it was longer, and is cut.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
    },
    /// A plugin changed the request that is sent next.
    RequestChanged {
        /// The plugin's name without its kind.
        source: String,
        /// The names of the options that are others in this request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
        /// How much text it put behind the newest message, in tokens, estimated.
        #[serde(default)]
        tokens: u64,
    },
    /// A request goes to the provider.
    StepStarted {
        /// Counts from 1 within the turn.
        step: u32,
    },
    /// More of the answer's text.
    TextDelta {
        /// `model`.
        source: String,
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning.
    ThoughtDelta {
        /// `model`.
        source: String,
        /// The piece.
        text: String,
    },
    /// What is going on while nothing else is to be seen.
    Notice {
        /// Who says it: a plugin's name without its kind, or `host`.
        source: String,
        /// One line.
        text: String,
    },
    /// How far a long step has come.
    Progress {
        /// Who says it.
        source: String,
        /// What is going on.
        label: String,
        /// How much of it is done.
        done: u64,
        /// How much there is, in the same unit; 0 where that is not known.
        total: u64,
    },
    /// A plugin gave a tool call other arguments, before it is decided whether it may run.
    ToolCallChanged {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The name, without its kind, of the plugin that changed them.
        source: String,
        /// The arguments from here on.
        arguments: Value,
    },
    /// The user must be asked before a call may run.
    PermissionAsked(Box<PermissionPrompt>),
    /// It is decided whether a call may run.
    PermissionDecided {
        /// The call.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// Whether it may run.
        allowed: bool,
        /// The rule that decided.
        rule: String,
        /// Where that rule is written, as `FILE:LINE`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<String>,
        /// What the person said to it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
        /// The way on which somebody answered: `terminal`, `client`, `webhook`, `file`; empty where
        /// a rule decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        answered_by: String,
        /// How long the answer holds: `once`, `turn`, `session`, `always`; empty where a rule
        /// decided.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        scope: String,
        /// For which later calls the answer holds, in words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remembered: Option<String>,
        /// The kind of the pattern that these calls have: `exact`, `command`, `path`, `host`,
        /// `terminal`, `tool`; empty where nothing is remembered.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pattern: String,
        /// The kind of the agent that makes the call: `main`, `subagent`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_type: String,
        /// What people see that agent called; empty for the main one.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        agent_name: String,
    },
    /// The person changed how much is asked.
    ModeChanged {
        /// What holds from here on: `ask`, `accept-edits`, `plan`, `read-only`.
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
        /// The call of the plugin that makes this one, where a plugin does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// The plugin that makes the call; none where the model or a person does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A running tool shows something. A `\r` that ends no line begins the line anew, as progress
    /// bars do: what follows replaces what of it was shown.
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
        /// How.
        change: FileChange,
    },
    /// A running tool has changed what the model works through.
    PlanChanged {
        /// The call.
        call_id: CallId,
        /// The plugin's name without its kind.
        source: String,
        /// The whole of it, as it is now.
        plan: WorkPlan,
    },
    /// A plugin changed what the model is given of a call's result.
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
        /// What the model is given.
        result: Map<String, Value>,
        /// Whether it is an error.
        is_error: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A tool has put objects in front of the model.
    ObjectsAdded {
        /// The plugin's name without its kind.
        source: String,
        /// The tool under which they stand.
        tool: String,
        /// What the tool calls the result, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// What holds for all of them.
        metadata: Map<String, Value>,
        /// The objects, each with its reference under `_REF_ID`.
        objects: Vec<Map<String, Value>>,
        /// How they are shown, for clients that know the word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        payload_type: Option<String>,
        /// The result in words, for clients that know no better.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A call goes on as a task: it takes longer than the threshold, or was started as one. Its
    /// result is the handle.
    TaskStarted {
        /// The task.
        task_id: String,
        /// The call that it was.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// The plugin that started it as a task: no turn waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    /// A task has its outcome, which the model is told with the next request.
    TaskFinished {
        /// The task.
        task_id: String,
        /// The call that it was.
        call_id: CallId,
        /// The tool.
        name: ToolName,
        /// The plugin's name without its kind.
        source: String,
        /// What the model is given.
        result: Map<String, Value>,
        /// Whether it is an error.
        is_error: bool,
        /// How long it took since the call began, in milliseconds.
        duration_ms: u64,
    },
    /// What a person said while a turn ran joins the next request.
    MessageJoined {
        /// What the person said.
        text: String,
    },
    /// A plugin has something to say to the model; it joins the next request.
    Notified {
        /// The plugin.
        source: String,
        /// What it says.
        text: String,
    },
    /// A command that a person gave begins.
    CommandStarted {
        /// The command's own id: what it shows while it runs names it as its call.
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
        /// What the person is given.
        result: Map<String, Value>,
        /// Whether it is an error.
        is_error: bool,
        /// Whether the model is shown the answer with the next request.
        shared: bool,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// What is on the screen of a terminal that a tool has: the newest, and not each that there was
    /// between two.
    TerminalScreen {
        /// The plugin's name without its kind.
        source: String,
        /// What the plugin calls the terminal: `session_0`.
        name: String,
        /// What runs on it.
        command: String,
        /// Lines of the terminal.
        rows: u16,
        /// Columns of the terminal.
        columns: u16,
        /// Row and column of the cursor, each counted from 0; none where it is hidden.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<(u16, u16)>,
        /// Whether a full-screen program draws it.
        is_full_screen: bool,
        /// The lines, without what is blank at their ends and below.
        lines: Vec<String>,
        /// Whether the program still runs.
        is_alive: bool,
    },
    /// A person who had joined a terminal typed there; what was typed is told to nobody.
    TerminalTyped {
        /// The plugin's name without its kind.
        source: String,
        /// What the plugin calls the terminal.
        name: String,
        /// How many bytes since this was told last, of those that the terminal showed: what it
        /// hides may be a password, of which nobody is told the length.
        bytes: u64,
    },
    /// The person is asked to type something into a terminal that nobody else may see.
    TerminalAsked {
        /// The plugin's name without its kind.
        source: String,
        /// What the plugin calls the terminal.
        name: String,
        /// What runs on it.
        command: String,
        /// What the program asks for.
        prompt: String,
    },
    /// That question is over.
    TerminalAnswered {
        /// The plugin's name without its kind.
        source: String,
        /// What the plugin calls the terminal.
        name: String,
        /// How it ended.
        outcome: SecretOutcome,
    },
    /// A plugin asks a model something beside the conversation.
    CompletionStarted {
        /// The request: `completion_1`.
        completion_id: String,
        /// The plugin.
        by: String,
        /// Its call, where it asks within one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<CallId>,
        /// `provider/model`.
        model: String,
    },
    /// That request is answered, or has failed.
    CompletionFinished {
        /// The request.
        completion_id: String,
        /// The plugin.
        by: String,
        /// `provider/model`.
        model: String,
        /// What it used.
        usage: Usage,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
        /// How long it took, in milliseconds.
        duration_ms: u64,
    },
    /// A plugin asks the person. A client that shows forms answers by its id.
    FormAsked {
        /// The form: `form_1`.
        form_id: String,
        /// The plugin that asks.
        source: String,
        /// What is asked.
        form: Form,
    },
    /// That form is over. What was answered is told to the plugin alone.
    FormAnswered {
        /// The form.
        form_id: String,
        /// The plugin that asked.
        source: String,
        /// How it ended.
        outcome: FormOutcome,
    },
    /// What a step cost.
    Usage {
        /// The tokens.
        #[serde(flatten)]
        usage: Usage,
    },
    /// What the model is sent was made smaller, or should have been: from here on requests begin
    /// differently.
    Gc {
        /// Why.
        reason: GcReason,
        /// The gc's name without its kind, or `host` where the session itself shortened messages.
        source: String,
        /// How many messages are sent no more.
        messages_removed: u64,
        /// How many turns are sent no more, not even in part.
        turns_removed: u64,
        /// How many messages are sent as head and tail.
        messages_cut: u64,
        /// Tokens in use before, estimated where no provider told them.
        tokens_before: u64,
        /// Tokens in use after, estimated.
        tokens_after: u64,
        /// What there is to say about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// Why nothing was done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// A failed request is tried again.
    Retry {
        /// Counts from 1.
        attempt: u32,
        /// How long until then, in milliseconds.
        delay_ms: u64,
        /// Why.
        error: Error,
        /// Whether a part of the answer was shown already. It counts no longer: the answer comes
        /// again from its beginning.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        answer_restarts: bool,
    },
    /// A step is over.
    StepFinished {
        /// Counts from 1 within the turn.
        step: u32,
        /// Why the model stopped.
        finish_reason: FinishReason,
    },
    /// A turn is over.
    TurnFinished {
        /// How it ended.
        outcome: Outcome,
        /// The final answer's text.
        text: String,
        /// What went wrong, where it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Error>,
    },
    /// Something that this side does not know; a reader passes it over.
    #[serde(other)]
    Unknown,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model gave its answer.
    Done,
    /// The model gave its answer after a call was refused because nobody could be asked.
    Denied,
    /// A bound was reached.
    Limit,
    /// It was cancelled.
    Cancelled,
    /// It failed.
    Failed,
    /// In a way that this side does not know: not [`Outcome::Done`].
    #[serde(other)]
    Unknown,
}

/// How a question for something that nobody else may see ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretOutcome {
    /// The person typed, and the program has it.
    Typed,
    /// The person would not.
    Declined,
    /// There was nobody to ask.
    Nobody,
    /// It was taken back, or what was typed could not be handed over.
    Withdrawn,
    /// In a way that this side does not know.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_from_the_future_keeps_its_place_in_the_stream() {
        let line = r#"{"v":1,"seq":7,"session":"s","event":"smell","of":["roses"]}"#;
        let envelope: Envelope = serde_json::from_str(line).unwrap();
        assert_eq!((envelope.seq, envelope.event), (7, Event::Unknown));
    }

    #[test]
    fn an_outcome_from_the_future_is_one_that_nobody_knows() {
        let outcome: Outcome = serde_json::from_str(r#""postponed""#).unwrap();
        assert_eq!(outcome, Outcome::Unknown);
    }
}
