//! An SQLite index over all sessions, for lists and full-text search. It can be rebuilt from the
//! files at any time.

use std::path::Path;

use jaato_places::make_own_folder;
use jaato_types::SessionId;
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::SessionStoreError;
use crate::record::{StoredRecord, record_type};
use crate::store::SessionStore;

/// The version of the tables. An index of another version is rebuilt.
const TABLES_VERSION: i64 = 1;

const TABLES: &str = "
    create table sessions (
        id text primary key, workspace text not null, name text not null default '',
        is_named integer not null default 0, begun_ms integer not null,
        changed_ms integer not null, prompts integer not null default 0
    );
    create index sessions_by_change on sessions (changed_ms);
    create virtual table texts using fts5 (text, session unindexed, seq unindexed);
";

/// Longest name that the first prompt gives, in characters.
const NAME_CHARS_MAX: usize = 80;

/// A session in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedSession {
    /// Its id.
    pub id: String,
    /// The workspace's root.
    pub workspace: String,
    /// The name that the user gave, or else the beginning of the first prompt.
    pub name: String,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: i64,
    /// When it changed last, in milliseconds since 1970.
    pub changed_ms: i64,
    /// The number of prompts.
    pub prompts: u64,
}

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session's id.
    pub session: String,
    /// The number of the record.
    pub seq: u64,
    /// A part of the text around the words, which stand between `[` and `]`.
    pub excerpt: String,
}

/// The index.
#[derive(Debug)]
pub struct SessionIndex {
    database: Connection,
}

impl SessionIndex {
    /// Opens the index file, or creates it. Returns it with `true` if it is new and should be
    /// rebuilt.
    ///
    /// # Errors
    /// If it cannot be used.
    pub fn open(path: &Path) -> Result<(Self, bool), SessionStoreError> {
        if let Some(folder) = path.parent() {
            make_own_folder(folder)?;
        }
        let database = Connection::open(path)?;
        database.busy_timeout(std::time::Duration::from_secs(5))?;
        database.pragma_update(None, "journal_mode", "wal")?;
        database.pragma_update(None, "synchronous", "off")?;
        let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let index = Self { database };
        if version != TABLES_VERSION {
            index.make_tables()?;
        }
        Ok((index, version != TABLES_VERSION))
    }

    fn make_tables(&self) -> Result<(), SessionStoreError> {
        self.database.execute_batch(&format!(
            "begin immediate; drop table if exists sessions; drop table if exists texts; {TABLES}
             pragma user_version = {TABLES_VERSION}; commit;"
        ))?;
        Ok(())
    }

    /// Empties the index and reads all sessions of a store. Returns the number of sessions, and the
    /// ids of those that cannot be read.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn rebuild(
        &self,
        store: &SessionStore,
    ) -> Result<(u64, Vec<SessionId>), SessionStoreError> {
        self.make_tables()?;
        let (mut count, mut unreadable) = (0, Vec::new());
        for id in store.list()? {
            let read = store.read(&id).and_then(|mut reader| {
                let workspace = reader.header().workspace.clone();
                Ok((workspace, reader.read_rest()?))
            });
            let Ok((workspace, records)) = read else {
                unreadable.push(id);
                continue;
            };
            let begun_ms = records.first().map_or(0, |first| first.at_ms);
            self.add_session(id.as_str(), &workspace, begun_ms)?;
            self.add_records(id.as_str(), &records)?;
            count += 1;
        }
        Ok((count, unreadable))
    }

    /// Adds a session that has no records yet.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn add_session(
        &self,
        id: &str,
        workspace: &str,
        begun_ms: i64,
    ) -> Result<(), SessionStoreError> {
        self.database.execute(
            "insert or ignore into sessions (id, workspace, begun_ms, changed_ms)
             values (?1, ?2, ?3, ?3)",
            params![id, workspace, begun_ms],
        )?;
        Ok(())
    }

    /// Adds records of a session.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn add_records(&self, id: &str, records: &[StoredRecord]) -> Result<(), SessionStoreError> {
        let change = self.database.unchecked_transaction()?;
        for stored in records {
            if let Some((text, is_prompt)) = stored.record.message_text() {
                change.execute(
                    "insert into texts (text, session, seq) values (?1, ?2, ?3)",
                    params![text, id, i64::try_from(stored.seq).unwrap_or(i64::MAX)],
                )?;
                if is_prompt {
                    change.execute(
                        "update sessions set prompts = prompts + 1,
                         name = case when name = '' then ?2 else name end where id = ?1",
                        params![id, first_words(&text)],
                    )?;
                }
            }
            if stored.record.kind == record_type::NAME
                && let Some(name) = stored.record.data["name"].as_str()
            {
                change.execute(
                    "update sessions set name = ?2, is_named = 1 where id = ?1",
                    params![id, name],
                )?;
            }
            change.execute(
                "update sessions set changed_ms = max(changed_ms, ?2) where id = ?1",
                params![id, stored.at_ms],
            )?;
        }
        change.commit()?;
        Ok(())
    }

    /// Removes a session.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn remove(&self, id: &str) -> Result<(), SessionStoreError> {
        self.database.execute("delete from texts where session = ?1", [id])?;
        self.database.execute("delete from sessions where id = ?1", [id])?;
        Ok(())
    }

    /// Lists sessions, the last changed first. A workspace limits the list to its sessions.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn list(
        &self,
        workspace: Option<&str>,
        limit: u32,
    ) -> Result<Vec<IndexedSession>, SessionStoreError> {
        let mut query = self.database.prepare(
            "select id, workspace, name, begun_ms, changed_ms, prompts from sessions
             where ?1 is null or workspace = ?1 order by changed_ms desc, id desc limit ?2",
        )?;
        let rows = query.query_map(params![workspace, limit], |row| {
            Ok(IndexedSession {
                id: row.get(0)?,
                workspace: row.get(1)?,
                name: row.get(2)?,
                begun_ms: row.get(3)?,
                changed_ms: row.get(4)?,
                prompts: row.get::<_, i64>(5)?.unsigned_abs(),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Finds messages that contain all words, the best first.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn search(&self, words: &str, limit: u32) -> Result<Vec<SearchHit>, SessionStoreError> {
        // Each word as a quoted string, because FTS5 has a query language of its own.
        let quoted: Vec<String> = words
            .split_whitespace()
            .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")))
            .collect();
        if quoted.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = self.database.prepare(
            "select session, seq, snippet(texts, 0, '[', ']', '…', 12) from texts
             where texts match ?1 order by rank limit ?2",
        )?;
        let rows = query.query_map(params![quoted.join(" "), limit], |row| {
            Ok(SearchHit {
                session: row.get(0)?,
                seq: row.get::<_, i64>(1)?.unsigned_abs(),
                excerpt: row.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Returns the session of a workspace that changed last.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn newest(&self, workspace: &str) -> Result<Option<String>, SessionStoreError> {
        let mut query = self.database.prepare(
            "select id from sessions where workspace = ?1 order by changed_ms desc, id desc limit 1",
        )?;
        Ok(query.query_row([workspace], |row| row.get(0)).optional()?)
    }
}

/// Returns the beginning of a prompt in one line.
fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
