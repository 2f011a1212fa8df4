//! Reads sessions into the index.

use std::fs::File;
use std::path::Path;

use jaato_types::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Statement, TransactionBehavior, params};

use super::{IndexProblem, SessionIndex, tables};
use crate::effective::effective_records;
use crate::error::SessionStoreError;
use crate::owner::{OwnerState, owner_state, try_lock_folder};
use crate::record::{IndexedText, StoredRecord, record_type};
use crate::replay::HistoryChange;
use crate::store::{RECORDS, SessionStore};

/// Longest name that the first prompt gives, in characters.
const NAME_CHARS_MAX: usize = 80;

impl SessionIndex {
    /// Reads all sessions into new tables. Leaves the marks, because a crash may lose the tables.
    pub(super) fn index_all_sessions(
        &mut self,
        store: &SessionStore,
    ) -> Result<(u64, Vec<IndexProblem>), SessionStoreError> {
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tables::create_tables(&change)?;
        let (mut count, mut problems) = (0, Vec::new());
        for session in store.list_sessions()? {
            match index_session(&change, store, &session) {
                Ok(()) => count += 1,
                // It was deleted at this moment.
                Err(SessionStoreError::NotFound(_)) => {}
                Err(error @ SessionStoreError::Index(_)) => return Err(error),
                Err(error) => problems.push(IndexProblem { session, error }),
            }
        }
        change.commit()?;
        Ok((count, problems))
    }

    /// Reads the marked sessions. Removes the marks of those that no process has open.
    pub(super) fn index_changed_sessions(
        &mut self,
        store: &SessionStore,
    ) -> Result<Vec<IndexProblem>, SessionStoreError> {
        let mut problems = Vec::new();
        for session in store.changed_sessions()? {
            match self.index_marked_session(store, &session) {
                Ok(()) => {}
                Err(error @ SessionStoreError::Index(_)) => return Err(error),
                Err(error) => problems.push(IndexProblem { session, error }),
            }
        }
        Ok(problems)
    }

    fn index_marked_session(
        &mut self,
        store: &SessionStore,
        id: &SessionId,
    ) -> Result<(), SessionStoreError> {
        let folder = store.session_folder(id)?;
        // Until the lock is dropped, no process can claim the session. So the mark of a session
        // that is free now can be removed after it is read.
        let (_lock, is_free) = match folder.exists() {
            true => lock_if_free(&folder, id)?,
            // It was deleted.
            false => (None, true),
        };
        let change = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let read = match (folder.join(RECORDS).exists(), is_free) {
            (true, _) => index_session(&change, store, id),
            (false, true) => remove_session(&change, id),
            // A process creates it or deletes it at this moment.
            (false, false) => return Ok(()),
        };
        let is_readable = match &read {
            Ok(()) => true,
            // It stays so, and is reported once.
            Err(SessionStoreError::NotASession(_) | SessionStoreError::NewerFormat { .. }) => false,
            // It was deleted at this moment.
            Err(SessionStoreError::NotFound(_)) => return Ok(()),
            Err(_) => return read,
        };
        if is_readable {
            change.commit()?;
        }
        if is_free {
            store.disk.remove_file(&store.mark_path(id))?;
        }
        read
    }
}

/// Locks the folder of a session, and returns true if no process has the session open. If another
/// process claims or deletes the session at this moment, it counts as open.
fn lock_if_free(folder: &Path, id: &SessionId) -> Result<(Option<File>, bool), SessionStoreError> {
    let lock = match try_lock_folder(folder, id.as_str()) {
        Err(SessionStoreError::NotFound(_)) => None,
        lock => lock?,
    };
    let is_free = lock.is_some() && owner_state(folder)? == OwnerState::Free;
    Ok((lock, is_free))
}

