//! `jaato session export` and `trace`: the conversation as a document or as a sequence diagram.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use clap::ValueEnum;
use jaato_runtime::sessions::{
    AgentTranscript, Transcript, message_blobs, to_html_with_blobs, to_json_lines, to_markdown,
    to_mermaid, to_plantuml, to_sequence_json,
};
use jaato_runtime::types::{Part, SessionId};

use super::conversation::SavedConversation;
use super::{SavedSessions, show, store_failure};
use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;
use crate::terminal::{self, Channel};

/// The most bytes of attachments in JSON lines, without the size of their encoding. An import holds
/// all of them in memory.
const ATTACHMENTS_BYTES_MAX: u64 = 64 * 1024 * 1024;

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

/// The format of a sequence diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TraceForm {
    /// The source of a Mermaid diagram, for Markdown pages
    Mermaid,
    /// The source of a PlantUML diagram
    Plantuml,
    /// The steps as one JSON object, with their whole texts
    Json,
}

impl ExportForm {
    /// Returns the format that a file's name asks for. Markdown is the default.
    fn from_file_name(file: &Path) -> Self {
        match file.extension().and_then(|end| end.to_str()) {
            Some("html" | "htm") => Self::Html,
            Some("json" | "jsonl" | "ndjson") => Self::Json,
            _ => Self::Markdown,
        }
    }
}

/// Writes the conversation of a session to a new file, or to standard output.
pub fn export_session(
    global: GlobalArgs,
    text: &str,
    form: Option<ExportForm>,
    file: Option<&Path>,
) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let id = sessions.find(text)?;
    match file {
        Some(file) => write_file(&sessions, &id, form, file)?,
        None => {
            print_document(&export_document(&sessions, &id, form.unwrap_or(ExportForm::Markdown))?)?
        }
    }
    Ok(Exit::Done)
}

/// Writes the conversation of a session to a new file, in the format that its name asks for unless
/// another one is given.
///
/// # Errors
/// If the session cannot be read, or the file exists or cannot be written.
pub(super) fn write_file(
    sessions: &SavedSessions,
    id: &SessionId,
    form: Option<ExportForm>,
    file: &Path,
) -> Result<(), CommandFailure> {
    let form = form.unwrap_or_else(|| ExportForm::from_file_name(file));
    write_new(file, export_document(sessions, id, form)?.as_bytes())?;
    report::print_remark(&format!("wrote `{}`", file.display()));
    Ok(())
}

/// Returns the conversation of a session as a document.
fn export_document(
    sessions: &SavedSessions,
    id: &SessionId,
    form: ExportForm,
) -> Result<String, CommandFailure> {
    let mut transcript = read_transcript(sessions, id)?;
    // A content that cannot be read is missing in the page, which says so.
    let blob = |name: &str| sessions.store.read_attachment(id, name).ok().flatten();
    Ok(match form {
        ExportForm::Markdown => to_markdown(&transcript),
        ExportForm::Json => {
            add_attachments(&mut transcript, sessions, id);
            to_json_lines(&transcript)
        }
        ExportForm::Html => to_html_with_blobs(&transcript, &blob),
    })
}

/// Prints the sequence diagram of a session with its agents.
pub fn export_trace(global: GlobalArgs, text: &str, form: TraceForm) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let id = sessions.find(text)?;
    let transcript = read_transcript(&sessions, &id)?;
    let agents = read_agents(&sessions, &id)?;
    match form {
        TraceForm::Mermaid => print_document(&to_mermaid(&transcript, &agents))?,
        TraceForm::Plantuml => print_document(&to_plantuml(&transcript, &agents))?,
        TraceForm::Json => return report::print_json(&to_sequence_json(&transcript, &agents)),
    }
    Ok(Exit::Done)
}

/// Reads the conversations of all agents below a session.
fn read_agents(
    sessions: &SavedSessions,
    id: &SessionId,
) -> Result<Vec<AgentTranscript>, CommandFailure> {
    let Some(index) = sessions.open_index()? else { return Ok(Vec::new()) };
    let below = index.opened_descendants(id.as_str()).map_err(store_failure)?;
    let mut agents = Vec::with_capacity(below.len());
    for (_, session) in below {
        let Some(opener) = session.opener else { continue };
        agents.push(AgentTranscript {
            agent: opener.agent,
            opener: SessionId::new(opener.session),
            transcript: read_transcript(sessions, &SessionId::new(session.id))?,
        });
    }
    Ok(agents)
}

/// Reads the conversation of a session, and reports its problems.
fn read_transcript(sessions: &SavedSessions, id: &SessionId) -> Result<Transcript, CommandFailure> {
    let mut reader = sessions.store.read_session(id).map_err(store_failure)?;
    let conversation = SavedConversation::from_records(reader.read_rest().map_err(store_failure)?);
    report::print_problems(&show::session_problems(&reader, &conversation));
    Ok(conversation.to_transcript(id, &reader))
}

/// Adds the contents to which the messages refer, and says which ones are left out.
fn add_attachments(transcript: &mut Transcript, sessions: &SavedSessions, id: &SessionId) {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for message in transcript.messages.iter().map(|it| &it.message) {
        names.extend(message_blobs(message).filter_map(|data| data.blob_id().map(str::to_owned)));
        let results = message.parts.iter().filter_map(Part::as_tool_result);
        // Maps have text keys, so this cannot fail.
        let texts = results.map(|it| serde_json::to_string(&it.content).unwrap_or_default());
        for text in texts {
            let named = sessions.store.named_outputs(id, &text);
            names.extend(named.into_iter().map(str::to_owned));
        }
    }
    let (mut bytes, mut left_out) = (0, Vec::new());
    for name in names {
        let length = fs::metadata(sessions.store.attachments_folder(id).join(&name));
        let all = bytes + length.map_or(0, |found| found.len());
        let fits = all <= ATTACHMENTS_BYTES_MAX;
        // A content that cannot be read is missing.
        let content = if fits { sessions.store.read_attachment(id, &name) } else { Ok(None) };
        match content.ok().flatten() {
            None => left_out.push(name),
            Some(content) => {
                bytes = all;
                transcript.attachments.insert(name, content);
            }
        }
    }
    if !transcript.attachments.is_empty() {
        transcript.attachments_folder = sessions.store.attachments_folder(id).display().to_string();
    }
    if !left_out.is_empty() {
        let count = left_out.len();
        let most = ATTACHMENTS_BYTES_MAX / (1024 * 1024);
        report::print_problems(&[format!(
            "left out {count} attachments that are missing, or exceed {most} MiB together: {}",
            left_out.join(", ")
        )]);
    }
}

fn write_new(file: &Path, bytes: &[u8]) -> Result<(), CommandFailure> {
    let shown = file.display();
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let written = created.and_then(|mut created| created.write_all(bytes));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            CommandFailure::new(Exit::Usage, format!("`{shown}` already exists"))
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
        report::output_failure(error).unwrap_or_else(|| CommandFailure::new(Exit::Failed, ""))
    })
}
