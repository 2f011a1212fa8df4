//! The services `session.*`: child sessions that a plugin opens next to its own session.

use serde::{Deserialize, Serialize};

use crate::{Error, Outcome, ToolName, Usage};

crate::operations::service_operations! { $ child_operations, Some("session.open"), answered;
    /// Opens a child session.
    open SESSION_OPEN "session.open": ChildOpen => OpenedChild;
    /// Sends a message to a child session. It starts a turn, or joins the running one.
    send SESSION_SEND "session.send": ChildSend => ChildEmptyAnswer;
    /// Waits until a child session has no running turn.
    wait SESSION_WAIT "session.wait": ChildWait => ChildState;
    /// Follows the events of a child session. Each frame is an `EventEnvelope`.
    events SESSION_EVENTS "session.events": ChildRef => StreamAnswer + stream;
    /// Cancels the running turn of a child session.
    cancel SESSION_CANCEL "session.cancel": ChildRef => ChildEmptyAnswer;
    /// Closes a child session. A child also closes when the call or the instance that opened it
    /// ends.
    close SESSION_CLOSE "session.close": ChildRef => ChildEmptyAnswer;
}

/// The maximum nesting depth of child sessions.
pub const CHILD_DEPTH_MAX: u32 = 2;
/// The maximum number of simultaneous children below one top-level session.
pub const CHILDREN_MAX: usize = 128;
/// The maximum duration of one `session.wait`, in milliseconds. Call it again to wait longer.
pub const CHILD_WAIT_MS_MAX: u64 = 600_000;
/// The maximum number of a child's events that wait for their reader. Older ones are dropped.
pub const CHILD_EVENTS_MAX: usize = 1_024;

/// The properties of a child session. It shares the rules, ledger, execution environment and limits
/// of the session that opens it, and its questions go to the same user.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildOpen {
    /// The name that the user sees: `researcher`. 1 to 64 of a-z, A-Z, 0-9, `-`, `_`.
    pub name: String,
    /// The model, by any name that a user may give. If absent, the opener's model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The child's tools: names of the opener's tools, or beginnings of names before a `*`. If
    /// absent, the opener's tools; if empty, no tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// Instructions added to the system prompt that every session has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The maximum number of requests in one of its turns, at most the configured limit. If absent,
    /// the configured limit applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u32>,
    /// How the child gets the objects of its opener's tools.
    pub objects: ObjectSharing,
    /// Continues a saved child of the same opener, by its session id, with its conversation. Its
    /// model answers again unless `model` names another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// The maximum number of tokens of all its requests and answers, besides the opener's caps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<u64>,
    /// The maximum cost of all its requests, in US dollars, besides the opener's caps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_max: Option<f64>,
    /// The maximum duration of one of its turns, in milliseconds. The turn is then cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_ms_max: Option<u64>,
    /// Its working directory, relative to the opener's and below the workspace's root: it then has
    /// an execution environment of its own there. If absent, it shares the opener's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// The gc of its context: `truncate`, or the name of a gc plugin. If absent, the configured
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc: Option<String>,
}

/// How a child gets its opener's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectSharing {
    /// Both sessions share the objects: each sees what the other adds.
    Share,
    /// The child gets a copy.
    Copy,
    /// The child gets no objects. Unknown words from a newer version mean this as well.
    #[default]
    #[serde(other)]
    None,
}

/// A child that was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OpenedChild {
    /// The number by which the opener refers to the child.
    pub session: u64,
    /// The session id in events and in the ledger.
    pub session_id: String,
    /// `provider/model`.
    pub model: String,
}

/// A child, by its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildRef {
    /// The number.
    pub session: u64,
}

/// A message to a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildSend {
    /// The child's number.
    pub session: u64,
    /// The text, which must not be blank.
    pub text: String,
}

/// A wait for a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildWait {
    /// The child's number.
    pub session: u64,
    /// The maximum duration, in milliseconds. 0 means [`CHILD_WAIT_MS_MAX`].
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// The answer of a service that returns nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChildEmptyAnswer {}

/// The state of a child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChildState {
    /// Whether a turn is running or waiting to run.
    pub is_running: bool,
    /// The number of finished turns.
    pub turns: u64,
    /// How the last turn ended. `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ChildTurn>,
}

/// How a turn of a child ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildTurn {
    /// The outcome.
    pub outcome: Outcome,
    /// The text of the final answer.
    #[serde(default)]
    pub text: String,
    /// The token usage of its last request.
    #[serde(default)]
    pub usage: Usage,
    /// The number of requests that it made.
    #[serde(default)]
    pub steps: u32,
    /// The error, if the turn failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

crate::operations::made_by_host!(OpenedChild(session: u64, session_id: impl Into<String>, model: impl Into<String>));

impl ChildTurn {
    /// Creates the outcome of a turn. Only the host needs this.
    pub fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        let (text, usage) = (text.into(), Usage::default());
        Self { outcome, text, usage, steps: 0, error: None }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
