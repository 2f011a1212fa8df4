//! Writes a session into its file while it runs.
//!
//! A thread writes. A turn waits for it only before a request, briefly, and before a call that may
//! change something. If the disk refuses, that is reported once and the session continues in
//! memory. The file is created with the first message, so a session without one leaves nothing.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jaato_session::{
    HistoryEntry, RecordChange, SavedRecord, SavedRules, SavedState, SessionSaver, SharedObjects,
    SharedRules,
};
use jaato_sessions::{
    Durability, SessionOpener, SessionRecord, SessionStore, SessionStoreError, SessionWriter,
    message_blobs, record_type,
};
use jaato_types::{
    CallId, Error, ErrorKind, Frame, PluginName, SessionId, ToolCall, ToolName, ToolResult,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json, to_value};
use tokio::sync::oneshot;

/// How long nothing must come until a sync that nothing waits for. Without it, the record of the
/// next step would wait for the sync of the last one.
const SYNC_AFTER: Duration = Duration::from_millis(20);

/// How long such a sync is put off at most while work comes all the time.
const SYNC_PUT_OFF_MAX: Duration = Duration::from_secs(1);

/// Receives the problem of a disk, once.
pub(crate) type ReportSaveProblem = Box<dyn Fn(&SessionStoreError) + Send>;

/// Reads the bytes of a blob of the session, if they are there.
pub(crate) type ReadBlob = Box<dyn Fn(&str) -> Option<Vec<u8>> + Send>;

/// Removes known secrets from a text.
pub(crate) type CleanText = Box<dyn Fn(&str) -> String + Send>;

/// Overwrites known secrets in a file, from an offset on.
pub(crate) type CleanFile = Box<dyn Fn(&Path, u64) -> io::Result<()> + Send>;

/// Adds what the host knows to the state that a session saves.
pub(crate) type CompleteState = Box<dyn Fn(&mut SavedState) + Send + Sync>;

/// The host state that the thread needs.
pub(crate) struct SaverAccess {
    pub(crate) clean: CleanText,
    pub(crate) clean_file: CleanFile,
    pub(crate) read_blob: ReadBlob,
    pub(crate) report: ReportSaveProblem,
}

/// The session to write to.
pub(crate) struct SaveTarget {
    pub(crate) store: SessionStore,
    pub(crate) id: SessionId,
    pub(crate) workspace: String,
    /// The session that opened it. Only a new file needs it.
    pub(crate) opener: Option<SessionOpener>,
    /// The open file, if the session has one already.
    pub(crate) writer: Option<SessionWriter>,
}

/// Saves one session. Dropping it writes what is left.
pub(crate) struct FileSessionSaver {
    saved: Mutex<SavedBaseline>,
    complete: CompleteState,
    /// Taken when the saver is dropped, which ends the thread.
    work: Option<Sender<SaveWork>>,
    thread: Option<JoinHandle<()>>,
    state: Arc<SaveState>,
}

/// The last saved state, to save only changes.
#[derive(Default)]
pub(crate) struct SavedBaseline {
    pub(crate) record: SavedRecord,
    /// `None` if they were never saved.
    pub(crate) rules: Option<SavedRules>,
    pub(crate) state: SavedState,
    /// The number of changes of the objects.
    pub(crate) objects: u64,
    pub(crate) plugins: HashMap<PluginName, Vec<u8>>,
}

/// Something to write.
enum SaveChange {
    Record(RecordChange),
    /// The next changes of the record are a collection.
    Collection,
    Rules(SavedRules),
    State(SavedState),
    Objects(Value, Vec<u8>),
    PluginState(PluginName, Vec<u8>),
    CallStarted(CallId, ToolName),
    CallEnded(Box<ToolResult>),
    Name(String),
    /// Nothing: writes what was held back.
    Now,
}

/// Changes to write. The thread answers the sender when the file has them.
struct SaveWork {
    changes: Vec<SaveChange>,
    durability: Durability,
    done: Option<oneshot::Sender<()>>,
}

