//! Chooses the saved session that `run` or `chat` continues, and shows where it stopped.

use std::path::Path;

use jaato_runtime::policy::PolicyMode;
use jaato_runtime::saved::{LoadedSession, OpenSession, SaveMode, read_last_state};
use jaato_runtime::session_loop::{Cancel, SavedState, Session, SessionUsage};
use jaato_runtime::sessions::{IndexedSession, NumberedPrompt};
use jaato_runtime::types::{Role, SessionId};
use jaato_runtime::{Runtime, Setup, SetupArguments, visible};
use serde_json::{Value, json};

use crate::args::{EnvironmentArgs, SavingArgs, SessionArgs};
use crate::chat::slash;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::report;
use crate::terminal::{self, Dialog, Look, Text};

use super::export::write_file;
use super::list::session_name;
use super::{SavedSessions, store_failure, time};

/// How many sessions the question offers.
const OFFERED_MAX: u32 = 9;

/// Columns of a message's number in a list.
const NUMBER_COLUMNS: usize = 6;

/// The end of a conversation that is shown when it continues, in lines.
const SHOWN_LINES_MAX: usize = 12;

/// The conversation of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// A saved one.
    Saved(SessionId),
}

impl SessionChoice {
    /// Returns the choice that continues a session, or a new one if it is not saved.
    pub fn from_session(session: &Session) -> Self {
        saved_id(session).map_or(Self::New, Self::Saved)
    }
}

/// Returns the session that the command line asks for.
///
/// # Errors
/// If there is no such session, or the user chooses none.
pub async fn choose_session(
    setup: &Setup,
    args: &SavingArgs,
) -> Result<SessionChoice, CommandFailure> {
    match &args.resume {
        Some(Some(id)) if !id.is_empty() => {
            SavedSessions::from_setup(setup)?.find(id).map(SessionChoice::Saved)
        }
        Some(_) => ask_for_session(setup).await.map(SessionChoice::Saved),
        None if args.newest => newest_session(setup).map(SessionChoice::Saved),
        None => Ok(SessionChoice::New),
    }
}

fn newest_session(setup: &Setup) -> Result<SessionId, CommandFailure> {
    let newest = choose_from_list(setup, 1)?.pop();
    newest.map(|newest| SessionId::new(newest.id)).ok_or_else(no_session_failure)
}

fn no_session_failure() -> CommandFailure {
    CommandFailure::new(Exit::Failed, "this workspace has no saved session")
        .hint("`jaato session list --all` lists sessions from other workspaces")
}

fn choose_from_list(setup: &Setup, limit: u32) -> Result<Vec<IndexedSession>, CommandFailure> {
    let sessions = SavedSessions::from_setup(setup)?;
    let Some(index) = sessions.open_index()? else { return Ok(Vec::new()) };
    index.list_sessions(Some(&sessions.workspace), limit).map_err(store_failure)
}

/// Asks which of the newest sessions continues.
///
/// # Errors
/// Without a terminal, or if the user chooses none.
async fn ask_for_session(setup: &Setup) -> Result<SessionId, CommandFailure> {
    if !terminal::can_choose() {
        let text = "`--resume` needs the id of a session, because no user can be asked";
        return Err(CommandFailure::new(Exit::Usage, text)
            .hint("`jaato session list` lists them; `--continue` takes the newest"));
    }
    let mut offered = choose_from_list(setup, OFFERED_MAX)?;
    if offered.is_empty() {
        return Err(no_session_failure());
    }
    let rows = offered.iter().map(session_line);
    let answers = rows.chain(["none".to_owned()]).collect();
    let dialog = Dialog::choice("Which session should continue?", answers);
    let folded = |at: usize| {
        let name = visible::visible_name(&offered[at].name);
        Text::new().with(Look::Green, "✓ session: ").plain(&name)
    };
    match terminal::choose(dialog, folded).await?.flatten() {
        Some(at) => Ok(SessionId::new(offered.swap_remove(at).id)),
        None => Err(CommandFailure::new(Exit::Cancelled, "no session was chosen")),
    }
}

