//! The operations on the memories of one file: add, find, count, edit, remove.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::{from_str, to_string};
use rusqlite::{Connection, Row, params};

use crate::file::{MemoryFileError, MemoryFileResult};
use crate::record::{MemoryRecord, NewMemory};
use crate::search_terms::fold_tag;

/// The maximum number of memories in one scope. A search over all of them must take only
/// milliseconds.
pub const MEMORIES_MAX: u32 = 10_000;
/// How often another id is drawn if an id is taken.
const IDS_TRIED: usize = 5;

/// The criteria of a search.
#[derive(Debug, Clone, Default)]
pub struct MemoryQuery {
    /// Tags in normalized form.
    pub tags: Vec<String>,
    /// The query for the full-text index.
    pub query: String,
    /// The maximum number of memories to return.
    pub count: u32,
}

/// A memory that was found, with its score.
#[derive(Debug, Clone)]
pub struct MemoryMatch {
    pub memory: MemoryRecord,
    /// Number of tags that the memory shares with the search.
    pub shared: i64,
    /// The `bm25` score. Lower is better, and 0 means that no word matches.
    pub rank: f64,
}

/// Stores a memory and returns its id.
pub fn insert_memory(file: &Connection, new: &NewMemory) -> MemoryFileResult<String> {
    let count: u32 = file.query_row("SELECT count(*) FROM memory", [], |row| row.get(0))?;
    if count >= MEMORIES_MAX {
        let error = Error::new(
            ErrorKind::LimitReached,
            format!("there are already {MEMORIES_MAX} memories"),
        );
        return Err(MemoryFileError::Told(
            error.with_hint("remove some with the command `memory remove ID`"),
        ));
    }
    let now = jiff::Timestamp::now();
    let stored = format_time(now);
    let tags = to_string(&new.tags).unwrap_or_default();
    let insert = "INSERT OR IGNORE INTO memory
        (id, content, description, tags, confidence, evidence, stored)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut insert = file.prepare(insert)?;
    for _ in 0..IDS_TRIED {
        let id = new_memory_id(now);
        let row =
            params![id, new.content, new.description, tags, new.confidence, new.evidence, stored];
        if insert.execute(row)? == 0 {
            continue;
        }
        let number = file.last_insert_rowid();
        for tag in &new.tags {
            let sql = "INSERT OR IGNORE INTO memory_tag (folded, number) VALUES (?1, ?2)";
            file.execute(sql, params![fold_tag(tag), number])?;
        }
        index_memory(file, number)?;
        return Ok(id);
    }
    Err(MemoryFileError::Told(Error::failed("cannot find a free id")))
}

/// Finds memories, ordered by shared tags, then by matching words, then newest first.
pub fn find_memories(
    file: &Connection,
    wanted: &MemoryQuery,
) -> rusqlite::Result<Vec<MemoryMatch>> {
    // `bm25` works only in the query of the index. Without `MATERIALIZED`, SQLite would move it.
    let sql = format!(
        "WITH shared(number, tags) AS MATERIALIZED (
            SELECT number, count(*) FROM memory_tag
            WHERE folded IN (SELECT value FROM json_each(?1)) GROUP BY number),
        fitting(number, rank) AS MATERIALIZED (
            SELECT rowid, bm25(memory_words, 4.0, 8.0, 1.0) FROM memory_words
            WHERE memory_words MATCH ?2)
        SELECT {COLUMNS}, coalesce(shared.tags, 0), coalesce(fitting.rank, 0.0) FROM memory
        LEFT JOIN shared USING (number) LEFT JOIN fitting USING (number)
        WHERE shared.number IS NOT NULL OR fitting.number IS NOT NULL
        ORDER BY 9 DESC, 10 ASC, memory.number DESC LIMIT ?3"
    );
    let tags = to_string(&wanted.tags).unwrap_or_default();
    let found = |row: &Row<'_>| {
        Ok(MemoryMatch { memory: memory_from_row(row)?, shared: row.get(8)?, rank: row.get(9)? })
    };
    let mut search = file.prepare(&sql)?;
    let rows = search.query_map(params![tags, wanted.query, wanted.count], found)?;
    rows.collect()
}

