//! Recognises the program that wrote a file by its content.

use std::path::Path;

use super::ImportSource;
use super::goose::read_head;
use super::goose_database::{GooseDatabase, SQLITE_START};
use super::json_line::{JsonLines, JsonObject, SourceLine, text_field};
use crate::export::TRANSCRIPT_FORMAT;

/// The most lines that are looked at. Each source shows itself in its first records.
const LINES_MAX: usize = 50;

/// Recognises the program that wrote a file by its content. Returns `None` if the file cannot be
/// read, or is of no known program.
pub fn detect_source(path: &Path) -> Option<ImportSource> {
    if read_head(path).ok()?.starts_with(SQLITE_START) {
        let columns = GooseDatabase::open(path).ok()?.table_columns("messages").ok()?;
        return columns.iter().any(|it| it == "content_json").then_some(ImportSource::Goose);
    }
    let mut lines = JsonLines::open(path).ok()?;
    let mut begins_object = false;
    for number in 0..LINES_MAX {
        match lines.next_line().ok()? {
            Some((_, SourceLine::Object(record))) => {
                if let Some(source) = record_source(&record) {
                    return Some(source);
                }
            }
            Some((_, SourceLine::Damaged)) => begins_object |= number == 0,
            None => break,
        }
    }
    // Only goose's export is one object with line breaks.
    let is_export = || super::goose::is_multiline_export(path);
    (begins_object && is_export()).then_some(ImportSource::Goose)
}

fn record_source(record: &JsonObject) -> Option<ImportSource> {
    let has = |name: &str| record.contains_key(name);
    let kind = text_field(record, "type");
    if text_field(record, "format") == TRANSCRIPT_FORMAT {
        Some(ImportSource::Jaato)
    } else if kind == "session" && has("id") && (has("cwd") || has("version")) {
        Some(ImportSource::Pi)
    } else if kind == "session_meta" || (has("timestamp") && has("payload")) {
        Some(ImportSource::Codex)
    } else if (has("sessionId") && has("type")) || (kind == "summary" && has("leafUuid")) {
        Some(ImportSource::ClaudeCode)
    } else if has("working_dir") {
        Some(ImportSource::Goose)
    } else if !has("type") && has("id") && has("timestamp") {
        // The header of Codex's older files.
        Some(ImportSource::Codex)
    } else {
        None
    }
}
