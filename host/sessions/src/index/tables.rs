//! The database file of the index and its tables.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::time::Duration;

use jaato_places::open_own_file;
use rusqlite::{Connection, ErrorCode};

use crate::error::SessionStoreError;
use crate::store::SessionStore;

/// The version of the tables. An index of another version is rebuilt.
const TABLES_VERSION: i64 = 4;

/// `position` orders the messages of a session. The index of a change counts the messages that are
/// not forgotten. `texts` has a row for each message, with the same number.
const TABLES: &str = "
    create table sessions (
        id text primary key, workspace text not null, name text not null default '',
        is_named integer not null default 0, begun_ms integer not null,
        changed_ms integer not null, prompts integer not null default 0,
        indexed_bytes integer not null default 0, opener text, agent text
    ) without rowid;
    create index sessions_of_workspace on sessions (workspace, changed_ms desc, id desc);
    create index sessions_of_opener on sessions (opener);
    create index sessions_by_change on sessions (changed_ms desc, id desc);
    create table messages (
        number integer primary key, session text not null, position integer not null,
        seq integer not null, at_ms integer not null, is_prompt integer not null,
        is_forgotten integer not null default 0
    );
    create index messages_of_session on messages (session, position);
    create virtual table texts using fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
";

/// How long to wait for another process that changes the index.
const WAIT: Duration = Duration::from_secs(5);

/// Returns the path of a store's index.
pub(super) fn index_path(store: &SessionStore) -> PathBuf {
    store.folder().join("index.sqlite")
}

/// Opens the database, and creates an empty file if it is missing.
pub(super) fn open_database(store: &SessionStore) -> Result<Connection, SessionStoreError> {
    let path = index_path(store);
    // SQLite would create a file that others can read. Its journals get the file's mode.
    open_own_file(&path, OpenOptions::new().write(true).create(true).truncate(false))?;
    let database = Connection::open(&path)?;
    database.busy_timeout(WAIT)?;
    database.pragma_update(None, "journal_mode", "wal")?;
    // A loss of power may undo changes, but does not damage the file.
    database.pragma_update(None, "synchronous", "normal")?;
    Ok(database)
}

/// Returns true if the tables have this program's version.
pub(super) fn has_current_version(database: &Connection) -> Result<bool, SessionStoreError> {
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version == TABLES_VERSION)
}

/// Creates empty tables.
pub(super) fn create_tables(database: &Connection) -> Result<(), SessionStoreError> {
    database.execute_batch(&format!(
        "drop table if exists sessions; drop table if exists messages; drop table if exists texts;
         {TABLES} pragma user_version = {TABLES_VERSION};"
    ))?;
    Ok(())
}

/// Removes the files of the database. Other processes that have it open keep their old one.
pub(super) fn remove_database(store: &SessionStore) -> Result<(), SessionStoreError> {
    let path = index_path(store);
    for end in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(end);
        store.disk.remove_file(name.as_ref())?;
    }
    Ok(())
}

/// Returns true if an error means that the file is damaged or not ours, so that a new one helps.
pub(super) fn is_damage_error(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    // A missing table or column is an unknown error.
    matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown))
}