/// Whether a session is saved. Shared by the saver and its thread.
#[derive(Debug, Default)]
struct SaveState(AtomicU8);

impl SaveState {
    const SAVING: u8 = 0;
    /// The disk refuses, or the thread failed.
    const FAILED: u8 = 1;
    /// Another process continues the session.
    const TAKEN_OVER: u8 = 2;

    fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets a later state. Returns true if it is new.
    fn end_saving(&self, state: u8) -> bool {
        self.0.fetch_max(state, Ordering::AcqRel) < state
    }
}

impl FileSessionSaver {
    /// Saves into a file. `saved` is the file's current content.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start(
        target: SaveTarget,
        saved: SavedBaseline,
        complete: CompleteState,
        access: SaverAccess,
    ) -> Result<Self, Error> {
        let (work, received) = channel();
        let state = Arc::<SaveState>::default();
        let saver = SaverThread::new(target, access, Arc::clone(&state));
        let run = move || saver.run(&received);
        let thread = std::thread::Builder::new().name("jaato-sessions".to_owned()).spawn(run);
        let thread = thread.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot save the session: no thread ({error})"))
        })?;
        Ok(Self {
            saved: Mutex::new(saved),
            complete,
            work: Some(work),
            thread: Some(thread),
            state,
        })
    }

    /// Saves the state of a plugin's instance.
    pub(crate) fn save_plugin(&self, plugin: &PluginName, state: &[u8]) {
        let mut saved = self.saved.lock();
        if saved.plugins.get(plugin).is_some_and(|before| before == state) {
            return;
        }
        saved.plugins.insert(plugin.clone(), state.to_owned());
        self.send(vec![SaveChange::PluginState(plugin.clone(), state.to_owned())]);
    }

    fn send(&self, changes: Vec<SaveChange>) {
        if !changes.is_empty() {
            self.send_work(SaveWork { changes, durability: Durability::Written, done: None });
        }
    }

    /// Resolves when the thread has done the work, or has ended.
    async fn send_and_wait(&self, changes: Vec<SaveChange>, durability: Durability) {
        let (done, is_done) = oneshot::channel();
        self.send_work(SaveWork { changes, durability, done: Some(done) });
        // The thread drops the sender if it cannot save.
        let _ = is_done.await;
    }

    fn send_work(&self, work: SaveWork) {
        if let Some(sender) = &self.work {
            // The thread has reported why it ended.
            let _ = sender.send(work);
        }
    }
}

impl SessionSaver for FileSessionSaver {
    fn save_record(&self, entries: &[Arc<HistoryEntry>]) {
        let changes = self.saved.lock().record.take_changes(entries);
        self.send(changes.into_iter().map(SaveChange::Record).collect());
    }

    fn save_collection(&self, entries: &[Arc<HistoryEntry>]) {
        let changes = self.saved.lock().record.take_changes(entries);
        self.send(
            changes.into_iter().map(SaveChange::Record).chain([SaveChange::Collection]).collect(),
        );
    }

    fn save_rules(&self, rules: &SharedRules) {
        let now = SavedRules::from_rules(rules);
        let mut saved = self.saved.lock();
        if saved.rules.as_ref() != Some(&now) {
            saved.rules = Some(now.clone());
            self.send(vec![SaveChange::Rules(now)]);
        }
    }

    fn save_state(&self, mut state: SavedState, objects: &SharedObjects) {
        (self.complete)(&mut state);
        let mut saved = self.saved.lock();
        let mut changes = Vec::new();
        if saved.state != state {
            saved.state = state.clone();
            changes.push(SaveChange::State(state));
        }
        let from = saved.objects;
        let (count, change) =
            objects.with_objects(|it| (it.change_count(), it.changes_since(from)));
        if let Some((json, bytes)) = change {
            saved.objects = count;
            changes.push(SaveChange::Objects(json, bytes));
        }
        self.send(changes);
    }