/// Lets a saved session continue where it ran: in its environment, unless the user chooses one, and
/// in its working folder, if it is in this workspace. Returns true if that changes the arguments.
///
/// # Errors
/// If the session cannot be read.
pub fn return_to_place(
    choice: &SessionChoice,
    setup: &Setup,
    args: &EnvironmentArgs,
    arguments: &mut SetupArguments,
) -> Result<bool, CommandFailure> {
    let SessionChoice::Saved(id) = choice else { return Ok(false) };
    let sessions = SavedSessions::from_setup(setup)?;
    let mut reader = sessions.store.read_session(id).map_err(store_failure)?;
    let SavedState { environment, folder, .. } =
        read_last_state(&mut reader).map_err(store_failure)?;
    let before = (arguments.overrides.environment.clone(), arguments.folder.clone());
    let is_chosen = args.has_environment_name();
    if !is_chosen && !environment.is_empty() && environment != setup.config.environment {
        let named = visible::visible_name(&environment);
        report::print_remark(&format!(
            "the session continues in environment `{named}`, where it ran"
        ));
        arguments.overrides.environment = Some(environment);
    }
    let is_own = reader.header().workspace == sessions.workspace;
    if let Some(folder) = folder.filter(|_| is_own) {
        let workspace = &setup.workspace;
        // The folder in another program's session file may be outside the workspace.
        let path = workspace.root().join(&folder).canonicalize().unwrap_or_default();
        let is_inside = path.is_dir() && path.starts_with(workspace.root());
        if is_inside && path != workspace.working_directory() {
            let shown =
                visible::visible_name(if folder.is_empty() { "." } else { &folder }).into_owned();
            report::print_remark(&format!(
                "the session works in folder `{shown}` of the workspace"
            ));
            keep_paths(arguments, workspace.working_directory());
            arguments.folder = Some(path);
        }
    }
    Ok(before != (arguments.overrides.environment.clone(), arguments.folder.clone()))
}

/// Makes the paths of the command line absolute, because they start at the folder in which the user
/// typed them.
pub fn keep_paths(arguments: &mut SetupArguments, typed_in: &Path) {
    let SetupArguments { plugin_dirs, config_file, env_file, .. } = arguments;
    for path in plugin_dirs.iter_mut().chain(config_file).chain(env_file) {
        *path = typed_in.join(&path);
    }
}

/// Opens the chosen session. Problems of its file are reported. A `model` comes before the one of
/// the command line.
///
/// # Errors
/// If it cannot be continued.
pub fn open_saving(
    runtime: &Runtime,
    choice: &SessionChoice,
    (args, saving): (&SessionArgs, &SavingArgs),
    model: Option<&str>,
) -> Result<SaveMode, CommandFailure> {
    match choice {
        SessionChoice::New if saving.no_save => Ok(SaveMode::Off),
        SessionChoice::New if !runtime.setup().config.sessions.save => Ok(SaveMode::Off),
        SessionChoice::New => Ok(match SavedSessions::from_runtime(runtime) {
            Ok(SavedSessions { store, workspace }) => {
                SaveMode::New { store, workspace, opener: None }
            }
            // Without a home folder, nothing of a user is kept.
            Err(_) => SaveMode::Off,
        }),
        SessionChoice::Saved(id) => {
            let mut opened = OpenSession::open(
                SavedSessions::from_runtime(runtime)?.store,
                id,
                saving.take_over,
            )
            .map_err(store_failure)?;
            if model.is_some() || args.model.is_some() {
                // It comes before the model that answered last.
                opened.model = model.map(str::to_owned);
            }
            check_environment(runtime, &args.environment, id, &opened.restored.state)?;
            report::print_problems(&opened.restored.problems);
            report::print_problems(other_workspace(runtime, &opened).as_slice());
            Ok(SaveMode::Continue(Box::new(opened)))
        }
    }
}

/// Returns true if a saved session has a message.
pub fn has_messages(runtime: &Runtime, id: &SessionId) -> bool {
    read_session(runtime, id).is_ok_and(|read| !read.restored.history.entries().is_empty())
}

/// Returns the usage of a saved session, or none if it cannot be read.
pub fn saved_usage(runtime: &Runtime, id: &SessionId) -> SessionUsage {
    let state = SavedSessions::from_runtime(runtime).and_then(|sessions| {
        let mut reader = sessions.store.read_session(id).map_err(store_failure)?;
        read_last_state(&mut reader).map_err(store_failure)
    });
    state.map(|state| state.usage).unwrap_or_default()
}

