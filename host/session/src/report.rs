//! The result of a turn.

use jaato_types::{Error, Outcome, Usage};

/// The result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The text of the last answer. If the answer broke off, the text includes the mark that says
    /// so.
    pub text: String,
    /// The tokens of the turn's last request that reported them. The ledger has sums over turns.
    pub usage: Usage,
    /// The error, if the turn failed.
    pub error: Option<Error>,
    /// Requests to the provider, without retries.
    pub steps: u32,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether the last request has no answer, so that `Session::repeat_last_turn` would send it
    /// again.
    pub is_open: bool,
    /// Whether tool calls ran and all of them failed. Refused calls do not count. The model may
    /// still have answered as if it had done the task.
    pub no_call_worked: bool,
}