    fn save_name(&self, name: &str) {
        self.send(vec![SaveChange::Name(name.to_owned())]);
    }

    fn save_call_start<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Result<(), Error>> {
        let changes = vec![SaveChange::CallStarted(call.id.clone(), call.name.clone())];
        Box::pin(async move {
            self.send_and_wait(changes, Durability::Synced).await;
            if self.state.get() == SaveState::TAKEN_OVER {
                let text = "not run: another process continues this session";
                return Err(Error::new(ErrorKind::Conflict, text));
            }
            Ok(())
        })
    }

    fn save_pending(&self) {
        self.send(vec![SaveChange::Now]);
    }

    fn wait_until_written(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.send_and_wait(Vec::new(), Durability::Written))
    }

    fn is_saving(&self) -> bool {
        self.state.get() == SaveState::SAVING
    }

    fn save_call_result(&self, result: &ToolResult) {
        self.send(vec![SaveChange::CallEnded(Box::new(result.clone()))]);
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

impl Drop for SaverThread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.state.end_saving(SaveState::FAILED);
        }
    }
}

/// The thread that writes.
struct SaverThread {
    target: SaveTarget,
    access: SaverAccess,
    state: Arc<SaveState>,
    /// Whether anything was written.
    is_begun: bool,
    /// What came before.
    early: Vec<SaveChange>,
    /// The blobs that are attachments of the session.
    blobs: HashSet<String>,
    /// How much of each output file is free of secrets, in bytes.
    outputs: HashMap<PathBuf, u64>,
}

impl SaverThread {
    fn new(target: SaveTarget, access: SaverAccess, state: Arc<SaveState>) -> Self {
        Self {
            target,
            access,
            state,
            is_begun: false,
            early: Vec::new(),
            blobs: HashSet::new(),
            // An earlier process may have been killed before it cleaned its outputs.
            outputs: HashMap::new(),
        }
    }

    /// Works until the saver is dropped. If nothing can be saved any longer, it still owns the
    /// session, and notices if another process takes it over.
    fn run(mut self, received: &Receiver<SaveWork>) {
        while let Ok(work) = received.recv() {
            let latest = Instant::now() + SYNC_PUT_OFF_MAX;
            let mut next = Some(work);
            while let Some(work) = next {
                self.do_work(work);
                let left = latest.saturating_duration_since(Instant::now());
                next = received.recv_timeout(SYNC_AFTER.min(left)).ok();
            }
            if self.state.get() == SaveState::SAVING {
                // Nothing comes, so what came so far is made to survive a loss of power too.
                self.clean_outputs();
                let synced =
                    self.target.writer.as_mut().map_or(Ok(()), SessionWriter::sync_records);
                self.stop_on_error(&synced);
            }
        }
    }

    fn do_work(&mut self, SaveWork { changes, durability, done }: SaveWork) {
        let result = match (self.state.get(), &self.target.writer) {
            (SaveState::SAVING, _) => self.write_changes(changes, durability),
            (_, Some(writer)) => writer.check_owner(),
            (_, None) => Ok(()),
        };
        self.stop_on_error(&result);
        if let Some(done) = done {
            // The call may have been cancelled.
            let _ = done.send(());
        }
    }

    /// Ends saving if there is a problem, and reports it.
    fn stop_on_error(&self, result: &Result<(), SessionStoreError>) {
        let Err(error) = result else { return };
        let state = match error {
            SessionStoreError::TakenOver { .. } => SaveState::TAKEN_OVER,
            _ => SaveState::FAILED,
        };
        if self.state.end_saving(state) {
            (self.access.report)(error);
        }
    }

