//! Shared code of `run` and `chat`: from the command line to a session with a model, and the end of
//! a turn.

use std::sync::Arc;

use jaato_runtime::registry::{
    NO_TOOLS, PluginCandidate, PluginEntry, PluginFileTrust, PluginStatus, Registry, ToolEntry,
    matches_tool,
};
use jaato_runtime::saved::SaveMode;
use jaato_runtime::session_loop::{Cancel, EventSink, Session, TurnReport, UserAsker, WantedTools};
use jaato_runtime::types::tasks::{TaskFacts, TaskStatus};
use jaato_runtime::types::{Error, ErrorKind, Outcome as TurnOutcome};
use jaato_runtime::{
    AllowedTool, PluginSource, Runtime, SessionOptions, SetupArguments, config, visible,
};

use crate::args::{FollowArgs, GlobalArgs, SessionArgs};
use crate::ask::{Stage, TerminalAsker};
use crate::exit::{CommandFailure, Exit, exit_for_error};
use crate::sessions::resume::{self, SessionChoice};
use crate::view::View;
use crate::{first_start, report, start, tool, trust, worktree};

/// Finds the plugins, and chooses the session. If a user reads the output, reports the plugins that
/// could not be used and asks about the workspace.
pub async fn start_runtime(
    global: GlobalArgs,
    (args, follow): (&SessionArgs, &FollowArgs),
    is_read: bool,
) -> Result<(Runtime, SessionChoice), CommandFailure> {
    let mut arguments = setup_arguments(global, args)?;
    let mut setup = start::read_setup(arguments.clone())?;
    if is_read && trust::ask_once(&setup).await? {
        setup = start::read_setup(arguments.clone())?;
    }
    let session = resume::choose_session(&setup, &follow.saving).await?;
    if resume::return_to_place(&session, &setup, &args.environment, &mut arguments)? {
        setup = start::read_setup(arguments.clone())?;
    }
    let mut runtime = start::start_runtime_with(setup).await;
    if let Some(name) = &follow.worktree {
        let created = worktree::create_worktree(&runtime, name).await;
        let here = runtime.setup().workspace.working_directory().to_owned();
        start::close_runtime(runtime).await;
        resume::keep_paths(&mut arguments, &here);
        arguments.folder = Some(created?);
        runtime = start::start_runtime(arguments.clone()).await?;
    }
    // A session that continues has a model.
    let asks = is_read && session == SessionChoice::New;
    if asks && let Some(choice) = first_start::ask_for_model(&runtime).await? {
        start::close_runtime(runtime).await;
        arguments.overrides.model = Some(choice.model);
        let mut setup = start::read_setup(arguments)?;
        setup.config.local_download |= choice.may_download;
        runtime = start::start_runtime_with(setup).await;
    }
    check_tool_names(&runtime, args.tools.as_deref(), &args.allow).await?;
    if is_read {
        report::print_problems(&start::list_problems(&runtime));
    } else {
        report::print_problems(runtime.setting_problems());
    }
    Ok((runtime, session))
}

/// Converts the options with which sessions start.
///
/// # Errors
/// If the model's name is not a name.
pub fn setup_arguments(
    global: GlobalArgs,
    args: &SessionArgs,
) -> Result<SetupArguments, CommandFailure> {
    let mut arguments = start::setup_arguments(global);
    if let Some(model) = &args.model {
        let name = config::parse_model_name(model).map_or_else(
            || {
                config::parse_model_id(model)
                    .map_err(|error| CommandFailure::new(Exit::Usage, error))
            },
            Ok,
        )?;
        arguments.overrides.model = Some(name);
    }
    start::add_environment(&mut arguments, &args.environment);
    arguments.tools_only = args.tools.clone();
    Ok(arguments)
}

/// The observers of a session: one for its events, one for its questions.
pub struct SessionObservers {
    /// Receives the events.
    pub events: Arc<dyn EventSink>,
    /// Answers the questions.
    pub asker: Arc<dyn UserAsker>,
}

impl SessionObservers {
    /// Creates the observers for the user at the terminal.
    pub fn at_terminal(view: &Arc<View>, stage: &Arc<Stage>) -> Self {
        let asker = TerminalAsker::new(Arc::clone(view), Arc::clone(stage));
        Self { events: Arc::clone(view) as _, asker: Arc::new(asker) }
    }
}

/// Starts the session that the arguments describe, or continues a saved one.
pub fn start_session(
    runtime: &Runtime,
    args: &SessionArgs,
    saving: SaveMode,
    view: &View,
    watch: SessionObservers,
) -> Result<Session, CommandFailure> {
    if runtime.setup().config.session.retry_silent {
        view.hide_retries();
    }
    view.tell_attempts(runtime.setup().config.session.attempts_max);
    let mut options = session_options(runtime, args, saving, watch)?;
    options.tells_messages = view.is_for_programs();
    runtime.open_session(options).map_err(start_failure)
}