/// Reads a saved session, without claiming it.
///
/// # Errors
/// If it cannot be read.
pub fn read_session(runtime: &Runtime, id: &SessionId) -> Result<LoadedSession, CommandFailure> {
    LoadedSession::read(&SavedSessions::from_runtime(runtime)?.store, id).map_err(store_failure)
}

/// Says that a session belongs to another workspace, if it does.
fn other_workspace(runtime: &Runtime, opened: &OpenSession) -> Option<String> {
    let here = runtime.setup().workspace.root().display().to_string();
    (opened.workspace != here).then(|| {
        let there = visible::visible_name(&opened.workspace);
        format!("the session began in `{there}`, and its tools now work in `{here}`")
    })
}

/// Refuses to continue a session elsewhere than it ran, unless the user names the environment: its
/// commands may rely on a container.
fn check_environment(
    runtime: &Runtime,
    args: &EnvironmentArgs,
    id: &SessionId,
    state: &SavedState,
) -> Result<(), CommandFailure> {
    let (before, now) = (&state.environment, &runtime.setup().config.environment);
    if before.is_empty() || before == now || args.has_environment_name() {
        return Ok(());
    }
    let text = format!("session {id} last ran in environment `{before}`, but jaato uses `{now}`");
    let hint = format!("`jaato chat --resume {id}` without further options continues it there");
    Err(CommandFailure::new(Exit::Configuration, text).hint(hint))
}

/// The session that follows the one that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextSession {
    /// Another saved one.
    Saved(SessionId),
    /// The same one, without a message of the user and everything after it.
    Rewound { id: SessionId, number: u64 },
    /// A copy of it, up to a message of the user or to its end.
    Forked { id: SessionId, number: Option<u64> },
}

impl NextSession {
    /// Parses the words of `/rewind`, a number and perhaps `files`, and undoes edits for `files`.
    ///
    /// # Errors
    /// If they are other words, the session is not saved, or edits cannot be undone.
    pub async fn rewind(
        runtime: &Runtime,
        session: &mut Session,
        words: &str,
        cancel: &Cancel,
    ) -> Result<Self, CommandFailure> {
        let (number, files) = match words.split_once(char::is_whitespace) {
            Some((number, rest)) if rest.trim() == "files" => (number, true),
            Some(_) => return Err(usage_failure("rewind")),
            None => (words, false),
        };
        let number = number.parse().map_err(|_| usage_failure("rewind"))?;
        let id = saved_id(session)?;
        let prompt = SavedSessions::from_runtime(runtime)?
            .store
            .find_prompt(&id, number)
            .map_err(store_failure)?;
        if files {
            undo_files_since(runtime, session, &id, &prompt, cancel).await?;
        }
        Ok(Self::Rewound { id, number })
    }

    /// Parses the words of `/fork`: a number, or nothing.
    ///
    /// # Errors
    /// As [`NextSession::rewind`].
    pub fn fork(runtime: &Runtime, session: &Session, words: &str) -> Result<Self, CommandFailure> {
        let number = match words {
            "" => None,
            number => Some(number.parse().map_err(|_| usage_failure("fork"))?),
        };
        let id = saved_id(session)?;
        // An error keeps the session that runs.
        SavedSessions::from_runtime(runtime)?
            .store
            .last_seq_before(&id, number)
            .map_err(store_failure)?;
        Ok(Self::Forked { id, number })
    }

    /// Does it, after the session has ended. If it cannot be done, the old session continues.
    fn resolve_choice(self, runtime: &Runtime) -> Result<SessionChoice, CommandFailure> {
        let sessions = SavedSessions::from_runtime(runtime)?;
        let (id, done) = match self {
            Self::Saved(id) => return Ok(SessionChoice::Saved(id)),
            Self::Rewound { id, number } => {
                let done = sessions.store.rewind_before_prompt(&id, number);
                (id.clone(), done.map(|()| id).map_err(store_failure))
            }
            Self::Forked { id, number } => {
                let done = sessions.fork(&id, number);
                (id, done)
            }
        };
        Ok(SessionChoice::Saved(done.unwrap_or_else(|error| {
            report::print_failure(&error);
            id
        })))
    }
}

