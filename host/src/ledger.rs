//! `jaato ledger`: shows token usage, cost and permission decisions.

use std::io;

use clap::Args;
use jaato_runtime::config::Dollars;
use jaato_runtime::ledger_path;
use jaato_runtime::store::{LedgerFileSummary, LedgerReader, TurnRow, UsageTotals};
use jaato_runtime::types::Outcome as TurnOutcome;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start};

/// The arguments of `ledger show`.
#[derive(Debug, Args)]
pub struct LedgerShowArgs {
    /// Show only sessions whose id begins with this
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,

    /// The number of turns to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub last: usize,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows the ledger turn by turn, and its totals.
pub fn show_ledger(global: GlobalArgs, args: LedgerShowArgs) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let path = ledger_path(&setup)?;
    let failed = |error: io::Error| {
        let text = format!("cannot read the ledger `{}`: {error}", path.display());
        CommandFailure::new(Exit::Failed, text)
    };
    let mut summary = LedgerFileSummary::new(args.last, args.session.clone());
    let is_there = match LedgerReader::open(&path) {
        Ok(mut reader) => {
            while let Some(line) = reader.next_line().map_err(failed)? {
                summary.add_line(line);
            }
            true
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed(error)),
    };
    let summary = summary.finish();
    if let Some(first) = summary.first_bad_line {
        let count = summary.bad_lines;
        let text = format!(
            "skipped invalid records in the ledger `{}`: {count} {}, the first is line {first}",
            path.display(),
            if count == 1 { "line" } else { "lines" }
        );
        report::print_problems(&[text]);
    }
    if args.json {
        let json = serde_json::to_value(&summary).map_err(|error| {
            CommandFailure::new(Exit::Failed, format!("cannot show it: {error}"))
        })?;
        return report::print_exact_json(&json);
    }
    if summary.turns.is_empty() {
        let text = match (is_there, &args.session) {
            (false, _) => format!("no ledger yet (`{}`)", path.display()),
            (true, Some(session)) => format!("no session `{session}` in the ledger"),
            (true, None) => "nothing in the ledger yet".to_owned(),
        };
        report::print_line(&text)?;
        return Ok(Exit::Done);
    }
    print_summary_table(&summary)
}

const HEAD: [&str; 13] = [
    "time (UTC)",
    "session",
    "turn",
    "model",
    "requests",
    "in",
    "cached",
    "out",
    "cost",
    "calls",
    "denied",
    "gc",
    "outcome",
];

fn print_summary_table(summary: &LedgerFileSummary) -> CommandResult {
    let rows: Vec<_> = summary.turns.iter().map(turn_row).collect();
    report::print_table(&HEAD, &rows)?;
    let listed = summary.turns.iter().filter(|row| row.turn > 0).count() as u64;
    if summary.turns_read > listed {
        let earlier = summary.turns_read - listed;
        report::print_sentence(&format!(
            "(and {} earlier; `--last N` lists more)",
            format_turn_count(earlier)
        ))?;
    }
    report::print_sentence(&format!("\nin all: {}", format_sums(summary)))?;
    Ok(Exit::Done)
}

fn turn_row(row: &TurnRow) -> Vec<String> {
    let totals = &row.totals;
    let turn = if row.turn == 0 { "-".to_owned() } else { row.turn.to_string() };
    // The table shows whole seconds, although the records have more precise times.
    let time = row.started.split('.').next().unwrap_or_default().replace('T', " ");
    let (requests, calls) = (
        count_with_failed(totals.requests, totals.failed_requests),
        count_with_failed(totals.tool_calls, totals.failed_tool_calls),
    );
    vec![
        time,
        row.session.to_string(),
        turn,
        row.model.clone().filter(|model| !model.is_empty()).unwrap_or_else(|| "-".to_owned()),
        requests,
        totals.prompt_tokens.to_string(),
        totals.cached_tokens.to_string(),
        totals.output_tokens.to_string(),
        format_cost(totals),
        calls,
        totals.denied.to_string(),
        totals.gcs.to_string(),
        format_outcome(row),
    ]
}

/// Formats a known cost: `$0.012`, `-` if none is known, with a `+` if some is unknown.
fn format_cost(totals: &UsageTotals) -> String {
    let is_unknown = totals.cost_micro_usd == 0 && totals.answers_without_cost > 0;
    if is_unknown || totals.requests == totals.failed_requests {
        return "-".to_owned();
    }
    let more = if totals.answers_without_cost > 0 { "+" } else { "" };
    format!("${}{more}", Dollars::from_micros(totals.cost_micro_usd))
}

fn count_with_failed(all: u64, failed: u64) -> String {
    if failed == 0 { all.to_string() } else { format!("{all} ({failed} failed)") }
}

fn format_outcome(row: &TurnRow) -> String {
    let word = match row.outcome {
        Some(TurnOutcome::Done) => "done",
        Some(TurnOutcome::Denied) => "denied",
        Some(TurnOutcome::Limit) => "limit",
        Some(TurnOutcome::Cancelled) => "cancelled",
        Some(TurnOutcome::Failed) => "failed",
        Some(TurnOutcome::Unknown) => "unknown",
        None if row.turn == 0 => "-",
        None => "no end",
    };
    match row.error_kind {
        Some(kind) => format!("{word} ({})", kind.name()),
        None => word.to_owned(),
    }
}

fn format_sums(summary: &LedgerFileSummary) -> String {
    let UsageTotals {
        requests,
        failed_requests,
        prompt_tokens,
        cached_tokens,
        output_tokens,
        cost_micro_usd,
        answers_without_cost: _,
        tool_calls,
        failed_tool_calls,
        denied,
        commands,
        gcs,
    } = summary.totals;
    let mut parts = vec![
        format_turn_count(summary.turns_read),
        format_count("request", requests, failed_requests),
        format!("{prompt_tokens} tokens in ({cached_tokens} of them cached)"),
        format!("{output_tokens} tokens out"),
        format!("${} if a price is known", Dollars::from_micros(cost_micro_usd)),
        format_count("tool call", tool_calls, failed_tool_calls),
        format!("{denied} denied"),
    ];
    if commands > 0 {
        parts.push(format_count("command", commands, 0));
    }
    parts.push(format!("{gcs} gc"));
    parts.join(", ")
}

fn format_turn_count(count: u64) -> String {
    format_count("turn", count, 0)
}

fn format_count(what: &str, count: u64, failed: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let failed = if failed == 0 { String::new() } else { format!(" ({failed} failed)") };
    format!("{count} {what}{plural}{failed}")
}
