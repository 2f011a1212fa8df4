//! What came of a turn.

use jaato_types::{Error, Outcome, Usage};

/// What came of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The text of the last answer; of one that was cut short with the mark that says so.
    pub text: String,
    /// Tokens of the turn's last request that told them; sums over turns live in the ledger.
    pub usage: Usage,
    /// What went wrong, where something did.
    pub error: Option<Error>,
    /// Requests to the provider, retries not counted.
    pub steps: u32,
    /// When it began, in milliseconds since 1970.
    pub started_at_ms: u64,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Whether its last request has no answer, so that `Session::turn_again` would send it again.
    pub is_open: bool,
    /// Whether tool calls ran and every one of them failed. Refused calls do not count. The model
    /// may still have answered as if it had done the task.
    pub no_call_worked: bool,
}
