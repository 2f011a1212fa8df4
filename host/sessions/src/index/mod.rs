//! An SQLite index over all sessions, for lists and full-text search.
//!
//! A process that saves never touches the database. It leaves a mark, and opening the index reads
//! the marked sessions. Everything here can be rebuilt from the files.

mod tables;
mod update;

use std::collections::HashSet;

use jaato_types::SessionId;
use rusqlite::{Connection, Row, params};

use crate::error::SessionStoreError;
use crate::record::SessionOpener;
use crate::store::SessionStore;

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
    /// The number of prompts in the conversation.
    pub prompts: u64,
    /// The session that opened it, if any.
    pub opener: Option<SessionOpener>,
}

/// A message that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// The session's id.
    pub session: String,
    /// The session's name.
    pub name: String,
    /// The number of the record.
    pub seq: u64,
    /// When the record was appended, in milliseconds since 1970.
    pub at_ms: i64,
    /// A part of the text, with each found word between `[` and `]`.
    pub excerpt: String,
}

/// The columns that [`indexed_session`] reads.
const COLUMNS: &str = "id, workspace, name, begun_ms, changed_ms, prompts, opener, agent";

/// The condition on the sessions of a list. The first parameter is the workspace, or null for all.
/// A session whose opener is gone is listed.
const IS_LISTED: &str = "(?1 is null or workspace = ?1)
     and (opener is null or opener not in (select id from sessions))";

/// A session that the index cannot read.
#[derive(Debug)]
pub struct IndexProblem {
    /// The session.
    pub session: SessionId,
    /// Why it cannot be read.
    pub error: SessionStoreError,
}

/// The index.
#[derive(Debug)]
pub struct SessionIndex {
    database: Connection,
}

