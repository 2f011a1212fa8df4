//! `jaato session follow`: new messages of a session that another process has open.

use std::collections::HashSet;
use std::time::Duration;

use jaato_runtime::sessions::{OwnerState, SessionReader, StoredRecord, record_type};
use serde_json::json;
use tokio::time::MissedTickBehavior;

use super::conversation::{NumberedEntry, SavedConversation, entry_to_json};
use super::{SavedSessions, show, store_failure};
use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;

/// How often the file is read. A reader does not see a shorter delay.
const READ_EVERY: Duration = Duration::from_millis(200);

/// Prints the messages that come from now on, until the session ends or the user presses Ctrl-C.
pub async fn follow_session(global: GlobalArgs, text: &str, output: OutputForm) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let id = sessions.find(text)?;
    let mut reader = sessions.store.read_session(&id).map_err(store_failure)?;
    let records = reader.read_rest().map_err(store_failure)?;
    if sessions.store.owner_state(&id).map_err(store_failure)? == OwnerState::Free {
        return Err(CommandFailure::new(
            Exit::Failed,
            format!("no process has session `{id}` open, so no new messages can come"),
        )
        .hint(format!("`jaato session show {id}` shows its messages")));
    }
    let mut followed = FollowedSession::new(records, output);
    report::print_remark(&format!("following session {id}; Ctrl-C ends"));
    let mut ticks = tokio::time::interval(READ_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
        }
        // Before the read, so that what the owner wrote last is read.
        let is_over = match sessions.store.owner_state(&id) {
            Ok(state) => state == OwnerState::Free,
            // It was deleted.
            Err(_) => true,
        };
        followed.print_new_entries(&mut reader)?;
        if is_over {
            report::print_remark(&format!("session {id} has ended"));
            return Ok(Exit::Done);
        }
    }
}

/// A session and what was printed of it.
struct FollowedSession {
    records: Vec<StoredRecord>,
    /// The entries that were printed, by their position, with their content.
    printed: Vec<NumberedEntry>,
    output: OutputForm,
}

impl FollowedSession {
    fn new(records: Vec<StoredRecord>, output: OutputForm) -> Self {
        let printed = SavedConversation::from_records(records.clone()).entries;
        Self { records, printed, output }
    }

    fn print_new_entries(&mut self, reader: &mut SessionReader) -> Result<(), CommandFailure> {
        let new = reader.read_rest().map_err(store_failure)?;
        if new.is_empty() {
            return Ok(());
        }
        let is_rewound = new.iter().any(|stored| stored.record.kind == record_type::REWIND);
        self.records.extend(new);
        let now = SavedConversation::from_records(self.records.clone()).entries;
        if is_rewound {
            self.print_rewind(&now)?;
        }
        let known: HashSet<u64> = self.printed.iter().map(NumberedEntry::seq).collect();
        for (at, entry) in now.iter().enumerate() {
            let before = self.printed.get(at).filter(|before| before.seq() == entry.seq());
            let is_new = !known.contains(&entry.seq());
            // A broken answer that was continued, for example. A mark alone is not shown.
            let is_changed = before.is_some_and(|it| it.entry.message != entry.entry.message);
            if is_new || is_changed {
                self.print_entry(entry)?;
            }
        }
        self.printed = now;
        Ok(())
    }

    fn print_rewind(&self, now: &[NumberedEntry]) -> Result<(), CommandFailure> {
        let still: HashSet<u64> = now.iter().map(NumberedEntry::seq).collect();
        let gone = self.printed.iter().filter(|entry| !still.contains(&entry.seq()));
        let Some(number) = gone.filter_map(|entry| entry.number).min() else { return Ok(()) };
        match self.output {
            OutputForm::Json => report::print_json_line(&json!({ "rewound_to": number })),
            OutputForm::Text => report::print_line(&format!(
                "\nmessage {number} and everything after it were taken back"
            )),
        }
    }

    fn print_entry(&self, entry: &NumberedEntry) -> Result<(), CommandFailure> {
        match self.output {
            OutputForm::Json => report::print_json_line(&entry_to_json(entry)),
            OutputForm::Text => show::print_entry(entry),
        }
    }
}
