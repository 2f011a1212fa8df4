//! `jaato session import`: conversations from jaato's own export and from other programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use jaato_runtime::session_loop::{HistoryEntry, MessageMark};
use jaato_runtime::sessions::{
    FoundSession, ImportSource, ImportedSession, SessionRecord, SessionStoreError, Transcript,
    TranscriptMessage, detect_source, find_sessions, foreign_session_id, import_file, record_type,
    transcript_note,
};
use jaato_runtime::types::ModelId;
use jaato_runtime::{Runtime, visible};
use serde_json::json;

use super::time::format_age;
use super::{SavedSessions, store_failure};
use crate::args::GlobalArgs;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::{report, start};

/// Fewest characters of a part of an id.
const PART_CHARS_MIN: usize = 4;

/// What `session import` takes.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The files, or the ids of sessions in the list; with --from, defaults to all sessions of
    /// that program in this workspace
    #[arg(value_name = "FILE|ID")]
    pub sessions: Vec<String>,

    /// The program that wrote the sessions: `jaato`, `claude-code`, `codex`, `goose` or `pi`;
    /// defaults to what the file looks like
    #[arg(long, value_name = "NAME", value_parser = parse_source)]
    pub from: Option<ImportSource>,

    /// List or import the sessions of all workspaces
    #[arg(long)]
    pub all: bool,
}

/// A session to import.
struct SessionFile {
    source: ImportSource,
    path: PathBuf,
    /// Which one, if the file has several.
    id: Option<String>,
}

fn parse_source(name: &str) -> Result<ImportSource, String> {
    name.parse().map_err(|error: jaato_runtime::sessions::ImportError| error.to_string())
}

/// Imports sessions, or lists those that can be imported.
pub async fn import_sessions(global: GlobalArgs, args: &ImportArgs) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let sessions = SavedSessions::from_setup(&setup)?;
    let here = |found: &FoundSession| args.all || found.workspace == sessions.workspace;
    let files = match (&args.sessions[..], args.from) {
        ([], None) => {
            return print_found_sessions(
                &find_foreign_sessions(None).into_iter().filter(here).collect::<Vec<_>>(),
            );
        }
        ([], from) => {
            let found = find_foreign_sessions(from).into_iter().filter(here).map(SessionFile::from);
            let files: Vec<_> = found.collect();
            if files.is_empty() {
                return Err(nothing_found_failure(args));
            }
            files
        }
        (named, from) => named
            .iter()
            .map(|text| resolve_named_file(text, from))
            .collect::<Result<Vec<_>, _>>()?,
    };
    // The providers know the user's keys.
    let runtime = start::start_runtime_with(setup).await;
    runtime.providers();
    let mut exit = Exit::Done;
    for file in &files {
        if let Err(failure) = import_one(&sessions, file, &runtime) {
            report::print_failure(&failure);
            exit = exit.worse_of(failure.exit);
        }
    }
    start::close_runtime(runtime).await;
    Ok(exit)
}

fn nothing_found_failure(args: &ImportArgs) -> CommandFailure {
    let program = args.from.map_or("other programs", ImportSource::name);
    if args.from == Some(ImportSource::Jaato) {
        return CommandFailure::new(Exit::Usage, "give the file that `jaato session export` wrote");
    }
    match args.all {
        true => CommandFailure::new(Exit::Failed, format!("no session of {program} was found")),
        false => {
            let text = format!("no session of {program} in this workspace was found");
            CommandFailure::new(Exit::Failed, text)
                .hint("`--all` imports sessions from all workspaces")
        }
    }
}

/// Finds the sessions of one program, or of all.
fn find_foreign_sessions(from: Option<ImportSource>) -> Vec<FoundSession> {
    // Without a home folder there are no folders of other programs.
    let Some(home) = std::env::home_dir() else { return Vec::new() };
    let variable = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    let sources =
        ImportSource::ALL.into_iter().filter(|source| from.is_none_or(|it| it == *source));
    let mut found: Vec<FoundSession> =
        sources.flat_map(|source| find_sessions(source, &home, &variable)).collect();
    found.sort_by_key(|session| std::cmp::Reverse(session.changed_ms));
    found
}

