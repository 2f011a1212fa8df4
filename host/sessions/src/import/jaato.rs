//! Reads JSON lines that [`to_json_lines`](crate::to_json_lines) wrote, and changes nothing in
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaato_types::DataPart;
use serde::Deserialize as _;
use serde_json::Value;

use super::assemble::assemble_messages;
use super::error::ImportError;
use super::history_check::{into_pieces, is_valid_history};
use super::json_line::{JsonLines, JsonObject, SourceLine, text_field};
use super::notes::ImportNotes;
use super::{ImportSource, ImportedSession};
use crate::attachments::{content_digest, message_blobs};
use crate::export::{
    AttachmentLine, TRANSCRIPT_FORMAT, TRANSCRIPT_VERSION, Transcript, TranscriptHeader,
    TranscriptLine, TranscriptMessage,
};

/// Imports a transcript.
pub fn import_transcript(path: &Path) -> Result<ImportedSession, ImportError> {
    let mut lines = JsonLines::open(path)?;
    let mut notes = ImportNotes::default();
    let header = read_header(&mut lines, path)?;
    let TranscriptHeader { id, name, workspace, begun_ms, attachments_folder, .. } = header;
    let (mut messages, mut attachments) = (Vec::new(), BTreeMap::new());
    while let Some((number, line)) = lines.next_line()? {
        let SourceLine::Object(line) = line else {
            notes.note_damaged_line(number);
            continue;
        };
        if line.contains_key("attachment") {
            match attachment_content(line) {
                Some((name, content)) => drop(attachments.insert(name, content)),
                None => notes.note_damaged_line(number),
            }
            continue;
        }
        match TranscriptLine::deserialize(Value::Object(line)) {
            Ok(TranscriptLine { at_ms, message, model, note }) => {
                messages.push(TranscriptMessage { at_ms, message, model, note });
            }
            Err(_) => notes.note_damaged_line(number),
        }
    }
    if messages.is_empty() {
        return Err(ImportError::NoMessages(path.to_owned()));
    }
    if !is_valid_history(&messages) {
        notes.add_sentence("The messages do not form a valid history, so they were repaired.");
        messages = assemble_messages(into_pieces(messages, &mut notes), &mut notes);
    }
    note_missing_files(&messages, &attachments, &mut notes);
    let transcript =
        Transcript { id, name, workspace, begun_ms, messages, attachments, attachments_folder };
    Ok(ImportedSession { transcript, notes: notes.into_sentences() })
}

fn read_header(lines: &mut JsonLines, path: &Path) -> Result<TranscriptHeader, ImportError> {
    let refused = || ImportError::not_a_session(path, ImportSource::Jaato);
    let Some((_, SourceLine::Object(header))) = lines.next_line()? else { return Err(refused()) };
    if text_field(&header, "format") != TRANSCRIPT_FORMAT {
        return Err(refused());
    }
    let version = header.get("version").and_then(Value::as_u64).unwrap_or_default();
    let known = u64::from(TRANSCRIPT_VERSION);
    if version > known {
        return Err(ImportError::NewerFormat { path: path.to_owned(), version, known });
    }
    TranscriptHeader::deserialize(Value::Object(header)).map_err(|_| refused())
}

/// Returns the name and the content of an attachment's line, if it is complete.
fn attachment_content(line: JsonObject) -> Option<(String, Vec<u8>)> {
    let AttachmentLine { attachment, base64 } =
        AttachmentLine::deserialize(Value::Object(line)).ok()?;
    let content = STANDARD.decode(base64).ok()?;
    (content_digest(&content) == attachment).then_some((attachment, content))
}

/// Says how many attached files are missing.
fn note_missing_files(
    messages: &[TranscriptMessage],
    contents: &BTreeMap<String, Vec<u8>>,
    notes: &mut ImportNotes,
) {
    let data = messages.iter().flat_map(|it| message_blobs(&it.message));
    let missing: BTreeSet<&str> =
        data.filter_map(DataPart::blob_id).filter(|blob| !contents.contains_key(*blob)).collect();
    match missing.len() {
        0 => {}
        1 => notes.add_sentence("The content of 1 attachment is missing, because the export does not contain it."),
        count => notes.add_sentence(format!(
            "The contents of {count} attachments are missing, because the export does not contain them."
        )),
    }
}