/// The change from one session of a chat to the next. The mode and the model of the session that
/// ended are newer than the command line.
pub struct SessionChange {
    /// The session that follows.
    pub next: SessionChoice,
    /// The session that ended.
    last: SessionChoice,
    mode: PolicyMode,
    model: String,
    /// Whether the next session has the same conversation, or a copy of it.
    is_same: bool,
}

impl SessionChange {
    /// Prepares the next session, after this one has ended.
    ///
    /// # Errors
    /// If no session has been saved.
    pub fn prepare_next(
        session: Session,
        next: NextSession,
        runtime: &Runtime,
    ) -> Result<Self, CommandFailure> {
        let (last, model) = (SessionChoice::from_session(&session), session.facts().model);
        let (mode, is_same) = (session.rules().lock().mode, !matches!(next, NextSession::Saved(_)));
        // Writes what is left to its file.
        drop(session);
        Ok(Self { next: next.resolve_choice(runtime)?, last, mode, model, is_same })
    }

    /// Continues the session that ended, because the next one cannot be opened. Returns `None` if
    /// it is the one that cannot be opened.
    pub fn previous(self) -> Option<Self> {
        let next = self.last.clone();
        (self.next != self.last).then_some(Self { next, is_same: true, ..self })
    }

    /// Returns the arguments of the next session, and the model that answers first. The same
    /// conversation, or a copy, has the mode and the model of the session that ended. Another
    /// session has its own, unless those of the command line still held.
    pub fn next_settings(
        &self,
        given: &SessionArgs,
        runtime: &Runtime,
    ) -> (SessionArgs, Option<String>) {
        let mut args = given.clone();
        if self.is_same {
            args.mode = Some(self.mode);
            return (args, Some(self.model.clone()));
        }
        args.mode = args.mode.filter(|mode| *mode == self.mode);
        let still_answers = runtime.model().as_str() == self.model;
        args.model = args.model.filter(|_| still_answers);
        args.environment = EnvironmentArgs::default();
        (args, None)
    }
}

/// Takes back what the file tools changed since a message of a session, and tells which files.
///
/// # Errors
/// If the plugin that edits files is missing or fails.
pub async fn undo_files_since(
    runtime: &Runtime,
    session: &mut Session,
    of: &SessionId,
    prompt: &NumberedPrompt,
    cancel: &Cancel,
) -> Result<(), CommandFailure> {
    // A copied session records the edits before the copy under the original session.
    let lineage = SavedSessions::from_runtime(runtime)?.store.lineage(of).map_err(store_failure)?;
    let period = |(session, until_ms)| json!({ "session": session, "until_ms": until_ms });
    let sessions: Vec<Value> = lineage.into_iter().map(period).collect();
    let arguments = json!({ "sessions": sessions, "at_ms": prompt.at_ms });
    let output = runtime.run_command(session, "undo_since", arguments, cancel).await?;
    let listed = |key: &str| -> Vec<String> {
        let texts = output.content.get(key).and_then(Value::as_array).into_iter().flatten();
        texts.filter_map(|it| Some(visible::visible_name(it.as_str()?).into_owned())).collect()
    };
    report::print_remark(&match listed("undone") {
        undone if undone.is_empty() => {
            format!("this session has changed no file since message {}", prompt.number)
        }
        undone => format!("undid changes in: {}", undone.join(", ")),
    });
    report::print_problems(&listed("kept"));
    Ok(())
}

fn usage_failure(command: &str) -> CommandFailure {
    CommandFailure::new(Exit::Usage, format!("`/{command}` needs the number of a message"))
        .hint(slash::hint(command))
}

fn saved_id(session: &Session) -> Result<SessionId, CommandFailure> {
    if session.is_saved() && !session.history().entries().is_empty() {
        return Ok(session.id().clone());
    }
    let text = match session.is_saved() {
        true => "this session has no messages yet",
        false => "this session is not saved",
    };
    Err(CommandFailure::new(Exit::Usage, text))
}

