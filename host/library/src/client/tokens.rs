//! The token ledger: records of requests, tool calls and decisions, kept in memory.

use std::io::Write as _;
use std::path::Path;

use jaato_runtime::store::{LedgerRecord, UsageTotals};
use parking_lot::Mutex;

use crate::LedgerRecorder;
use crate::types::{Error, ErrorKind, Result};

/// The maximum number of records that are kept. The oldest are dropped first, because a program may
/// run for months.
const RECORDS_MAX: usize = 100_000;

/// Keeps the ledger's records of the sessions to which it belongs.
#[derive(Default)]
pub struct TokenLedger(Mutex<LedgerState>);

#[derive(Default)]
struct LedgerState {
    records: Vec<LedgerRecord>,
    /// The number of all records, and their totals, including those that were dropped.
    count: u64,
    totals: UsageTotals,
}

/// Sums over a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct LedgerTotals {
    /// Answered requests.
    pub calls: u64,
    /// Tokens of the requests.
    pub total_prompt_tokens: u64,
    /// Tokens of the answers.
    pub total_output_tokens: u64,
    /// Their sum.
    pub total_tokens: u64,
    /// Records, including those that are no longer kept.
    pub events: u64,
    /// Failed requests, each of which is tried again if its error may pass.
    pub retry_attempts: u64,
}

impl TokenLedger {
    /// Creates an empty ledger.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the records that are kept.
    pub fn events(&self) -> Vec<LedgerRecord> {
        self.0.lock().records.clone()
    }

    /// Sums up the records so far.
    pub fn summarize(&self) -> LedgerTotals {
        let LedgerState { count, totals, .. } = *self.0.lock();
        LedgerTotals {
            calls: totals.requests - totals.failed_requests,
            total_prompt_tokens: totals.prompt_tokens,
            total_output_tokens: totals.output_tokens,
            total_tokens: totals.prompt_tokens + totals.output_tokens,
            events: count,
            retry_attempts: totals.failed_requests,
        }
    }

    /// Returns the sums over all records so far, also those that [`TokenLedger::summarize`] leaves
    /// out: cached tokens, cost, tool calls.
    pub fn totals(&self) -> UsageTotals {
        self.0.lock().totals
    }

    /// Appends the kept records to a file, one line of JSON each.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write_ledger(&self, path: &Path) -> Result<()> {
        let failed = |error: std::io::Error| {
            let text = format!("cannot write the ledger `{}`: {error}", path.display());
            Error::new(ErrorKind::Io, text)
        };
        let mut lines = Vec::new();
        for record in self.0.lock().records.iter() {
            lines.extend(record.to_line().map_err(|error| failed(error.into()))?);
        }
        let mut options = std::fs::File::options();
        let file = options.create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(&lines)).map_err(failed)
    }
}

impl LedgerRecorder for TokenLedger {
    fn record(&self, record: &LedgerRecord) {
        let LedgerState { records, count, totals } = &mut *self.0.lock();
        if records.len() >= RECORDS_MAX {
            records.drain(..RECORDS_MAX / 2);
        }
        records.push(record.clone());
        *count += 1;
        totals.add_stage(&record.stage);
    }
}
