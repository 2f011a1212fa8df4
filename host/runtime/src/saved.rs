//! Saves sessions into files and reads them back.
//!
//! A thread writes, so a turn never waits for the disk, except before a call that may change
//! something. If the disk refuses, that is reported once and the session continues in memory.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use futures_util::future::BoxFuture;
use jaato_session::{HistoryEntry, RecordChange, SavedRecord, SessionSaver};
use jaato_sessions::{
    Durability, SessionRecord, SessionStoreError, SessionWriter, StoredRecord, record_type,
};
use jaato_types::{Error, ErrorKind, ToolCall};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::oneshot;

/// Receives the problem of a disk, once.
pub type ReportSaveProblem = Box<dyn FnOnce(&SessionStoreError) + Send>;

/// Saves one session. Dropping it writes what is left.
pub struct FileSessionSaver {
    record: Mutex<SavedRecord>,
    /// Taken when the saver is dropped, which ends the thread.
    work: Option<Sender<SaveWork>>,
    thread: Option<JoinHandle<()>>,
}

/// Records to write. The sender is told when the disk has them.
struct SaveWork {
    records: Vec<SessionRecord>,
    synced: Option<oneshot::Sender<()>>,
}

impl FileSessionSaver {
    /// Saves into an open file. `record` is what the file holds already.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(
        writer: SessionWriter,
        record: SavedRecord,
        report: ReportSaveProblem,
    ) -> Result<Self, Error> {
        let (work, received) = channel();
        let run = move || write_all(writer, &received, report);
        let thread = std::thread::Builder::new().name("jaato-sessions".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot save the session: no thread ({error})"))
        })?;
        Ok(Self { record: Mutex::new(record), work: Some(work), thread: Some(thread) })
    }

    fn send(&self, work: SaveWork) {
        if let Some(sender) = &self.work {
            // The thread has reported why it ended.
            let _ = sender.send(work);
        }
    }
}

impl SessionSaver for FileSessionSaver {
    fn save(&self, entries: &[Arc<HistoryEntry>]) {
        let changes = self.record.lock().changes_to(entries);
        let records: Vec<SessionRecord> = changes.iter().map(record_of_change).collect();
        if !records.is_empty() {
            self.send(SaveWork { records, synced: None });
        }
    }

    fn call_starts<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ()> {
        let data = json!({ "call_id": call.id, "name": call.name });
        let records = vec![SessionRecord::new(record_type::CALL_STARTED, data)];
        let (synced, is_synced) = oneshot::channel();
        self.send(SaveWork { records, synced: Some(synced) });
        Box::pin(async move {
            // The thread drops the sender if the disk refuses.
            let _ = is_synced.await;
        })
    }
}

impl Drop for FileSessionSaver {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to write.
            let _ = thread.join();
        }
    }
}

fn write_all(mut writer: SessionWriter, received: &Receiver<SaveWork>, report: ReportSaveProblem) {
    while let Ok(SaveWork { records, synced }) = received.recv() {
        let durability = match synced {
            Some(_) => Durability::Synced,
            None => Durability::Written,
        };
        if let Err(error) = writer.append(records, durability) {
            report(&error);
            return;
        }
        if let Some(synced) = synced {
            // The call may have been cancelled.
            let _ = synced.send(());
        }
    }
}

fn record_of_change(change: &RecordChange) -> SessionRecord {
    // Maps have text keys, so this cannot fail.
    match change {
        RecordChange::Append { entry } => SessionRecord::new(
            record_type::MESSAGE,
            serde_json::to_value(entry).unwrap_or_default(),
        ),
        RecordChange::Replace { .. } | RecordChange::Cut { .. } | RecordChange::Forget { .. } => {
            SessionRecord::new(
                record_type::CHANGE,
                serde_json::to_value(change).unwrap_or_default(),
            )
        }
    }
}

/// Returns the change of a stored record, if it changes the history.
fn change_of(stored: &StoredRecord) -> Option<Result<RecordChange, serde_json::Error>> {
    let data = stored.record.data.clone();
    match stored.record.kind.as_str() {
        record_type::MESSAGE => {
            Some(serde_json::from_value(data).map(|entry| RecordChange::Append { entry }))
        }
        record_type::CHANGE => Some(serde_json::from_value(data)),
        _ => None,
    }
}

/// Returns the record that stored records describe. Changes that do not fit are left out; returns
/// their number too.
pub fn record_of(records: &[StoredRecord]) -> (SavedRecord, usize) {
    let (mut record, mut unfit) = (SavedRecord::default(), 0);
    for change in records.iter().filter_map(change_of) {
        let fits = change.is_ok_and(|change| record.apply(change).is_ok());
        unfit += usize::from(!fits);
    }
    (record, unfit)
}

#[cfg(test)]
mod tests {
    use jaato_session::{History, MessageMark};
    use jaato_sessions::SessionStore;
    use jaato_types::{Part, SessionId};

    use super::*;

    #[test]
    fn saved_history_is_restored_with_its_marks() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::new(folder.path().join("sessions"));
        let id: SessionId = SessionId::new("a");
        let writer = store.create(&id, "/w", None).unwrap();
        let report: ReportSaveProblem = Box::new(|error| panic!("{error}"));
        let saver = FileSessionSaver::start(writer, SavedRecord::default(), report).unwrap();
        let mut history = History::new();
        for turn in ["one", "two"] {
            history.append_prompt(vec![Part::text(turn)]).unwrap();
            saver.save(history.entries());
            let mark = (turn == "two").then_some(MessageMark::Partial);
            history.append_answer(vec![Part::text("answer")], mark).unwrap();
            saver.save(history.entries());
        }
        drop(saver);
        let opened = store.open(&id, false).unwrap();
        let (record, unfit) = record_of(&opened.records);
        assert_eq!(unfit, 0);
        assert_eq!(History::restore(record.entries().iter().cloned()).unwrap(), history);
    }

    #[test]
    fn disk_problem_is_reported_once_and_calls_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::new(folder.path().join("sessions"));
        let id: SessionId = SessionId::new("a");
        let writer = store.create(&id, "/w", None).unwrap();
        let (told, problems) = channel();
        let report: ReportSaveProblem =
            Box::new(move |error| told.send(error.to_string()).unwrap());
        let saver = FileSessionSaver::start(writer, SavedRecord::default(), report).unwrap();
        // Another process takes the session over.
        let _other = store.open(&id, true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let call = ToolCall::default();
        runtime.block_on(saver.call_starts(&call));
        runtime.block_on(saver.call_starts(&call));
        drop(saver);
        let problems: Vec<String> = problems.iter().collect();
        assert!(matches!(&problems[..], [one] if one.contains("taken over")), "{problems:?}");
    }
}