/// Returns the options of a session that the arguments describe.
///
/// # Errors
/// If an option is wrong.
pub fn session_options(
    runtime: &Runtime,
    args: &SessionArgs,
    mut saving: SaveMode,
    watch: SessionObservers,
) -> Result<SessionOptions, CommandFailure> {
    let mut environment_options =
        start::environment_options(runtime, &args.environment).map_err(start_failure)?;
    if let SaveMode::Continue(session) = &mut saving
        && session.restored.state.environment == runtime.setup().config.environment
    {
        if !args.environment.is_given() {
            environment_options.clone_from(&session.restored.state.environment_options);
        }
        // Other options do not make the same container again.
        session.has_new_container = environment_options
            == session.restored.state.environment_options
            && start::has_own_container(runtime, &environment_options);
        if session.has_new_container {
            report::print_remark(
                "the session continues in a new container, because its own is gone",
            );
        }
    }
    let asker = match watch.asker.channel() {
        // A program that runs jaato answers itself.
        "client" => watch.asker,
        _ => runtime.asker_with_channel(watch.asker).map_err(start_failure)?,
    };
    Ok(SessionOptions {
        asker,
        mode: args.mode,
        allow: args.allow.clone(),
        allow_all: args.yes,
        ignore_deny_rules: args.ignore_deny_rules,
        system: args.system.clone(),
        environment_options,
        request: args.request.request_options()?,
        caps: args.caps.caps(),
        saving,
        ..SessionOptions::unattended(watch.events)
    })
}

/// Converts the error of a session that cannot start.
pub fn start_failure(error: Error) -> CommandFailure {
    let exit = match error.kind {
        ErrorKind::PluginDisabled => Exit::Plugin,
        _ => Exit::Configuration,
    };
    CommandFailure { exit, message: error.message, hint: error.hint }
}

/// Waits for tools that plugins have not set yet: all, or those that the arguments name. A line
/// lists the missing ones, with reasons.
pub async fn await_tools(session: &mut Session, args: &SessionArgs, cancel: &Cancel) {
    let only = args.tools.clone().unwrap_or_default();
    session.await_tools(&WantedTools::only_named(only.clone()), cancel).await;
    report_missing_tools(session, &only);
    let allowed: Vec<String> =
        args.allow.iter().map(|text| AllowedTool::parse(text).tool.to_string()).collect();
    if !allowed.is_empty() {
        session.await_tools(&WantedTools::only_named(allowed.clone()), cancel).await;
        report_missing_tools(session, &allowed);
    }
}

fn report_missing_tools(session: &Session, words: &[String]) {
    let toolbox = session.toolbox();
    for word in words {
        let is_there = toolbox.tools().any(|it| matches_tool(word, it.spec.name.as_str()));
        let Some(source) = toolbox.missing_source(word).filter(|_| !is_there) else { continue };
        let text = format!("no tool is named `{word}`: {} {}", source.label, source.note);
        let hint = source.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        session.emitter().emit_notice(format!("{text}{hint}"));
    }
}

/// Ends open forms and background calls that no one waits for, and reports those calls.
pub async fn end_tasks(session: &Session, view: &View) {
    let facts = session.handle().list_tasks().unwrap_or_default();
    let running = facts.iter().filter(|task| task.status == TaskStatus::Running);
    let named: Vec<String> = running.map(task_name).collect();
    session.end_forms().await;
    view.hide_ends_of_tasks();
    session.end_tasks().await;
    if named.is_empty() {
        return;
    }
    view.settle().await;
    let (what, named) = (if named.len() == 1 { "task" } else { "tasks" }, named.join(", "));
    report::print_problems(&[format!("ended with the session, background {what}: {named}")]);
}

fn task_name(task: &TaskFacts) -> String {
    let by = task.by.as_ref().map(|by| format!(" started by {by}")).unwrap_or_default();
    visible::visible_name(&format!("{} ({}{by})", task.task_id, task.tool)).into_owned()
}

