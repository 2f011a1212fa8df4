//! Shared code of `run` and `chat`: from the command line to a session with a model, and the end of
//! a turn.

use std::sync::Arc;

use jaato_runtime::registry::{
    NO_TOOLS, PluginCandidate, PluginFileTrust, PluginStatus, ToolEntry, names_tool,
};
use jaato_runtime::saved::Saving;
use jaato_runtime::session_loop::{Cancel, EventSink, Session, TurnReport, UserAsker, WantedTools};
use jaato_runtime::types::tasks::{TaskFacts, TaskStatus};
use jaato_runtime::types::{Error, ErrorKind, Outcome as TurnOutcome};
use jaato_runtime::{AllowedTool, PluginSource, Runtime, SessionOptions, config, visible};

use crate::args::{GlobalArgs, SessionArgs};
use crate::ask::{Stage, TerminalAsker};
use crate::exit::{CommandFailure, Exit, exit_of};
use crate::view::View;
use crate::{first_start, report, start, trust};

/// Finds the plugins. If a user reads the output, reports those that could not be used and asks
/// about the workspace.
pub async fn runtime(
    global: GlobalArgs,
    args: &SessionArgs,
    is_read: bool,
) -> Result<Runtime, CommandFailure> {
    let mut arguments = start::arguments(global);
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
    let mut setup = start::setup(arguments.clone())?;
    if is_read && trust::ask_once(&setup).await? {
        setup = start::setup(arguments.clone())?;
    }
    let mut runtime = start::start_runtime_with(setup).await;
    // A session that continues has a model.
    let asks = is_read && !args.saving.newest && args.saving.resume.is_none();
    if asks && let Some(choice) = first_start::ask(&runtime).await? {
        start::close(runtime).await;
        arguments.overrides.model = Some(choice.model);
        let mut setup = start::setup(arguments)?;
        setup.config.local_download |= choice.may_download;
        runtime = start::start_runtime_with(setup).await;
    }
    check_tool_names(&runtime, args)?;
    if is_read {
        report::problems(&start::problems(&runtime));
    } else {
        report::problems(runtime.setting_problems());
    }
    Ok(runtime)
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
pub fn start(
    runtime: &Runtime,
    args: &SessionArgs,
    saving: Saving,
    view: &View,
    watch: SessionObservers,
) -> Result<Session, CommandFailure> {
    let failure = |error: Error| {
        let exit = if error.kind == ErrorKind::PluginDisabled {
            Exit::Plugin
        } else {
            Exit::Configuration
        };
        CommandFailure { exit, message: error.message, hint: error.hint }
    };
    if runtime.setup().config.session.retry_silent {
        view.hide_retries();
    }
    view.tell_attempts(runtime.setup().config.session.attempts_max);
    if args.thoughts {
        view.show_thoughts();
    }
    let environment_options =
        start::environment_options(runtime, &args.environment).map_err(failure)?;
    let asker = match watch.asker.channel() {
        // A program that runs jaato answers itself.
        "client" => watch.asker,
        _ => runtime.asker(watch.asker).map_err(failure)?,
    };
    let options = SessionOptions {
        asker,
        mode: args.mode,
        allow: args.allow.clone(),
        allow_all: args.yes,
        ignore_deny_rules: args.ignore_deny_rules,
        system: args.system.clone(),
        environment_options,
        request: args.request.options()?,
        caps: args.caps.caps(),
        saving,
        ..SessionOptions::unattended(watch.events)
    };
    runtime.session(options).map_err(failure)
}

/// Waits for tools that plugins have not set yet: all, or those that the arguments name. A line
/// lists the missing ones, with reasons.
pub async fn await_tools(session: &mut Session, args: &SessionArgs, cancel: &Cancel) {
    let only = args.tools.clone().unwrap_or_default();
    session.await_tools(&WantedTools::named(only.clone()), cancel).await;
    tell_missing(session, &only);
    let allowed: Vec<String> =
        args.allow.iter().map(|text| AllowedTool::parse(text).tool.to_string()).collect();
    if !allowed.is_empty() {
        session.await_tools(&WantedTools::named(allowed.clone()), cancel).await;
        tell_missing(session, &allowed);
    }
}

fn tell_missing(session: &Session, words: &[String]) {
    let toolbox = session.toolbox();
    for word in words {
        let is_there = toolbox.tools().any(|it| names_tool(word, it.spec.name.as_str()));
        let Some(source) = toolbox.missing_source(word).filter(|_| !is_there) else { continue };
        let text = format!("no tool is named `{word}`: {} {}", source.label, source.note);
        let hint = source.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        session.emitter().notice(format!("{text}{hint}"));
    }
}

/// Ends open forms and background calls that no one waits for, and reports those calls.
pub async fn end_tasks(session: &Session, view: &View) {
    let facts = session.handle().tasks().unwrap_or_default();
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
    report::problems(&[format!("ended with the session, background {what}: {named}")]);
}

fn task_name(task: &TaskFacts) -> String {
    let by = task.by.as_ref().map(|by| format!(" started by {by}")).unwrap_or_default();
    visible::name(&format!("{} ({}{by})", task.task_id, task.tool)).into_owned()
}

/// Refuses a name in `--tools` or `--allow` that no tool has, because it is probably a typo.
fn check_tool_names(runtime: &Runtime, args: &SessionArgs) -> Result<(), CommandFailure> {
    let only = match args.tools.as_deref() {
        Some([alone]) if alone == NO_TOOLS => &[],
        only => only.unwrap_or_default(),
    };
    if only.iter().any(|name| name == NO_TOOLS) {
        let text = format!("`--tools {NO_TOOLS}` cannot be combined with other tools");
        return Err(CommandFailure::new(Exit::Usage, text));
    }
    let registry = runtime.registry();
    // A plugin that sets its tools while it runs has not set them yet.
    let setter = |name: &str| {
        let plugins = registry.plugins().iter();
        plugins
            .filter(|it| it.status == PluginStatus::Active)
            .find(|it| it.description().is_some_and(|description| description.may_set(name)))
    };
    let find = |name: &str| {
        registry.tool(name).ok_or_else(|| {
            report::problems(&start::problems(runtime));
            let known = registry.tools().map(|tool| tool.spec.name.as_str());
            CommandFailure::unknown("tool", name, known)
        })
    };
    let is_meant = |name: &str| registry.tools().any(|it| names_tool(name, it.spec.name.as_str()));
    for name in only.iter().filter(|name| setter(name).is_none() && !is_meant(name)) {
        find(name)?;
    }
    for text in &args.allow {
        let allowed = AllowedTool::parse(text);
        let by = setter(allowed.tool.as_str()).map(|entry| &entry.candidate);
        let is_covered = |by: &PluginCandidate| {
            let source = PluginSource::from_origin(by.trust == PluginFileTrust::Shipped, false);
            allowed.covers(&allowed.tool, &by.manifest.name, source)
        };
        if by.is_some_and(is_covered) {
            continue;
        }
        let named = |tool: &ToolEntry<'_>| allowed.names(tool.spec.name.as_str());
        let tool = match registry.tools().find(named) {
            Some(tool) => tool,
            None => find(allowed.tool.as_str())?,
        };
        let covers = |tool: &ToolEntry<'_>| {
            let source = PluginSource::from_origin(tool.is_shipped, tool.spec.foreign);
            allowed.covers(&tool.spec.name, tool.plugin, source)
        };
        if !registry.tools().any(|tool| covers(&tool)) {
            return Err(not_allowed(&allowed, &tool));
        }
    }
    Ok(())
}

/// Explains that `--allow` does not cover another plugin's tool.
fn not_allowed(allowed: &AllowedTool, tool: &ToolEntry<'_>) -> CommandFailure {
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
pub fn exit_of_turn(report: &TurnReport) -> Exit {
    match report.outcome {
        TurnOutcome::Done if report.no_call_worked => Exit::Failed,
        TurnOutcome::Done => Exit::Done,
        TurnOutcome::Denied | TurnOutcome::Limit => Exit::Limit,
        TurnOutcome::Cancelled => Exit::Cancelled,
        TurnOutcome::Failed | TurnOutcome::Unknown => {
            report.error.as_ref().map_or(Exit::Failed, failed_turn)
        }
    }
}

/// Returns the exit code for a failed turn: that of the provider, unless the error's kind says
/// otherwise.
fn failed_turn(error: &Error) -> Exit {
    match exit_of(error.kind) {
        Exit::Failed => Exit::Provider,
        other => other,
    }
}
