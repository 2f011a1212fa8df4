//! Imports conversations of other programs, and of jaato's own export. Reads only.
//!
//! A reader per program turns its records into pieces of a conversation, and [`assemble`] turns
//! these into messages that jaato accepts as a history. [`ImportNotes`] collects what could not be
//! carried over. The formats of other programs change without notice, so a reader takes the fields
//! that it needs, skips records that it does not know, and reports it.
//!
//! Invariants: nothing is written next to a source. Bad input is an error or a note.
//!
//! [`assemble`]: assemble::assemble_messages
//! [`ImportNotes`]: notes::ImportNotes

mod assemble;
mod claude_code;
mod claude_message;
mod codex;
mod content;
mod detect;
mod error;
mod find;
mod goose;
mod goose_database;
mod history_check;
mod jaato;
mod json_line;
mod notes;
mod pi;
mod source;

use std::path::Path;

pub use detect::detect_source;
pub use error::ImportError;
pub use find::{FoundSession, find_sessions};
pub use json_line::IMPORT_BYTES_MAX;
pub use source::ImportSource;

use assemble::{TimedPiece, assemble_messages};
use notes::ImportNotes;

use crate::export::Transcript;

/// An imported session.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSession {
    /// The conversation. Its messages are a valid history.
    pub transcript: Transcript,
    /// The omissions and repairs, as sentences for the user.
    pub notes: Vec<String>,
}

/// Imports a session from a file. `id` selects one if the file has several, as goose's database
/// does. The other sources ignore it.
///
/// # Errors
/// If the file cannot be read, is not a session of the source, or has no messages.
pub fn import_file(
    source: ImportSource,
    path: &Path,
    id: Option<&str>,
) -> Result<ImportedSession, ImportError> {
    let mut notes = ImportNotes::default();
    let foreign = match source {
        ImportSource::Jaato => return jaato::import_transcript(path),
        ImportSource::ClaudeCode => claude_code::read_claude_session(path, &mut notes),
        ImportSource::Codex => codex::read_codex_session(path, &mut notes),
        ImportSource::Goose => goose::read_goose_session(path, id, &mut notes),
        ImportSource::Pi => pi::read_pi_session(path, &mut notes),
    }?;
    let ForeignSession { mut transcript, pieces } = foreign;
    transcript.messages = assemble_messages(pieces, &mut notes);
    if transcript.messages.is_empty() {
        return Err(ImportError::NoMessages(path.to_owned()));
    }
    if transcript.name.is_empty() {
        transcript.name = transcript_name(&transcript);
    }
    Ok(ImportedSession { transcript, notes: notes.into_sentences() })
}

/// A session as a reader returns it.
struct ForeignSession {
    /// Without messages.
    transcript: Transcript,
    pieces: Vec<TimedPiece>,
}

/// Names a session after its first prompt.
fn transcript_name(transcript: &Transcript) -> String {
    let prompt = transcript.messages.iter().find(|it| it.message.is_prompt());
    prompt.map(|it| short_title(&it.message.text())).unwrap_or_default()
}

/// Shortens a prompt to a title.
fn short_title(prompt: &str) -> String {
    /// The most characters of a title: they fit in a line of a list.
    const TITLE_CHARS_MAX: usize = 80;
    let prompt = jaato_types::text::one_line(prompt);
    jaato_types::text::truncate_chars(&prompt, TITLE_CHARS_MAX)
}
