//! Reads JSON lines that [`to_json_lines`](crate::to_json_lines) wrote, and changes nothing in
//! them.

use std::path::Path;

use jaato_types::Part;
use serde::Deserialize as _;
use serde_json::Value;

use super::assemble::assemble;
use super::error::ImportError;
use super::history_check::{into_pieces, is_history};
use super::json_line::{JsonLines, SourceLine, text_of};
use super::notes::ImportNotes;
use super::{ImportSource, ImportedSession};
use crate::export::{
    TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION, Transcript, TranscriptHeader, TranscriptLine,
    TranscriptMessage,
};

/// Imports a transcript.
pub fn import(path: &Path) -> Result<ImportedSession, ImportError> {
    let mut lines = JsonLines::open(path)?;
    let mut notes = ImportNotes::default();
    let header = read_header(&mut lines, path)?;
    let TranscriptHeader { id, name, workspace, begun_ms, .. } = header;
    let mut messages = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let SourceLine::Object(line) = line else {
            notes.damaged(number);
            continue;
        };
        match TranscriptLine::deserialize(Value::Object(line)) {
            Ok(TranscriptLine { at_ms, message, model, note }) => {
                messages.push(TranscriptMessage { at_ms, message, model, note });
            }
            Err(_) => notes.damaged(number),
        }
    }
    if messages.is_empty() {
        return Err(ImportError::NoMessages(path.to_owned()));
    }
    if !is_history(&messages) {
        notes.say("The messages do not form a valid history, so they were repaired.");
        messages = assemble(into_pieces(messages, &mut notes), &mut notes);
    }
    note_attachments(&messages, &mut notes);
    let transcript = Transcript { id, name, workspace, begun_ms, messages };
    Ok(ImportedSession { transcript, notes: notes.into_sentences() })
}

fn read_header(lines: &mut JsonLines, path: &Path) -> Result<TranscriptHeader, ImportError> {
    let refused = || ImportError::not_a_session(path, ImportSource::Jaato);
    let Some((_, SourceLine::Object(header))) = lines.next_line()? else { return Err(refused()) };
    if text_of(&header, "format") != TRANSCRIPT_FORMAT {
        return Err(refused());
    }
    let version = header.get("version").and_then(Value::as_u64).unwrap_or_default();
    let known = u64::from(TRANSCRIPT_VERSION);
    if version > known {
        return Err(ImportError::NewerFormat { path: path.to_owned(), version, known });
    }
    TranscriptHeader::deserialize(Value::Object(header)).map_err(|_| refused())
}

fn note_attachments(messages: &[TranscriptMessage], notes: &mut ImportNotes) {
    let parts = messages.iter().flat_map(|it| &it.message.parts);
    let blobs = parts.map(|part| match part {
        Part::Data(data) => usize::from(data.blob_id().is_some()),
        Part::ToolResult(result) => result.attachments.len(),
        _ => 0,
    });
    match blobs.sum() {
        0_usize => {}
        1 => notes.say("The content of 1 attachment is missing, because an export does not contain attachments."),
        count => notes.say(format!(
            "The contents of {count} attachments are missing, because an export does not contain attachments."
        )),
    }
}