impl SessionIndex {
    /// Opens the index of a store and reads the sessions that have changed. Creates a missing,
    /// damaged or older index again from the files. Returns the sessions that cannot be read, too.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn open(store: &SessionStore) -> Result<(Self, Vec<IndexProblem>), SessionStoreError> {
        match Self::open_existing(store) {
            Ok(Some(opened)) => return Ok(opened),
            Ok(None) => {}
            Err(SessionStoreError::Index(error)) if tables::is_damage_error(&error) => {
                tables::remove_database(store)?;
            }
            Err(error) => return Err(error),
        }
        let (index, _, problems) = Self::rebuild(store)?;
        Ok((index, problems))
    }

    /// Reads all sessions of a store into a new index. Returns their number, and those that cannot
    /// be read.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn rebuild(
        store: &SessionStore,
    ) -> Result<(Self, u64, Vec<IndexProblem>), SessionStoreError> {
        let rebuilt = Self::rebuild_in_place(store);
        let is_damage = |error: &SessionStoreError| match error {
            SessionStoreError::Index(error) => tables::is_damage_error(error),
            _ => false,
        };
        match rebuilt {
            Err(error) if is_damage(&error) => {
                tables::remove_database(store)?;
                Self::rebuild_in_place(store)
            }
            rebuilt => rebuilt,
        }
    }

    /// Returns `None` if there is no index of this version.
    fn open_existing(
        store: &SessionStore,
    ) -> Result<Option<(Self, Vec<IndexProblem>)>, SessionStoreError> {
        if !tables::index_path(store).exists() {
            return Ok(None);
        }
        let mut index = Self { database: tables::open_database(store)? };
        if !tables::has_current_version(&index.database)? {
            return Ok(None);
        }
        let problems = index.index_changed_sessions(store)?;
        Ok(Some((index, problems)))
    }

    fn rebuild_in_place(
        store: &SessionStore,
    ) -> Result<(Self, u64, Vec<IndexProblem>), SessionStoreError> {
        let mut index = Self { database: tables::open_database(store)? };
        let (count, mut problems) = index.index_all_sessions(store)?;
        let changed = index.index_changed_sessions(store)?;
        let is_new = |problem: &IndexProblem| {
            !problems.iter().any(|known: &IndexProblem| known.session == problem.session)
        };
        let further: Vec<IndexProblem> = changed.into_iter().filter(is_new).collect();
        problems.extend(further);
        store.remove_leftovers()?;
        Ok((index, count, problems))
    }

    /// Lists sessions, the last changed first, without those that other sessions of the index
    /// opened. A workspace limits the list to its sessions.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn list_sessions(
        &self,
        workspace: Option<&str>,
        limit: u32,
    ) -> Result<Vec<IndexedSession>, SessionStoreError> {
        let mut query = self.database.prepare(&format!(
            "select {COLUMNS} from sessions where {IS_LISTED}
             order by changed_ms desc, id desc limit ?2"
        ))?;
        let rows = query.query_map(params![workspace, limit], indexed_session)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Lists the sessions that a session opened, and those that these opened, each after its opener
    /// and otherwise in the order in which they began. The numbers are the levels, from 1.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn opened_descendants(
        &self,
        session: &str,
    ) -> Result<Vec<(usize, IndexedSession)>, SessionStoreError> {
        let level = |level: usize| {
            move |agents: Vec<IndexedSession>| agents.into_iter().rev().map(move |it| (level, it))
        };
        let mut waiting: Vec<_> = self.opened_children(session).map(level(1))?.collect();
        // Damaged files may name each other.
        let mut seen = HashSet::from([session.to_owned()]);
        let mut below = Vec::new();
        while let Some((depth, agent)) = waiting.pop() {
            if seen.insert(agent.id.clone()) {
                waiting.extend(self.opened_children(&agent.id).map(level(depth + 1))?);
                below.push((depth, agent));
            }
        }
        Ok(below)
    }

    /// Lists the sessions that a session opened itself, in the order in which they began.
    fn opened_children(&self, opener: &str) -> Result<Vec<IndexedSession>, SessionStoreError> {
        let mut query = self.database.prepare(&format!(
            "select {COLUMNS} from sessions where opener = ?1 order by begun_ms, id"
        ))?;
        let rows = query.query_map([opener], indexed_session)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Counts the sessions that [`SessionIndex::list_sessions`] lists without a limit.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn count_sessions(&self, workspace: Option<&str>) -> Result<u64, SessionStoreError> {
        let query = format!("select count(*) from sessions where {IS_LISTED}");
        let count: i64 = self.database.query_row(&query, [workspace], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    /// Finds messages that contain all words or words that begin with them, the best first. A
    /// workspace limits the search to its sessions.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn search_messages(
        &self,
        words: &str,
        workspace: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SearchHit>, SessionStoreError> {
        // Each word as a quoted string, because FTS5 has a query language of its own.
        let quoted: Vec<String> = words
            .split_whitespace()
            .map(|word| format!("\"{}\"*", word.replace('"', "\"\"")))
            .collect();
        if quoted.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = self.database.prepare(
            "select messages.session, sessions.name, messages.seq, messages.at_ms,
                 snippet(texts, 0, '[', ']', '…', 16)
             from texts
                 join messages on messages.number = texts.rowid
                 join sessions on sessions.id = messages.session
             where texts match ?1 and (?2 is null or sessions.workspace = ?2)
             order by rank limit ?3",
        )?;
        let rows = query.query_map(params![quoted.join(" "), workspace, limit], |row| {
            Ok(SearchHit {
                session: row.get(0)?,
                name: row.get(1)?,
                seq: row.get::<_, i64>(2)?.unsigned_abs(),
                at_ms: row.get(3)?,
                excerpt: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn indexed_session(row: &Row<'_>) -> rusqlite::Result<IndexedSession> {
    Ok(IndexedSession {
        id: row.get(0)?,
        workspace: row.get(1)?,
        name: row.get(2)?,
        begun_ms: row.get(3)?,
        changed_ms: row.get(4)?,
        prompts: row.get::<_, i64>(5)?.unsigned_abs(),
        opener: match (row.get(6)?, row.get(7)?) {
            (Some(session), Some(agent)) => Some(SessionOpener { session, agent }),
            _ => None,
        },
    })
}