/// Adds the records of a session that the index does not have.
fn index_session(
    database: &Connection,
    store: &SessionStore,
    id: &SessionId,
) -> Result<(), SessionStoreError> {
    let mut reader = store.read_session(id)?;
    let known: Option<u64> = database
        .query_row("select indexed_bytes from sessions where id = ?1", [id.as_str()], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?
        .map(i64::unsigned_abs);
    let is_further = match known {
        Some(bytes) => reader.skip_to(bytes)?,
        None => false,
    };
    let mut records = reader.read_rest()?;
    let rewinds = |stored: &StoredRecord| stored.record.kind == record_type::REWIND;
    if !is_further || records.iter().any(rewinds) {
        reader = store.read_session(id)?;
        records = effective_records(reader.read_rest()?);
        remove_session(database, id)?;
        let header = reader.header();
        let opener = header.opener.as_ref();
        let (opener, agent) = (opener.map(|it| &it.session), opener.map(|it| &it.agent));
        database.execute(
            "insert into sessions (id, workspace, begun_ms, changed_ms, opener, agent)
             values (?1, ?2, ?3, ?3, ?4, ?5)",
            params![id.as_str(), header.workspace, reader.begun_ms(), opener, agent],
        )?;
    }
    add_records(database, id, &records)?;
    let end = i64::try_from(reader.end_offset()).unwrap_or(i64::MAX);
    database.execute(
        "update sessions set indexed_bytes = ?2 where id = ?1",
        params![id.as_str(), end],
    )?;
    Ok(())
}

fn remove_session(database: &Connection, id: &SessionId) -> Result<(), SessionStoreError> {
    for table in [
        "delete from texts where rowid in (select number from messages where session = ?1)",
        "delete from messages where session = ?1",
        "delete from sessions where id = ?1",
    ] {
        database.execute(table, [id.as_str()])?;
    }
    Ok(())
}

/// Removes the messages from a position on, except forgotten ones.
fn remove_messages_from(
    database: &Connection,
    id: &SessionId,
    position: i64,
) -> Result<(), SessionStoreError> {
    for table in [
        "delete from texts where rowid in (select number from messages
             where session = ?1 and position >= ?2 and not is_forgotten)",
        "delete from messages where session = ?1 and position >= ?2 and not is_forgotten",
    ] {
        database.prepare(table)?.execute(params![id.as_str(), position])?;
    }
    Ok(())
}

/// Counts messages no longer, from the first position to the last. Their texts can still be found.
fn mark_forgotten(
    database: &Connection,
    id: &SessionId,
    positions: &[i64],
) -> Result<(), SessionStoreError> {
    if let (Some(first), Some(last)) = (positions.first(), positions.last()) {
        database.execute(
            "update messages set is_forgotten = 1
             where session = ?1 and position between ?2 and ?3",
            params![id.as_str(), first, last],
        )?;
    }
    Ok(())
}

/// Lists the positions of the messages that are not forgotten. An index of a change counts these.
fn kept_positions(database: &Connection, id: &SessionId) -> Result<Vec<i64>, SessionStoreError> {
    let mut query = database.prepare(
        "select position from messages where session = ?1 and not is_forgotten order by position",
    )?;
    let positions = query.query_map([id.as_str()], |row| row.get(0))?;
    Ok(positions.collect::<Result<_, _>>()?)
}

