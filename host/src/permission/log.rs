//! `jaato permission log`: the decisions of earlier sessions, from the ledger.

use std::collections::VecDeque;
use std::io;

use jaato_runtime::ledger_path;
use jaato_runtime::store::{LedgerLine, LedgerReader, LedgerStage};
use serde_json::json;

use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start};

/// Shows the latest decisions, oldest first.
pub fn show_decision_log(global: GlobalArgs, last: usize, as_json: bool) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let path = ledger_path(&setup)?;
    let failed = |error: io::Error| {
        let text = format!("cannot read the ledger `{}`: {error}", path.display());
        CommandFailure::new(Exit::Failed, text)
    };
    let (mut found, mut earlier) = (VecDeque::new(), 0_usize);
    match LedgerReader::open(&path) {
        Ok(mut reader) => {
            while let Some(line) = reader.next_line().map_err(failed)? {
                let LedgerLine::Record(record) = line else { continue };
                if matches!(record.stage, LedgerStage::PermissionCheck { .. }) {
                    found.push_back(record);
                    if found.len() > last {
                        found.pop_front();
                        earlier += 1;
                    }
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut rows = Vec::new();
    for record in &found {
        let LedgerStage::PermissionCheck {
            call_id,
            tool,
            allowed,
            rule,
            place,
            answered_by,
            scope,
            pattern,
            agent_type,
            agent_name,
        } = &record.stage
        else {
            continue;
        };
        let decided = if *allowed { "allowed" } else { "denied" };
        let session = record.session.to_string();
        if as_json {
            report::print_json_line(&json!({
                "time": record.ts, "session": session, "call_id": call_id, "tool": tool,
                "allowed": allowed, "rule": rule, "place": place, "answered_by": answered_by,
                "scope": scope, "pattern": pattern, "agent_type": agent_type,
                "agent_name": agent_name,
            }))?;
        }
        let time = record.ts.clone();
        let place = place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let rule = format!("{rule}{place}");
        rows.push(vec![time, session, tool.to_string(), decided.to_owned(), rule]);
    }
    if as_json {
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        report::print_line("no decisions yet")?;
        return Ok(Exit::Done);
    }
    report::print_table(&["time (UTC)", "session", "tool", "decision", "rule"], &rows)?;
    if earlier > 0 {
        report::print_sentence(&format!("(and {earlier} earlier; `--last N` lists more)"))?;
    }
    Ok(Exit::Done)
}