/// Refuses a name in `--tools` or `--allow` that no tool has, because it is probably a typo.
///
/// # Errors
/// Names the first one.
pub async fn check_tool_names(
    runtime: &Runtime,
    only: Option<&[String]>,
    allow: &[String],
) -> Result<(), CommandFailure> {
    let only = match only {
        Some([alone]) if alone == NO_TOOLS => &[],
        only => only.unwrap_or_default(),
    };
    if only.iter().any(|name| name == NO_TOOLS) {
        let text = format!("`--tools {NO_TOOLS}` cannot be combined with other tools");
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    let allowed: Vec<_> = allow.iter().map(|text| AllowedTool::parse(text)).collect();
    let registry = runtime.registry();
    let is_known = |name: &&str| {
        plugin_that_may_set(&registry, name).is_some()
            || registry.tools().any(|it| matches_tool(name, it.spec.name.as_str()))
    };
    let named = only.iter().map(String::as_str);
    let named = named.chain(allowed.iter().map(|allowed| allowed.tool.as_str()));
    let unknown: Vec<String> = named.filter(|name| !is_known(name)).map(str::to_owned).collect();
    // A plugin may set such a tool when it is opened.
    let offered = match unknown.iter().any(|it| runtime.can_be_set_later(it)) {
        true => Some(tool::list_offered_tools(runtime, unknown).await?),
        false => None,
    };
    let set = offered.iter().flat_map(|it| it.offer.entries().filter(|tool| tool.is_set));
    let tools: Vec<ToolEntry<'_>> = registry.tools().chain(set).collect();
    for name in only.iter().filter(|name| plugin_that_may_set(&registry, name).is_none()) {
        if !tools.iter().any(|it| matches_tool(name, it.spec.name.as_str())) {
            return Err(unknown_tool_failure(runtime, name, &tools));
        }
    }
    allowed.iter().try_for_each(|allowed| check_allowed(runtime, &registry, allowed, &tools))
}

/// Finds the plugin that may set a tool with this name and has not done so.
fn plugin_that_may_set<'a>(registry: &'a Registry, name: &str) -> Option<&'a PluginEntry> {
    let plugins = registry.plugins().iter();
    plugins
        .filter(|it| it.status == PluginStatus::Active)
        .find(|it| it.description().is_some_and(|description| description.can_set_tool(name)))
}

fn unknown_tool_failure(runtime: &Runtime, name: &str, tools: &[ToolEntry<'_>]) -> CommandFailure {
    report::print_problems(&start::list_problems(runtime));
    CommandFailure::unknown("tool", name, tools.iter().map(|tool| tool.spec.name.as_str()))
}

/// Refuses a name in `--allow` that covers no tool.
fn check_allowed(
    runtime: &Runtime,
    registry: &Registry,
    allowed: &AllowedTool,
    tools: &[ToolEntry<'_>],
) -> Result<(), CommandFailure> {
    let by = plugin_that_may_set(registry, allowed.tool.as_str()).map(|entry| &entry.candidate);
    let is_covered = |by: &PluginCandidate| {
        let source = PluginSource::from_origin(by.trust == PluginFileTrust::Shipped, false);
        allowed.allows_tool(&allowed.tool, &by.manifest.name, source)
    };
    if by.is_some_and(is_covered) {
        return Ok(());
    }
    let named = |tool: &&ToolEntry<'_>| allowed.names_tool(tool.spec.name.as_str());
    let Some(tool) = tools.iter().find(named) else {
        return Err(unknown_tool_failure(runtime, allowed.tool.as_str(), tools));
    };
    let covers = |tool: &ToolEntry<'_>| {
        let source = PluginSource::from_origin(tool.is_shipped, tool.spec.foreign);
        allowed.allows_tool(&tool.spec.name, tool.plugin, source)
    };
    if tools.iter().any(covers) { Ok(()) } else { Err(not_allowed_failure(allowed, tool)) }
}

/// Explains that `--allow` does not cover another plugin's tool.
fn not_allowed_failure(allowed: &AllowedTool, tool: &ToolEntry<'_>) -> CommandFailure {
    let (name, plugin) = (&allowed.tool, tool.plugin);
    let text = match &allowed.plugin {
        Some(other) => format!("tool `{name}` is not of plugin `{other}` but of `{plugin}`"),
        None => format!(
            "tool `{name}` belongs to plugin `{plugin}`, which is not shipped with jaato: \
             its name alone allows nothing"
        ),
    };
    CommandFailure::new(Exit::Usage, text).hint(format!("`--allow {plugin}:{name}` allows it"))
}

/// Returns the exit code for a turn's end.
pub fn turn_exit(report: &TurnReport) -> Exit {
    match report.outcome {
        TurnOutcome::Done if report.no_call_worked => Exit::Failed,
        TurnOutcome::Done => Exit::Done,
        TurnOutcome::Denied | TurnOutcome::Limit => Exit::Limit,
        TurnOutcome::Cancelled => Exit::Cancelled,
        TurnOutcome::Failed | TurnOutcome::Unknown => {
            report.error.as_ref().map_or(Exit::Failed, failed_turn_exit)
        }
    }
}

/// Returns the exit code for a failed turn: that of the provider, unless the error's kind says
/// otherwise.
fn failed_turn_exit(error: &Error) -> Exit {
    match exit_for_error(error.kind) {
        Exit::Failed => Exit::Provider,
        other => other,
    }
}