    /// Lists the session's output files with their lengths.
    fn output_lengths(&self) -> impl Iterator<Item = (PathBuf, u64)> + use<> {
        let folder = self.target.store.outputs_folder(&self.target.id);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            // A link could lead to a file of the user.
            let is_file = entry.file_type().is_ok_and(|found| found.is_file());
            Some((entry.path(), entry.metadata().ok().filter(|_| is_file)?.len()))
        })
    }

    /// Overwrites secrets in the parts that were added to the output files. A file that cannot be
    /// changed is left: it is as private as the records.
    fn clean_outputs(&mut self) {
        for (path, length) in self.output_lengths() {
            let cleaned = self.outputs.entry(path.clone()).or_default();
            if *cleaned < length && (self.access.clean_file)(&path, *cleaned).is_ok() {
                *cleaned = length;
            }
        }
    }

    fn write_changes(
        &mut self,
        changes: Vec<SaveChange>,
        durability: Durability,
    ) -> Result<(), SessionStoreError> {
        // A session without a message has no file, and opening one changes nothing.
        let begins = |change: &SaveChange| match change {
            SaveChange::Record(_) => true,
            SaveChange::Name(_) | SaveChange::Now | SaveChange::CallStarted(..) => {
                self.target.writer.is_some()
            }
            _ => false,
        };
        let is_begun = self.is_begun || changes.iter().any(begins);
        self.is_begun = is_begun;
        self.early.extend(changes);
        if !is_begun {
            return Ok(());
        }
        let mut records = Vec::with_capacity(self.early.len());
        for change in std::mem::take(&mut self.early) {
            self.keep_blobs(&change)?;
            if let Some(mut record) = self.change_record(change)? {
                clean_texts(&mut record.data, &*self.access.clean);
                records.push(record);
            }
        }
        let SaveTarget { store, id, workspace, opener, writer } = &mut self.target;
        let Some(writer) = writer else {
            let mut new = store.create_session(id, workspace, opener.as_ref())?;
            let begun = new.append_records(records, durability);
            match begun {
                Ok(_) => *writer = Some(new),
                Err(_) => {
                    drop(new);
                    // A session without its first message is of no use.
                    let _ = store.delete_session(id);
                }
            }
            return begun.map(drop);
        };
        writer.append_records(records, durability).map(drop)
    }

    /// Stores the blobs of a message next to the file. A blob that is gone was not sent either.
    fn keep_blobs(&mut self, change: &SaveChange) -> Result<(), SessionStoreError> {
        let SaveChange::Record(
            RecordChange::Append { entry } | RecordChange::Replace { entry, .. },
        ) = change
        else {
            return Ok(());
        };
        for id in message_blobs(&entry.message).filter_map(|data| data.blob_id()) {
            let bytes = if self.blobs.contains(id) { None } else { (self.access.read_blob)(id) };
            if let Some(bytes) = bytes {
                self.target.store.store_attachment(&self.target.id, &bytes)?;
                self.blobs.insert(id.to_owned());
            }
        }
        Ok(())
    }

    fn change_record(
        &self,
        change: SaveChange,
    ) -> Result<Option<SessionRecord>, SessionStoreError> {
        Ok(Some(match change {
            SaveChange::Now => return Ok(None),
            SaveChange::Record(RecordChange::Append { entry }) => {
                new_record(record_type::MESSAGE, &*entry)
            }
            SaveChange::Record(change) => new_record(record_type::CHANGE, change),
            SaveChange::Collection => new_record(record_type::COLLECTION, json!({})),
            SaveChange::Rules(rules) => new_record(record_type::RULES, rules),
            SaveChange::State(state) => new_record(record_type::STATE, state),
            SaveChange::Objects(json, bytes) => {
                let bytes = match bytes.is_empty() {
                    true => None,
                    false => Some(self.target.store.store_attachment(&self.target.id, &bytes)?),
                };
                new_record(record_type::OBJECTS, json!({ "changes": json, "bytes": bytes }))
            }
            SaveChange::PluginState(plugin, state) => {
                let json = Frame::parse(&state).ok().filter(|frame| frame.bytes.is_empty());
                let data = match json.and_then(|frame| frame.json::<Value>().ok()) {
                    Some(json) => json!({ "plugin": plugin, "json": json }),
                    None => {
                        let name = self.target.store.store_attachment(&self.target.id, &state)?;
                        json!({ "plugin": plugin, "attachment": name })
                    }
                };
                new_record(record_type::PLUGIN_STATE, data)
            }
            SaveChange::CallStarted(call_id, name) => {
                new_record(record_type::CALL_STARTED, json!({ "call_id": call_id, "name": name }))
            }
            SaveChange::Name(name) => new_record(record_type::NAME, json!({ "name": name })),
            SaveChange::CallEnded(result) => new_record(record_type::CALL_ENDED, result),
        }))
    }
}