/// Counts that a model received these memories.
pub fn count_memory_uses(file: &Connection, ids: &[String]) -> MemoryFileResult<()> {
    let sql = "UPDATE memory SET usage_count = usage_count + 1, last_accessed = ?2 WHERE id = ?1";
    let mut update = file.prepare(sql)?;
    let now = format_time(jiff::Timestamp::now());
    for id in ids {
        update.execute(params![id, now])?;
    }
    Ok(())
}

/// Returns all tags in normalized form, with their numbers of memories.
pub fn list_tags(file: &Connection) -> rusqlite::Result<Vec<(String, u32)>> {
    let sql = "SELECT folded, count(*) FROM memory_tag GROUP BY folded ORDER BY folded";
    file.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Returns the number of memories and the newest ones.
pub fn newest_memories(
    file: &Connection,
    count: u32,
) -> rusqlite::Result<(u32, Vec<MemoryRecord>)> {
    let total = file.query_row("SELECT count(*) FROM memory", [], |row| row.get(0))?;
    let sql = format!("SELECT {COLUMNS} FROM memory ORDER BY number DESC LIMIT ?1");
    let newest: rusqlite::Result<Vec<MemoryRecord>> =
        file.prepare(&sql)?.query_map([count], memory_from_row)?.collect();
    Ok((total, newest?))
}

/// Removes a memory. Returns false if no memory has the id.
pub fn delete_memory(file: &Connection, id: &str) -> MemoryFileResult<bool> {
    let Some(number) = memory_number(file, id)? else { return Ok(false) };
    file.execute("DELETE FROM memory_words WHERE rowid = ?1", [number])?;
    file.execute("DELETE FROM memory WHERE number = ?1", [number])?;
    Ok(true)
}

/// Replaces the content of a memory. Returns false if no memory has the id.
pub fn replace_content(file: &Connection, id: &str, content: &str) -> MemoryFileResult<bool> {
    let Some(number) = memory_number(file, id)? else { return Ok(false) };
    file.execute("UPDATE memory SET content = ?2 WHERE number = ?1", params![number, content])?;
    file.execute("DELETE FROM memory_words WHERE rowid = ?1", [number])?;
    index_memory(file, number)?;
    Ok(true)
}

const COLUMNS: &str =
    "id, content, description, memory.tags, confidence, evidence, stored, usage_count";

fn memory_from_row(row: &Row<'_>) -> rusqlite::Result<MemoryRecord> {
    let tags: String = row.get(3)?;
    Ok(MemoryRecord {
        id: row.get(0)?,
        content: row.get(1)?,
        description: row.get(2)?,
        tags: from_str(&tags).unwrap_or_default(),
        confidence: row.get(4)?,
        evidence: row.get(5)?,
        stored: row.get(6)?,
        usage_count: row.get(7)?,
    })
}

fn index_memory(file: &Connection, number: i64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO memory_words(rowid, description, tags, content)
        SELECT number, description, (SELECT group_concat(value, ' ') FROM json_each(tags)), content
        FROM memory WHERE number = ?1";
    file.execute(sql, [number]).map(|_| ())
}

fn memory_number(file: &Connection, id: &str) -> rusqlite::Result<Option<i64>> {
    let mut rows = file.prepare("SELECT number FROM memory WHERE id = ?1")?;
    let mut rows = rows.query([id])?;
    rows.next()?.map(|row| row.get(0)).transpose()
}

/// Formats a time so that texts sort like times.
fn format_time(time: jiff::Timestamp) -> String {
    format!("{time:.6}")
}

/// Returns an id that no other memory has. Two processes may store at the same moment.
fn new_memory_id(now: jiff::Timestamp) -> String {
    let random: String = (0..8).map(|_| fastrand::alphanumeric().to_ascii_lowercase()).collect();
    format!("mem_{}_{random}", now.strftime("%Y%m%d_%H%M%S"))
}
