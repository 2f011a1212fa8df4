//! Tests the store as a host uses it: with files, locks, processes and failing disks.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod copies;
mod export;
mod faults;
mod history_rules;
mod import;
mod import_cases;
mod index;
mod odd_files;
mod retention;
mod sample;
mod store;
mod version_1;

use std::path::PathBuf;

use jaato_sessions::{SessionRecord, SessionStore, record_type};
use jaato_types::SessionId;
use serde_json::{Value, json};
use tempfile::TempDir;

fn temp_store() -> (TempDir, SessionStore) {
    let folder = tempfile::tempdir().unwrap();
    let store = SessionStore::new(folder.path().join("sessions"));
    (folder, store)
}

fn session_id(name: &str) -> SessionId {
    SessionId::new(name)
}

fn prompt_record(text: &str) -> SessionRecord {
    let message = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
    SessionRecord::new(record_type::MESSAGE, message)
}

fn session_file(store: &SessionStore, name: &str) -> PathBuf {
    store.folder().join(name).join("session.jsonl")
}

fn stored_texts(store: &SessionStore, name: &str) -> Vec<Value> {
    let records = store.read_session(&session_id(name)).unwrap().read_rest().unwrap();
    records.into_iter().map(|it| it.record.data["parts"][0]["text"].clone()).collect()
}

fn answer_record(text: &str) -> SessionRecord {
    let message = json!({ "role": "model", "parts": [{ "type": "text", "text": text }] });
    SessionRecord::new(record_type::MESSAGE, message)
}

fn rewind_record(seq: u64) -> SessionRecord {
    SessionRecord::new(record_type::REWIND, json!({ "seq": seq }))
}

fn name_record(name: &str) -> SessionRecord {
    SessionRecord::new(record_type::NAME, json!({ "name": name }))
}
