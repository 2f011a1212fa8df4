//! Summarizes a ledger: one row per turn, and the totals. Streaming: only the last rows are in
//! memory, whatever the ledger's size.

use std::collections::VecDeque;

use jaato_types::{ErrorKind, Outcome, SessionId};
use serde::Serialize;

use crate::read::LedgerLine;
use crate::record::{LedgerRecord, LedgerStage};

/// Maximum number of other turns that may begin while a turn runs and still finds its row.
const TURNS_BETWEEN_MAX: usize = 1024;

/// The totals of a turn, or of a session's work outside of turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnRow {
    /// The session.
    pub session: SessionId,
    /// The turn, or 0 for work outside of turns.
    pub turn: u64,
    /// The time of its first record.
    pub started: String,
    /// The model, if one was used.
    pub model: Option<String>,
    /// How it ended, or `None` if it still runs or its process died.
    pub outcome: Option<Outcome>,
    /// The kind of error.
    pub error_kind: Option<ErrorKind>,
    /// Its totals.
    #[serde(flatten)]
    pub totals: UsageTotals,
}

/// Sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UsageTotals {
    /// Requests to a provider, including each attempt.
    pub requests: u64,
    /// Failed requests.
    pub failed_requests: u64,
    /// Tokens of the requests, counted each time they were sent.
    pub prompt_tokens: u64,
    /// Prompt tokens that came from a cache.
    pub cached_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// The known cost, in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Answers with unknown cost.
    pub answers_without_cost: u64,
    /// Tool calls that have a result.
    pub tool_calls: u64,
    /// Failed tool calls, including denied ones.
    pub failed_tool_calls: u64,
    /// Denied calls.
    pub denied: u64,
    /// Commands of the user.
    pub commands: u64,
    /// Number of times the context was made smaller.
    pub gcs: u64,
}

/// The summary of a ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LedgerFileSummary {
    /// The last turns, the oldest first.
    pub turns: VecDeque<TurnRow>,
    /// Number of turns read, whether or not they are listed.
    pub turns_read: u64,
    /// The totals of everything read.
    pub totals: UsageTotals,
    /// Number of invalid lines.
    pub bad_lines: u64,
    /// The first invalid line.
    pub first_bad_line: Option<u64>,
    #[serde(skip)]
    rows_max: usize,
    /// The prefix of the session ids to include.
    #[serde(skip)]
    session: Option<String>,
}

impl LedgerFileSummary {
    /// Creates an empty summary. Lists the last `rows_max` turns of sessions whose id begins with
    /// `session`.
    pub fn new(rows_max: usize, session: Option<String>) -> Self {
        Self {
            turns: VecDeque::new(),
            turns_read: 0,
            totals: UsageTotals::default(),
            bad_lines: 0,
            first_bad_line: None,
            rows_max,
            session,
        }
    }

    /// Takes the next line.
    pub fn add_line(&mut self, line: LedgerLine) {
        match line {
            LedgerLine::Record(record) => {
                let is_wanted = |wanted: &String| record.session.as_str().starts_with(wanted);
                if self.session.as_ref().is_none_or(is_wanted) {
                    self.add_record(*record);
                }
            }
            LedgerLine::Bad { number } => {
                self.bad_lines += 1;
                self.first_bad_line.get_or_insert(number);
            }
        }
    }

    /// Finishes with the requested number of rows.
    #[must_use]
    pub fn finish(mut self) -> Self {
        let surplus = self.turns.len().saturating_sub(self.rows_max);
        self.turns.drain(..surplus);
        self
    }

    fn add_record(&mut self, record: LedgerRecord) {
        self.totals.add_stage(&record.stage);
        let row = self.row_for_turn(&record);
        row.totals.add_stage(&record.stage);
        match record.stage {
            LedgerStage::Response { model, .. } | LedgerStage::ApiError { model, .. } => {
                row.model = Some(model)
            }
            LedgerStage::Turn { model, outcome, error_kind, .. } => {
                row.model = Some(model);
                row.outcome = Some(outcome);
                row.error_kind = error_kind;
            }
            LedgerStage::ToolCall { .. }
            | LedgerStage::Completion { .. }
            | LedgerStage::AutoBackground { .. }
            | LedgerStage::Task { .. }
            | LedgerStage::PermissionRequest { .. }
            | LedgerStage::PermissionCheck { .. }
            | LedgerStage::Gc { .. }
            | LedgerStage::Command { .. }
            | LedgerStage::Unknown => {}
        }
    }

    /// Finds the record's row among the last ones, or adds it.
    fn row_for_turn(&mut self, record: &LedgerRecord) -> &mut TurnRow {
        let is_its = |row: &TurnRow| row.session == record.session && row.turn == record.turn;
        let at = match self.turns.iter().rposition(is_its) {
            Some(at) => at,
            None => {
                if self.turns.len() >= self.rows_max.saturating_add(TURNS_BETWEEN_MAX) {
                    self.turns.pop_front();
                }
                self.turns_read += u64::from(record.turn > 0);
                self.turns.push_back(TurnRow {
                    session: record.session.clone(),
                    turn: record.turn,
                    started: record.ts.clone(),
                    model: None,
                    outcome: None,
                    error_kind: None,
                    totals: UsageTotals::default(),
                });
                self.turns.len() - 1
            }
        };
        &mut self.turns[at]
    }
}

impl UsageTotals {
    /// Adds a record's stage.
    pub fn add_stage(&mut self, stage: &LedgerStage) {
        match stage {
            LedgerStage::Response {
                prompt_tokens,
                output_tokens,
                cached_tokens,
                cost_micro_usd,
                ..
            } => {
                self.cost_micro_usd += cost_micro_usd.unwrap_or(0);
                self.answers_without_cost += u64::from(cost_micro_usd.is_none());
                self.requests += 1;
                self.prompt_tokens += prompt_tokens.unwrap_or(0);
                self.output_tokens += output_tokens.unwrap_or(0);
                self.cached_tokens += cached_tokens.unwrap_or(0);
            }
            LedgerStage::Completion {
                prompt_tokens,
                output_tokens,
                cached_tokens,
                cost_micro_usd,
                ok,
                ..
            } => {
                self.cost_micro_usd += cost_micro_usd.unwrap_or(0);
                self.answers_without_cost += u64::from(*ok && cost_micro_usd.is_none());
                self.requests += 1;
                self.failed_requests += u64::from(!ok);
                self.prompt_tokens += prompt_tokens;
                self.output_tokens += output_tokens;
                self.cached_tokens += cached_tokens;
            }
            LedgerStage::ApiError { .. } => {
                self.requests += 1;
                self.failed_requests += 1;
            }
            LedgerStage::ToolCall { ok, .. } => {
                self.tool_calls += 1;
                self.failed_tool_calls += u64::from(!ok);
            }
            LedgerStage::PermissionCheck { allowed, .. } => self.denied += u64::from(!allowed),
            LedgerStage::Gc { error_kind, .. } => self.gcs += u64::from(error_kind.is_none()),
            LedgerStage::Command { .. } => self.commands += 1,
            LedgerStage::AutoBackground { .. }
            | LedgerStage::Task { .. }
            | LedgerStage::PermissionRequest { .. }
            | LedgerStage::Turn { .. }
            | LedgerStage::Unknown => {}
        }
    }
}
