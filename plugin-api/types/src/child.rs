//! The services `session.open` and what follows it: sessions that a plugin opens beside its own.

use serde::{Deserialize, Serialize};

use crate::{Error, Outcome, ToolName, Usage};

crate::operations::service_operations! { $ child_operations, Some("session.open"), answered;
    /// Opens a child session.
    open SESSION_OPEN "session.open": ChildOpen => ChildOpened;
    /// Sends a text to a child session. It begins a turn, or joins the turn that runs.
    send SESSION_SEND "session.send": ChildSend => ChildDone;
    /// Waits until no turn of a child session runs.
    wait SESSION_WAIT "session.wait": ChildWait => ChildState;
    /// Follows the events of a child session. Each frame is an `Envelope`.
    events SESSION_EVENTS "session.events": ChildRef => StreamAnswer + stream;
    /// Ends the running turn of a child session.
    cancel SESSION_CANCEL "session.cancel": ChildRef => ChildDone;
    /// Closes a child session. All children end with the call or the instance that opened them.
    close SESSION_CLOSE "session.close": ChildRef => ChildDone;
}

/// How deep sessions may open sessions.
pub const CHILD_DEPTH_MAX: u32 = 2;
/// Children below one session that is nobody's child, at a time.
pub const CHILDREN_MAX: usize = 16;
/// Longest wait of one `session.wait`, in milliseconds: ask again for more.
pub const CHILD_WAIT_MS_MAX: u64 = 600_000;
/// Events of a child that wait for who follows it; older ones are left out.
pub const CHILD_EVENTS_MAX: usize = 1_024;

/// What a child session is like. It shares its opener's rules, ledger, execution environment and
/// caps; its questions go to the same person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildOpen {
    /// What people see it called: `researcher`. 1 to 64 of a-z, A-Z, 0-9, `-`, `_`.
    pub name: String,
    /// The model, by any name that a person may give; the opener's where this is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools that it has, all of them offered from the start; those of its opener where this is
    /// absent, none where it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// What stands in its system text besides what every session has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Requests that one of its turns may make; the configured limit where this is absent or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u32>,
    /// What it has of the objects that tools have put in front of its opener.
    pub objects: ObjectsLent,
}

/// What a child has of its opener's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectsLent {
    /// The same ones: what either adds, both have.
    Share,
    /// A copy.
    Copy,
    /// None; so is a word that this side does not know.
    #[default]
    #[serde(other)]
    None,
}

/// A child that was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChildOpened {
    /// Its number, by which its opener names it.
    pub session: u64,
    /// Its id in events and in the ledger.
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

/// Something to say to a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildSend {
    /// The child's number.
    pub session: u64,
    /// What to say; not blank.
    pub text: String,
}

/// A wait for a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChildWait {
    /// The child's number.
    pub session: u64,
    /// How long at most, in milliseconds; the longest where this is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
}

/// It is done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChildDone {}

/// How a child stands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ChildState {
    /// Whether a turn runs, or waits to.
    pub is_running: bool,
    /// Turns that have ended.
    pub turns: u64,
    /// How the last one ended; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ChildTurn>,
}

/// How a turn of a child ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChildTurn {
    /// How it ended.
    pub outcome: Outcome,
    /// The final answer's text.
    #[serde(default)]
    pub text: String,
    /// What its last request used.
    #[serde(default)]
    pub usage: Usage,
    /// Requests that it made.
    #[serde(default)]
    pub steps: u32,
    /// What went wrong, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

crate::operations::made_by_host!(ChildOpened(session: u64, session_id: impl Into<String>, model: impl Into<String>));

impl ChildTurn {
    /// Makes it; the host does.
    pub fn new(outcome: Outcome, text: impl Into<String>) -> Self {
        let (text, usage) = (text.into(), Usage::default());
        Self { outcome, text, usage, steps: 0, error: None }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