/// Returns the session that `/resume` asks for.
///
/// # Errors
/// If the session does not exist, already runs here, or cannot continue here.
pub async fn session_to_resume(
    runtime: &Runtime,
    session: &Session,
    id: &str,
) -> Result<NextSession, CommandFailure> {
    let sessions = SavedSessions::from_runtime(runtime)?;
    let id = match id {
        "" => ask_for_session(runtime.setup()).await?,
        id => sessions.find(id)?,
    };
    if id == *session.id() {
        return Err(CommandFailure::new(Exit::Usage, "you are already in this session"));
    }
    // An error keeps the session that runs.
    sessions.store.check_can_open(&id).map_err(store_failure)?;
    let mut reader = sessions.store.read_session(&id).map_err(store_failure)?;
    let state = read_last_state(&mut reader).map_err(store_failure)?;
    check_environment(runtime, &EnvironmentArgs::default(), &id, &state)?;
    Ok(NextSession::Saved(id))
}

/// Lists the user's messages with their numbers.
///
/// # Errors
/// If the session is not saved, or they cannot be printed.
pub fn list_messages(runtime: &Runtime, session: &Session) -> CommandResult {
    let id = saved_id(session)?;
    let prompts =
        SavedSessions::from_runtime(runtime)?.store.list_prompts(&id).map_err(store_failure)?;
    let room = terminal::size().1.saturating_sub(NUMBER_COLUMNS);
    for NumberedPrompt { number, text, .. } in prompts {
        report::print_line(&format!("{number:>4}  {}", terminal::one_line(&text, room)))?;
    }
    report::print_remark("`/rewind NUMBER` takes back that message and everything after it");
    Ok(Exit::Done)
}

/// Gives the session a name.
///
/// # Errors
/// Without a name, or if the session is not saved.
pub fn rename_current_session(session: &Session, name: &str) -> CommandResult {
    if name.is_empty() {
        let failure = CommandFailure::new(Exit::Usage, "`/rename` needs a name");
        return Err(failure.hint(slash::hint("rename")));
    }
    saved_id(session)?;
    session.rename(name);
    report::print_remark(&format!("the session is named `{}`", visible::visible_name(name)));
    Ok(Exit::Done)
}

/// Writes the session to a file.
///
/// # Errors
/// If the session is not saved, or the file cannot be written.
pub fn export_current_session(runtime: &Runtime, session: &Session, file: &str) -> CommandResult {
    let id = saved_id(session)?;
    let path = if file.is_empty() { format!("{id}.md") } else { file.to_owned() };
    let sessions = SavedSessions::from_runtime(runtime)?;
    write_file(&sessions, &id, None, Path::new(&path))?;
    Ok(Exit::Done)
}

/// Shows the end of a conversation that continues.
pub fn show_end(session: &Session) {
    let history = session.history();
    let last_of = |role: Role| {
        let last = history.entries().iter().rfind(|entry| entry.message.role == role);
        last.map(|entry| entry.message.text()).filter(|text| !text.trim().is_empty())
    };
    let turns = history.turn_count();
    let messages = if turns == 1 { "1 message".to_owned() } else { format!("{turns} messages") };
    report::print_remark(&format!("continues session {} with {messages} of yours", session.id()));
    if let Some(prompt) = last_of(Role::User) {
        report::print_remark(&format!("> {}", first_lines(&prompt)));
    }
    if let Some(answer) = last_of(Role::Model) {
        report::print_remark(&first_lines(&answer));
    }
}

/// Says how to come back to a session that is saved.
pub fn print_how_to_continue(session: &Session) {
    if session.is_saved() && !session.history().entries().is_empty() {
        report::print_remark(&format!(
            "`jaato chat --resume {}` continues this session",
            session.id()
        ));
    }
}

/// Returns the first lines of a text.
fn first_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    match lines.len() > SHOWN_LINES_MAX {
        true => format!("{}\n…", lines[..SHOWN_LINES_MAX].join("\n")),
        false => lines.join("\n"),
    }
}

/// Describes a session in a row of a question.
fn session_line(session: &IndexedSession) -> String {
    format!("{}  {} ({})", session.id, session_name(session), time::format_age(session.changed_ms))
}