fn print_found_sessions(found: &[FoundSession]) -> CommandResult {
    if found.is_empty() {
        report::print_line(
            "no sessions of Claude Code, Codex, goose or pi in this workspace; `--all` looks for \
             those of others",
        )?;
        return Ok(Exit::Done);
    }
    let row = |session: &FoundSession| {
        let texts = [&session.id, &session.title, &session.workspace];
        let [id, title, workspace] = texts.map(|text| visible::visible_name(text).into_owned());
        vec![session.source.name().to_owned(), id, format_age(session.changed_ms), title, workspace]
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    report::print_table(&["program", "id", "changed", "title", "workspace"], &rows)?;
    report::print_remark(
        "`jaato session import ID` imports one, `--from PROGRAM` all of a program",
    );
    Ok(Exit::Done)
}

impl From<FoundSession> for SessionFile {
    fn from(found: FoundSession) -> Self {
        Self { source: found.source, path: found.path, id: Some(found.id) }
    }
}

/// Finds the session that the user typed: a file, or else an id or a part of one.
fn resolve_named_file(
    text: &str,
    from: Option<ImportSource>,
) -> Result<SessionFile, CommandFailure> {
    let path = Path::new(text);
    if path.exists() {
        let source = from.or_else(|| detect_source(path)).ok_or_else(|| {
            let text =
                format!("`{}` is not a session of a known program", visible::visible_name(text));
            CommandFailure::new(Exit::Failed, text).hint("name its program with `--from`")
        })?;
        return Ok(SessionFile { source, path: path.to_owned(), id: None });
    }
    let found = find_foreign_sessions(from);
    let is_part = text.chars().count() >= PART_CHARS_MIN;
    let fits = |session: &FoundSession| session.id == text;
    let begins = |session: &FoundSession| is_part && session.id.starts_with(text);
    let exact: Vec<_> = found.iter().filter(|session| fits(session)).collect();
    let fitting = match exact.is_empty() {
        true => found.iter().filter(|session| begins(session)).collect(),
        false => exact,
    };
    match fitting[..] {
        [one] => Ok(SessionFile::from(one.clone())),
        [] => {
            let text = format!("there is no file and no session `{text}`");
            Err(CommandFailure::new(Exit::Usage, text)
                .hint("`jaato session import --all` lists the sessions of other programs"))
        }
        ref several => {
            let text = format!("`{text}` matches {} sessions", several.len());
            Err(CommandFailure::new(Exit::Usage, text).hint("give the full id, or add --from"))
        }
    }
}

fn import_one(
    sessions: &SavedSessions,
    file: &SessionFile,
    runtime: &Runtime,
) -> Result<(), CommandFailure> {
    let imported = import_file(file.source, &file.path, file.id.as_deref());
    let ImportedSession { mut transcript, notes } =
        imported.map_err(|error| CommandFailure::new(Exit::Failed, error))?;
    let first_ms = transcript.messages.first().map_or(0, |first| first.at_ms);
    if transcript.begun_ms == 0 {
        transcript.begun_ms = first_ms;
    }
    if transcript.workspace.is_empty() {
        transcript.workspace.clone_from(&sessions.workspace);
    }
    let id = match file.source {
        ImportSource::Jaato => transcript.id.clone(),
        ImportSource::ClaudeCode | ImportSource::Codex | ImportSource::Goose | ImportSource::Pi => {
            foreign_session_id(file.source.name(), &transcript.id, transcript.begun_ms)
        }
    };
    let mut records = session_records(&transcript);
    records.iter_mut().for_each(|(_, record)| runtime.clean_record(record));
    let count = transcript.messages.len();
    match sessions.store.add_session(&id, &transcript, records) {
        Err(SessionStoreError::AlreadyExists(_)) => {
            let text = format!("session `{id}` already exists, so it was not imported again");
            return Err(CommandFailure::new(Exit::Failed, text)
                .hint(format!("to replace it, run `jaato session delete {id}` first")));
        }
        added => added.map_err(store_failure)?,
    }
    let name = visible::visible_name(&transcript.name).into_owned();
    report::print_line(&format!("imported session {id} ({count} messages): {name}"))?;
    if transcript.workspace != sessions.workspace {
        let workspace = visible::visible_name(&transcript.workspace).into_owned();
        report::print_remark(&format!("{id} belongs to `{workspace}`: continue it in that folder"));
    }
    report::print_problems(&notes.iter().map(|note| format!("{id}: {note}")).collect::<Vec<_>>());
    Ok(())
}

fn session_records(transcript: &Transcript) -> Vec<(i64, SessionRecord)> {
    let record = |it: &TranscriptMessage| {
        // Its maps have text keys.
        let data = serde_json::to_value(history_entry(it)).unwrap_or_default();
        (it.at_ms, SessionRecord::new(record_type::MESSAGE, data))
    };
    let mut records: Vec<_> = transcript.messages.iter().map(record).collect();
    let last_ms = records.last().map_or(transcript.begun_ms, |(at_ms, _)| *at_ms);
    if !transcript.name.is_empty() {
        let name = json!({ "name": transcript.name });
        records.push((last_ms, SessionRecord::new(record_type::NAME, name)));
    }
    records
}

fn history_entry(message: &TranscriptMessage) -> HistoryEntry {
    let mark = match message.note.as_deref() {
        Some(transcript_note::NOT_SENT) => Some(MessageMark::Unsent),
        Some(transcript_note::BROKE_OFF) => Some(MessageMark::Partial),
        Some(transcript_note::COLLECTED) => Some(MessageMark::Collected),
        Some(_) | None => None,
    };
    let made_by = message.model.as_deref().map(ModelId::new);
    HistoryEntry { message: message.message.clone(), mark, made_by, ..HistoryEntry::default() }
}
