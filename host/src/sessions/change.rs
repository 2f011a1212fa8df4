//! `jaato session rename`, `delete`, `rewind`, `fork` and `reindex`.

use std::sync::Arc;

use jaato_runtime::session_loop::Cancel;
use jaato_runtime::sessions::{
    Durability, NumberedPrompt, SessionIndex, SessionRecord, record_type,
};
use jaato_runtime::types::SessionId;
use jaato_runtime::{Runtime, SessionOptions, visible};
use serde_json::json;

use super::conversation::SavedConversation;
use super::{SavedSessions, report_problems, resume, store_failure};
use crate::args::{GlobalArgs, OutputForm};
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{report, start, terminal};

/// The most sessions that a question names.
const NAMED_MAX: usize = 5;

/// Gives a session a name.
pub fn rename_session(global: GlobalArgs, text: &str, name: &[String]) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let name = name.join(" ");
    if name.trim().is_empty() {
        return Err(CommandFailure::new(Exit::Usage, "the name of a session cannot be empty"));
    }
    let id = sessions.find(text)?;
    let mut opened = sessions.store.open_session(&id, false).map_err(store_failure)?;
    let record = SessionRecord::new(record_type::NAME, json!({ "name": name.trim() }));
    opened.writer.append_records([record], Durability::Synced).map_err(store_failure)?;
    report::print_line(&format!("session {id} is named `{}`", visible::visible_name(name.trim())))?;
    Ok(Exit::Done)
}

/// Deletes sessions with those of their agents, after the user has agreed.
pub async fn delete_sessions(
    global: GlobalArgs,
    texts: &[String],
    is_agreed: bool,
) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let index = sessions.open_index()?;
    let mut ids: Vec<SessionId> = Vec::new();
    for text in texts {
        let id = sessions.find(text)?;
        let below = index.as_ref().map(|index| index.opened_descendants(id.as_str()));
        let agents = below.transpose().map_err(store_failure)?.unwrap_or_default();
        let agents = agents.into_iter().map(|(_, agent)| SessionId::new(agent.id));
        for id in std::iter::once(id).chain(agents) {
            sessions.store.check_can_open(&id).or_else(allow_unreadable).map_err(store_failure)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    if !is_agreed && !confirm_deletion(&sessions, &ids).await? {
        return Err(CommandFailure::new(Exit::Cancelled, "nothing was deleted"));
    }
    for id in ids {
        sessions.store.delete_session(&id).map_err(store_failure)?;
        report::print_line(&format!("deleted session {id}"))?;
    }
    Ok(Exit::Done)
}

/// A damaged session, one of a newer version, or one whose file is a link or a pipe can be deleted
/// too.
fn allow_unreadable(
    error: jaato_runtime::sessions::SessionStoreError,
) -> Result<(), jaato_runtime::sessions::SessionStoreError> {
    use jaato_runtime::sessions::SessionStoreError::{NewerFormat, NotASession, Place};
    match error {
        NotASession(_) | NewerFormat { .. } | Place(_) => Ok(()),
        error => Err(error),
    }
}

/// Asks whether sessions should be deleted.
async fn confirm_deletion(
    sessions: &SavedSessions,
    ids: &[SessionId],
) -> Result<bool, CommandFailure> {
    if !terminal::can_choose() {
        let text = "deleting sessions needs `--yes`, because no user can be asked";
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    let title = match ids {
        [_] => "Delete this session with its attachments?".to_owned(),
        several => format!("Delete these {} sessions with their attachments?", several.len()),
    };
    let named = ids.iter().take(NAMED_MAX).map(|id| describe_session(sessions, id));
    let rest = ids.len().saturating_sub(NAMED_MAX);
    let rest = (rest > 0).then(|| format!("and {rest} more"));
    terminal::confirm(&title, named.chain(rest), "✓ delete").await
}

/// Names a session with its beginning.
fn describe_session(sessions: &SavedSessions, id: &SessionId) -> String {
    let read = sessions.store.read_session(id).and_then(|mut reader| reader.read_rest());
    // A session that cannot be read has no name.
    let name =
        read.map(|records| SavedConversation::from_records(records).name()).unwrap_or_default();
    format!("{id}  {}", visible::visible_name(&name))
}

/// Takes back a message of the user and everything after it.
pub async fn rewind_session(
    global: GlobalArgs,
    text: &str,
    number: u64,
    files: bool,
) -> CommandResult {
    let setup = start::read_setup(start::setup_arguments(global))?;
    let sessions = SavedSessions::from_setup(&setup)?;
    let id = sessions.find(text)?;
    // No other process continues the session while its files are restored.
    let opened = sessions.store.open_rewind(&id, number).map_err(store_failure)?;
    if files {
        let runtime = start::start_runtime_with(setup).await;
        let undone = undo_files(&runtime, &id, opened.prompt()).await;
        start::close_runtime(runtime).await;
        undone?;
    }
    opened.finish().map_err(store_failure)?;
    report::print_line(&format!("took back message {number} and everything after it"))?;
    report::print_remark(&format!("`jaato chat --resume {id}` continues the session"));
    Ok(Exit::Done)
}

/// Takes back what the file tools changed since a message of a session.
async fn undo_files(
    runtime: &Runtime,
    id: &SessionId,
    prompt: &NumberedPrompt,
) -> Result<(), CommandFailure> {
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    let options = SessionOptions::unattended(Arc::clone(&view) as _);
    let mut session = runtime.open_session_for_calls(options)?;
    let undone = resume::undo_files_since(runtime, &mut session, id, prompt, &cancel).await;
    runtime.close_session(session.id()).await;
    view.finish(&cancel).await?;
    undone
}

/// Copies a session, and prints the id of the copy.
pub fn fork_session(global: GlobalArgs, text: &str, before: Option<u64>) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    let id = sessions.find(text)?;
    report::print_line(sessions.fork(&id, before)?.as_str())?;
    Ok(Exit::Done)
}

/// Makes the index of all sessions again.
pub fn rebuild_index(global: GlobalArgs) -> CommandResult {
    let sessions = SavedSessions::for_user(global)?;
    if !sessions.store.folder().exists() {
        report::print_line("no saved sessions yet: `jaato chat` starts one")?;
        return Ok(Exit::Done);
    }
    let (_, count, problems) = SessionIndex::rebuild(&sessions.store).map_err(store_failure)?;
    report_problems(&problems);
    report::print_line(&match count {
        1 => "indexed 1 session".to_owned(),
        count => format!("indexed {count} sessions"),
    })?;
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Failed })
}
