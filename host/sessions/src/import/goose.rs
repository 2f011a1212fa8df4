//! Reads the sessions of goose: a database with all sessions, a JSON export, or an older file of
//! JSON lines.
//!
//! A message has blocks. Results come in user messages. Metadata says whether the user and the
//! model see a message: after a compaction, the model no longer sees the older ones.

use std::io::{BufReader, Read as _};
use std::path::Path;

use jaato_types::{Part, SessionId, ToolCall};
use rusqlite::Row;
use serde_json::Value;

use super::assemble::{ConversationPiece, TimedPiece, text_content};
use super::content::{attachment_text, content_text};
use super::error::ImportError;
use super::goose_database::{GooseDatabase, SQLITE_START};
use super::json_line::{
    JsonLines, JsonObject, SourceLine, is_true_field, object_field, open_source_file, parse_time,
    text_field, to_milliseconds,
};
use super::notes::{ImportLoss, ImportNotes};
use super::{ForeignSession, ImportSource};
use crate::export::Transcript;

/// The types of sessions that a user did not begin.
const INNER_TYPES: &[&str] = &["sub_agent", "hidden"];

/// Blocks that the user sees and the model does not, or that repeat a call.
const BOOKKEEPING: &[&str] = &[
    "actionRequired",
    "contextLengthExceeded",
    "conversationCompacted",
    "summarizationRequested",
    "systemNotification",
    "toolConfirmationRequest",
];

/// A session in the database.
pub struct GooseSession {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its folder.
    pub workspace: String,
    /// When it began, in milliseconds since 1970.
    pub begun_ms: i64,
    /// When it changed last.
    pub changed_ms: i64,
}

/// Reads a session.
pub fn read_goose_session(
    path: &Path,
    id: Option<&str>,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    let head = read_head(path)?;
    if head.starts_with(SQLITE_START) {
        return read_database(path, id, notes);
    }
    let mut lines = JsonLines::open(path)?;
    if let Some((_, SourceLine::Object(first))) = lines.next_line()? {
        return match first.get("conversation") {
            Some(conversation) => Ok(read_export(&first, conversation, notes)),
            None => read_lines(path, &first, lines, notes),
        };
    }
    let export = read_multiline_export(path);
    let export = export.ok_or_else(|| ImportError::not_a_session(path, ImportSource::Goose))?;
    let conversation = export.get("conversation").unwrap_or(&Value::Null);
    Ok(read_export(&export, conversation, notes))
}

/// Returns true if a file is an export with line breaks.
pub fn is_multiline_export(path: &Path) -> bool {
    read_multiline_export(path).is_some()
}

/// Reads an export with line breaks.
fn read_multiline_export(path: &Path) -> Option<JsonObject> {
    let file = open_source_file(path).ok()?;
    let export: JsonObject = serde_json::from_reader(BufReader::new(file)).ok()?;
    export.contains_key("conversation").then_some(export)
}

/// Reads the first bytes of a file.
pub fn read_head(path: &Path) -> Result<Vec<u8>, ImportError> {
    let mut head = Vec::new();
    let file = open_source_file(path)?;
    let read = file.take(SQLITE_START.len() as u64).read_to_end(&mut head);
    read.map_err(ImportError::from_io("read", path))?;
    Ok(head)
}

/// Lists the sessions that a user began, the newest first.
pub fn list_sessions(path: &Path) -> Result<Vec<GooseSession>, ImportError> {
    let database = GooseDatabase::open(path)?;
    database_sessions(&database).map_err(ImportError::from_database(path))
}