fn add_records(
    database: &Connection,
    id: &SessionId,
    records: &[StoredRecord],
) -> Result<(), SessionStoreError> {
    if records.is_empty() {
        return Ok(());
    }
    let mut next: i64 = database
        .prepare("select coalesce(max(position) + 1, 0) from messages where session = ?1")?
        .query_row([id.as_str()], |row| row.get(0))?;
    // Only changes need them, and most records add messages.
    let mut kept: Option<Vec<i64>> = None;
    let mut added = MessageInserts::prepare(database)?;
    for stored in records {
        if stored.record.kind == record_type::NAME
            && let Some(name) = stored.record.data["name"].as_str()
        {
            database.execute(
                "update sessions set name = ?2, is_named = 1 where id = ?1",
                params![id.as_str(), name],
            )?;
        }
        // A damaged change has no effect.
        let change = stored.record.history_change().flatten();
        if !matches!(change, None | Some(HistoryChange::Append(_))) && kept.is_none() {
            kept = Some(kept_positions(database, id)?);
        }
        let known = kept.as_mut();
        match (change, known) {
            (Some(HistoryChange::Append(entry)), known) => {
                if let Some(text) = IndexedText::from_entry(entry) {
                    added.add_message(id, next, stored, &text)?;
                    known.into_iter().for_each(|kept| kept.push(next));
                    next += 1;
                }
            }
            (Some(HistoryChange::Replace { index, entry }), Some(kept)) => {
                if let (Some(at), Some(text)) = (kept.get(index), IndexedText::from_entry(entry)) {
                    replace_message(database, id, *at, &text)?;
                }
            }
            (Some(HistoryChange::Cut { length }), Some(kept)) if length < kept.len() => {
                remove_messages_from(database, id, kept[length])?;
                kept.truncate(length);
            }
            (Some(HistoryChange::Forget { index, count }), Some(kept)) => {
                let end = index.saturating_add(count);
                if let Some(gone) = kept.get(index..end) {
                    mark_forgotten(database, id, gone)?;
                    kept.drain(index..end);
                }
            }
            (Some(_) | None, _) => {}
        }
    }
    let changed_ms = records.iter().map(|stored| stored.at_ms).max().unwrap_or(0);
    database
        .prepare(
            "update sessions set changed_ms = max(changed_ms, ?2),
             prompts = (select count(*) from messages where session = ?1 and is_prompt)
         where id = ?1",
        )?
        .execute(params![id.as_str(), changed_ms])?;
    name_session_by_prompt(database, id)
}

/// The statements that add a message, because preparing them takes longer than running them.
struct MessageInserts<'a> {
    database: &'a Connection,
    message: Statement<'a>,
    text: Statement<'a>,
}

impl<'a> MessageInserts<'a> {
    fn prepare(database: &'a Connection) -> Result<Self, SessionStoreError> {
        let message = database.prepare(
            "insert into messages (session, position, seq, at_ms, is_prompt)
             values (?1, ?2, ?3, ?4, ?5)",
        )?;
        let text = database.prepare("insert into texts (rowid, text) values (?1, ?2)")?;
        Ok(Self { database, message, text })
    }

    fn add_message(
        &mut self,
        id: &SessionId,
        position: i64,
        stored: &StoredRecord,
        text: &IndexedText,
    ) -> Result<(), SessionStoreError> {
        let seq = i64::try_from(stored.seq).unwrap_or(i64::MAX);
        let IndexedText { text, is_prompt, is_sent } = text;
        let is_prompt = *is_prompt && *is_sent;
        self.message.execute(params![id.as_str(), position, seq, stored.at_ms, is_prompt])?;
        self.text.execute(params![self.database.last_insert_rowid(), text])?;
        Ok(())
    }
}

fn replace_message(
    database: &Connection,
    id: &SessionId,
    position: i64,
    text: &IndexedText,
) -> Result<(), SessionStoreError> {
    database.execute(
        "update texts set text = ?3 where rowid in
             (select number from messages where session = ?1 and position = ?2)",
        params![id.as_str(), position, text.text],
    )?;
    database.execute(
        "update messages set is_prompt = ?3 where session = ?1 and position = ?2",
        params![id.as_str(), position, text.is_prompt && text.is_sent],
    )?;
    Ok(())
}

/// Names a session after its first prompt, unless the user named it.
fn name_session_by_prompt(database: &Connection, id: &SessionId) -> Result<(), SessionStoreError> {
    let first: Option<String> = database
        .prepare(
            "select texts.text from sessions
                 join messages on messages.session = sessions.id and messages.is_prompt
                 join texts on texts.rowid = messages.number
             where sessions.id = ?1 and not sessions.is_named and sessions.name = ''
             order by messages.position limit 1",
        )?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(text) = first {
        database.execute(
            "update sessions set name = ?2 where id = ?1",
            params![id.as_str(), first_words(&text)],
        )?;
    }
    Ok(())
}

/// Returns the start of a prompt in one line.
fn first_words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
