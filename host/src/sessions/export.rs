//! `jaato session export`: the conversation as a document.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use clap::ValueEnum;
use jaato_runtime::sessions::{to_html_with_blobs, to_json_lines, to_markdown};
use jaato_runtime::types::SessionId;

use super::conversation::SavedConversation;
use super::{Sessions, failure, show};
use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;
use crate::terminal::{self, Channel};

/// The format of an exported conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportForm {
    /// Markdown, for readers
    Markdown,
    /// JSON lines, with everything that `jaato session import` reads
    Json,
    /// One HTML page that needs no other file
    Html,
}

impl ExportForm {
    /// Returns the format that a file's name asks for. Markdown is the default.
    fn of_file(file: &Path) -> Self {
        match file.extension().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Self::Html,
            Some("json" | "jsonl" | "ndjson") => Self::Json,
            _ => Self::Markdown,
        }
    }
}

/// Writes the conversation of a session to a new file, or to standard output.
pub fn export(
    global: GlobalArgs,
    text: &str,
    form: Option<ExportForm>,
    file: Option<&Path>,
) -> CommandResult {
    let sessions = Sessions::of_user(global)?;
    let id = sessions.find(text)?;
    match file {
        Some(file) => write_file(&sessions, &id, form, file)?,
        None => print_document(&document(&sessions, &id, form.unwrap_or(ExportForm::Markdown))?)?,
    }
    Ok(Exit::Done)
}

/// Writes the conversation of a session to a new file, in the format that its name asks for unless
/// another one is given.
///
/// # Errors
/// If the session cannot be read, or the file exists or cannot be written.
pub(super) fn write_file(
    sessions: &Sessions,
    id: &SessionId,
    form: Option<ExportForm>,
    file: &Path,
) -> Result<(), CommandFailure> {
    let form = form.unwrap_or_else(|| ExportForm::of_file(file));
    write_new(file, document(sessions, id, form)?.as_bytes())?;
    report::remark(&format!("wrote `{}`", file.display()));
    Ok(())
}

/// Returns the conversation of a session as a document.
fn document(
    sessions: &Sessions,
    id: &SessionId,
    form: ExportForm,
) -> Result<String, CommandFailure> {
    let mut reader = sessions.store.read(id).map_err(failure)?;
    let conversation = SavedConversation::of(reader.read_rest().map_err(failure)?);
    report::problems(&show::problems_of(&reader, &conversation));
    let transcript = conversation.transcript(id, &reader);
    // A content that cannot be read is missing in the page, which says so.
    let blob = |name: &str| sessions.store.attachment(id, name).ok().flatten();
    Ok(match form {
        ExportForm::Markdown => to_markdown(&transcript),
        ExportForm::Json => to_json_lines(&transcript),
        ExportForm::Html => to_html_with_blobs(&transcript, &blob),
    })
}

fn write_new(file: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    let shown = file.display();
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut created| created.write_all(bytes));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            CommandFailure::new(Exit::Usage, format!("`{shown}` exists already"))
                .hint("give another name, or remove it first")
        }
        _ => CommandFailure::new(Exit::Failed, format!("cannot write `{shown}`: {error}")),
    })
}

fn print_document(document: &str) -> Result<(), CommandFailure> {
    // A program gets each byte. The exporters have removed what could control a terminal, except
    // from JSON, which must not change its meaning.
    let written = match terminal::output_is_terminal() {
        true => terminal::print(document),
        false => terminal::pass(Channel::Output, document.as_bytes()),
    };
    written.map_err(|error| {
        report::unwritable(error).unwrap_or_else(|| CommandFailure::new(Exit::Failed, ""))
    })
}