fn database_sessions(database: &GooseDatabase) -> rusqlite::Result<Vec<GooseSession>> {
    let columns = database.table_columns("sessions")?;
    let has = |name: &str| columns.iter().any(|it| it == name);
    let column = |name: &str| if has(name) { format!("\"{name}\"") } else { "NULL".to_owned() };
    let names = ["id", "name", "description", "working_dir", "created_at", "updated_at"];
    let names = names.map(column).join(", ");
    let newest = if has("updated_at") { "updated_at DESC, " } else { "" };
    let query = format!(
        "SELECT {names}, {} FROM sessions ORDER BY {newest}rowid DESC",
        column("session_type")
    );
    let mut statement = database.connection.prepare(&query)?;
    let rows = statement.query_map([], |row| {
        let (name, description) = (column_text(row, 1)?, column_text(row, 2)?);
        let session = GooseSession {
            id: column_text(row, 0)?,
            name: if name.is_empty() { description } else { name },
            workspace: column_text(row, 3)?,
            begun_ms: database_time(&column_text(row, 4)?),
            changed_ms: database_time(&column_text(row, 5)?),
        };
        Ok((session, column_text(row, 6)?))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let own = rows.into_iter().filter(|(_, kind)| !INNER_TYPES.contains(&kind.as_str()));
    Ok(own.map(|(session, _)| session).collect())
}

fn column_text(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    Ok(row.get::<_, Option<String>>(at)?.unwrap_or_default())
}

/// Reads a time of the database: `2026-11-28 14:37:45`, in UTC.
fn database_time(text: &str) -> i64 {
    let text = text.replace(' ', "T");
    let text = if text.ends_with('Z') || text.contains('+') { text } else { format!("{text}Z") };
    parse_time(Some(&Value::String(text))).unwrap_or_default()
}

fn read_database(
    path: &Path,
    id: Option<&str>,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    let database = GooseDatabase::open(path)?;
    let columns = database.table_columns("messages").map_err(ImportError::from_database(path))?;
    if !["session_id", "role", "content_json"].iter().all(|it| columns.iter().any(|has| has == it))
    {
        return Err(ImportError::not_a_session(path, ImportSource::Goose));
    }
    let sessions = database_sessions(&database).map_err(ImportError::from_database(path))?;
    let session = select_sessions(sessions, id, path)?;
    let rows =
        message_rows(&database, &columns, &session.id).map_err(ImportError::from_database(path))?;
    let transcript = Transcript {
        id: SessionId::from(session.id),
        name: jaato_types::text::one_line(&session.name),
        workspace: session.workspace,
        begun_ms: session.begun_ms,
        ..Transcript::default()
    };
    let pieces = conversation_pieces(rows, notes);
    Ok(ForeignSession { transcript, pieces })
}

fn select_sessions(
    sessions: Vec<GooseSession>,
    id: Option<&str>,
    path: &Path,
) -> Result<GooseSession, ImportError> {
    let path = path.to_owned();
    let count = sessions.len();
    let mut sessions = sessions.into_iter();
    if let Some(id) = id {
        let found = sessions.find(|session| session.id == id);
        return found.ok_or_else(|| ImportError::UnknownSession { path, id: id.to_owned() });
    }
    match (sessions.next(), count) {
        (None, _) => Err(ImportError::NoMessages(path)),
        (Some(only), 1) => Ok(only),
        (Some(newest), _) => Err(ImportError::SeveralSessions { path, count, example: newest.id }),
    }
}

/// A message as goose stores it.
struct GooseMessage {
    at_ms: i64,
    role: String,
    blocks: Value,
    metadata: JsonObject,
}

fn message_rows(
    database: &GooseDatabase,
    columns: &[String],
    session: &str,
) -> rusqlite::Result<Vec<GooseMessage>> {
    let has = |name: &str| columns.iter().any(|it| it == name);
    let column = |name: &'static str| if has(name) { name } else { "NULL" };
    let time = if has("created_timestamp") { "created_timestamp, " } else { "" };
    let query = format!(
        "SELECT role, content_json, {}, {} FROM messages WHERE session_id = ?1 ORDER BY {time}rowid",
        column("created_timestamp"),
        column("metadata_json"),
    );
    let mut statement = database.connection.prepare(&query)?;
    let rows = statement.query_map([session], |row| {
        let blocks: String = row.get(1)?;
        let metadata: Option<String> = row.get(3)?;
        Ok(GooseMessage {
            role: row.get(0)?,
            // Null for a damaged text, which `conversation_pieces` counts.
            blocks: serde_json::from_str(&blocks).unwrap_or_default(),
            at_ms: to_milliseconds(row.get::<_, Option<i64>>(2)?.unwrap_or_default()),
            metadata: serde_json::from_str(&metadata.unwrap_or_default()).unwrap_or_default(),
        })
    })?;
    rows.collect()
}

/// Reads a file of versions before 1.10, whose first line describes the session.
fn read_lines(
    path: &Path,
    first: &JsonObject,
    mut lines: JsonLines,
    notes: &mut ImportNotes,
) -> Result<ForeignSession, ImportError> {
    if !first.contains_key("working_dir") {
        return Err(ImportError::not_a_session(path, ImportSource::Goose));
    }
    let mut messages = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        match line {
            SourceLine::Object(message) => messages.push(json_message(&message)),
            SourceLine::Damaged => notes.note_damaged_line(number),
        }
    }
    let begun_ms = messages.first().map_or(0, |it| it.at_ms);
    let stem = path.file_stem().and_then(|it| it.to_str()).unwrap_or_default();
    let transcript = Transcript {
        id: SessionId::from(stem),
        name: jaato_types::text::one_line(text_field(first, "description")),
        workspace: text_field(first, "working_dir").to_owned(),
        begun_ms,
        ..Transcript::default()
    };
    Ok(ForeignSession { transcript, pieces: conversation_pieces(messages, notes) })
}

/// Reads an export, which is one JSON object.
fn read_export(
    export: &JsonObject,
    conversation: &Value,
    notes: &mut ImportNotes,
) -> ForeignSession {
    let messages = conversation.as_array().into_iter().flatten().filter_map(Value::as_object);
    let names = ["name", "description"].map(|name| text_field(export, name));
    let transcript = Transcript {
        id: SessionId::from(text_field(export, "id")),
        name: names.into_iter().find(|it| !it.is_empty()).unwrap_or_default().to_owned(),
        workspace: text_field(export, "working_dir").to_owned(),
        begun_ms: parse_time(export.get("created_at")).unwrap_or_default(),
        ..Transcript::default()
    };
    let messages = messages.map(json_message).collect();
    ForeignSession { transcript, pieces: conversation_pieces(messages, notes) }
}

fn json_message(message: &JsonObject) -> GooseMessage {
    GooseMessage {
        at_ms: parse_time(message.get("created")).unwrap_or_default(),
        role: text_field(message, "role").to_owned(),
        blocks: message.get("content").cloned().unwrap_or_default(),
        metadata: object_field(message, "metadata").cloned().unwrap_or_default(),
    }
}

fn conversation_pieces(messages: Vec<GooseMessage>, notes: &mut ImportNotes) -> Vec<TimedPiece> {
    let is_hidden =
        |it: &GooseMessage| it.metadata.get("agentVisible") == Some(&Value::Bool(false));
    // The model sees all messages after the last one that it does not see.
    let compacted = messages.iter().rposition(is_hidden);
    let mut pieces = Vec::new();
    for (number, message) in messages.into_iter().enumerate() {
        if is_true_field(&message.metadata, "turnContext") {
            notes.count_loss(ImportLoss::AddedContext);
        } else {
            let at_ms = message.at_ms;
            pieces.extend(message_pieces(message, notes).into_iter().map(|piece| (at_ms, piece)));
        }
        if compacted == Some(number) {
            let at_ms = pieces.last().map_or(0, |(at_ms, _)| *at_ms);
            pieces.push((at_ms, ConversationPiece::Compacted));
        }
    }
    pieces
}

fn message_pieces(message: GooseMessage, notes: &mut ImportNotes) -> Vec<ConversationPiece> {
    let is_answer = message.role == "assistant";
    let Value::Array(blocks) = message.blocks else {
        notes.count_unknown("message without blocks");
        return Vec::new();
    };
    let (mut parts, mut pieces) = (Vec::new(), Vec::new());
    for block in blocks.iter().filter_map(Value::as_object) {
        match text_field(block, "type") {
            "text" => parts.push(Part::text(text_field(block, "text"))),
            "image" => parts.push(Part::text(attachment_text(block, notes))),
            "thinking" => {
                let is_signed = !text_field(block, "signature").is_empty();
                notes.count_losses(ImportLoss::Signature, u64::from(is_signed));
                parts.push(Part::thought(text_field(block, "thinking")));
            }
            "reasoning" => parts.push(Part::thought(text_field(block, "text"))),
            "redactedThinking" => notes.count_loss(ImportLoss::EncryptedReasoning),
            "toolRequest" | "frontendToolRequest" => parts.push(tool_call(block)),
            "toolResponse" => pieces.push(tool_result(block, notes)),
            kind if BOOKKEEPING.contains(&kind) => {}
            other => notes.count_unknown(other),
        }
    }
    if is_answer {
        let model = metadata_model(&message.metadata);
        pieces.push(ConversationPiece::Answer { parts, model, response: None });
    } else {
        let is_news = !pieces.is_empty();
        let piece = if is_news { ConversationPiece::News } else { ConversationPiece::Prompt };
        parts.retain(|part| matches!(part, Part::Text { .. }));
        if !parts.is_empty() {
            pieces.push(piece(parts));
        }
    }
    pieces
}

fn metadata_model(metadata: &JsonObject) -> Option<String> {
    let inference = object_field(metadata, "inference")?;
    let (provider, model) =
        (text_field(inference, "provider"), text_field(inference, "requestedModel"));
    let is_named = !provider.is_empty() && !model.is_empty();
    is_named.then(|| format!("{provider}/{model}"))
}

/// Reads a call. Its value is missing if the model's request was invalid.
fn tool_call(block: &JsonObject) -> Part {
    let id = text_field(block, "id");
    let call = block.get("toolCall").and_then(|it| it.get("value")).and_then(Value::as_object);
    Part::ToolCall(match call {
        Some(call) => {
            let arguments = call.get("arguments").cloned().unwrap_or_default();
            ToolCall::new(id, text_field(call, "name"), arguments)
        }
        None => ToolCall::new(id, "invalid_call", Value::Object(JsonObject::new())),
    })
}

fn tool_result(block: &JsonObject, notes: &mut ImportNotes) -> ConversationPiece {
    let call_id = text_field(block, "id").to_owned();
    let empty = JsonObject::new();
    let result = object_field(block, "toolResult").unwrap_or(&empty);
    let (text, is_error) = match result.get("value") {
        Some(Value::Object(value)) => {
            (content_text(value.get("content"), notes), is_true_field(value, "isError"))
        }
        // Before MCP's results were kept in full, the value was its content.
        Some(blocks) => (content_text(Some(blocks), notes), false),
        None => (text_field(result, "error").to_owned(), true),
    };
    ConversationPiece::Result { call_id, content: text_content(text), is_error }
}