fn new_record(kind: &str, data: impl Serialize) -> SessionRecord {
    // Its maps have text keys, so this cannot fail.
    SessionRecord::new(kind, to_value(data).unwrap_or_default())
}

/// Removes known secrets from all texts of a JSON value.
pub(crate) fn clean_texts(value: &mut Value, clean: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = clean(text),
        Value::Array(items) => items.iter_mut().for_each(|item| clean_texts(item, clean)),
        Value::Object(map) => {
            let cleaned = std::mem::take(map).into_iter().map(|(key, mut item)| {
                clean_texts(&mut item, clean);
                (clean(&key), item)
            });
            *map = cleaned.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use jaato_session::{History, MessageMark};
    use jaato_sessions::effective_records;
    use jaato_types::Part;

    use super::super::restore_session;
    use super::*;

    fn temporary_store() -> (tempfile::TempDir, SessionStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::new(folder.path().join("sessions"));
        (folder, store)
    }

    fn start_saver(store: &SessionStore, report: ReportSaveProblem) -> FileSessionSaver {
        let (id, workspace) = (SessionId::new("a"), "/w".to_owned());
        let target = SaveTarget { store: store.clone(), id, workspace, opener: None, writer: None };
        let access = SaverAccess {
            clean: Box::new(|text| text.replace("secret", "********")),
            clean_file: Box::new(|_, _| Ok(())),
            read_blob: Box::new(|_| None),
            report,
        };
        FileSessionSaver::start(target, SavedBaseline::default(), Box::new(|_| {}), access).unwrap()
    }

    fn expect_no_problem() -> ReportSaveProblem {
        Box::new(|error| panic!("{error}"))
    }

    #[test]
    fn saved_history_is_restored_with_its_marks() {
        let (_folder, store) = temporary_store();
        let saver = start_saver(&store, expect_no_problem());
        let mut history = History::new();
        for turn in ["one", "two"] {
            history.append_prompt(vec![Part::text(turn)]).unwrap();
            saver.save_record(history.entries());
            let mark = (turn == "two").then_some(MessageMark::Partial);
            history.append_answer(vec![Part::text("answer")], mark).unwrap();
            saver.save_record(history.entries());
        }
        drop(saver);
        let id = SessionId::new("a");
        let records = effective_records(store.open_session(&id, false).unwrap().records);
        let restored = restore_session(&store, &id, &records);
        assert_eq!(restored.history, history);
        assert_eq!(restored.problems, [""; 0]);
    }

    #[test]
    fn forgotten_messages_stay_in_the_file_once_and_in_their_places() {
        let (_folder, store) = temporary_store();
        let saver = start_saver(&store, expect_no_problem());
        let mut history = History::new();
        for turn in ["one", "two", "three"] {
            history.append_prompt(vec![Part::text(turn)]).unwrap();
            history.append_answer(vec![Part::text(format!("answer {turn}"))], None).unwrap();
        }
        let mut entries = history.entries().to_vec();
        saver.save_record(&entries);
        // A gc keeps the first turn, and takes the second one out.
        for entry in &mut entries[2..4] {
            let mark = Some(MessageMark::Collected);
            *entry = Arc::new(HistoryEntry { mark, ..HistoryEntry::clone(entry) });
        }
        saver.save_record(&entries);
        entries.drain(2..4);
        saver.save_record(&entries);
        drop(saver);
        let id = SessionId::new("a");
        let records = store.open_session(&id, false).unwrap().records;
        // Six messages, two marks, and one record for both messages that are forgotten.
        assert_eq!(records.len(), 9);
        let mut all = jaato_sessions::ReplayedHistory::<HistoryEntry>::default();
        for record in &records {
            all.apply_record(record, |entry| serde_json::from_value(entry.clone()).ok()).unwrap();
        }
        let texts = all.into_entries().into_iter().map(|it| it.entry.message.text());
        let expected = ["one", "answer one", "two", "answer two", "three", "answer three"];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        let restored = restore_session(&store, &id, &records);
        assert_eq!(restored.problems, [""; 0]);
        assert_eq!((restored.record.entries(), restored.history.turn_count()), (&entries[..], 3));
    }

    #[test]
    fn session_without_a_message_leaves_no_file() {
        let (_folder, store) = temporary_store();
        let saver = start_saver(&store, expect_no_problem());
        saver.save_name("a name");
        saver.save_record(&[]);
        drop(saver);
        assert_eq!(store.list_sessions().unwrap(), []);
    }

    #[test]
    fn secrets_never_reach_the_file() {
        let (_folder, store) = temporary_store();
        let saver = start_saver(&store, expect_no_problem());
        let mut history = History::new();
        history.append_prompt(vec![Part::text("the secret")]).unwrap();
        saver.save_record(history.entries());
        drop(saver);
        let records = store.open_session(&SessionId::new("a"), false).unwrap().records;
        assert_eq!(records[0].record.data["parts"][0]["text"], "the ********");
    }

    #[test]
    fn unfinished_output_of_a_killed_process_is_cleaned() {
        let (_folder, store) = temporary_store();
        let id = SessionId::new("a");
        drop(store.create_session(&id, "/w", None).unwrap());
        let output = store.outputs_folder(&id).join("1-output.txt");
        fs::create_dir(store.outputs_folder(&id)).unwrap();
        fs::write(&output, "the secret").unwrap();
        let writer = Some(store.open_session(&id, false).unwrap().writer);
        let target = SaveTarget { store, id, workspace: "/w".to_owned(), opener: None, writer };
        let (cleaned, files) = channel();
        let access = SaverAccess {
            clean: Box::new(str::to_owned),
            clean_file: Box::new(move |path, from| {
                cleaned.send((path.to_owned(), from)).unwrap();
                Ok(())
            }),
            read_blob: Box::new(|_| None),
            report: expect_no_problem(),
        };
        let saved = SavedBaseline::default();
        let saver = FileSessionSaver::start(target, saved, Box::new(|_| {}), access).unwrap();
        saver.save_pending();
        drop(saver);
        assert_eq!(files.iter().collect::<Vec<_>>(), [(output, 0)]);
    }

    #[test]
    fn session_that_was_taken_over_says_so_once_and_runs_no_calls() {
        let (_folder, store) = temporary_store();
        let (told, problems) = channel();
        let saver =
            start_saver(&store, Box::new(move |error| told.send(error.to_string()).unwrap()));
        let mut history = History::new();
        history.append_prompt(vec![Part::text("one")]).unwrap();
        saver.save_record(history.entries());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let call = ToolCall::default();
        runtime.block_on(saver.save_call_start(&call)).unwrap();
        // Another process takes the session over, which runs its calls.
        let _other = store.open_session(&SessionId::new("a"), true).unwrap();
        for _ in 0..2 {
            let refused = runtime.block_on(saver.save_call_start(&call)).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::Conflict);
        }
        drop(saver);
        let problems: Vec<String> = problems.iter().collect();
        assert!(matches!(&problems[..], [one] if one.contains("taken over")), "{problems:?}");
    }
}
