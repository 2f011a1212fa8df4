//! `jaato command`: lists and runs the commands that plugins offer to users.

use std::sync::Arc;

use clap::Args;
use jaato_runtime::registry::CommandStatus;
use jaato_runtime::session_loop::Cancel;
use jaato_runtime::types::hooks::WordChoice;
use jaato_runtime::types::{Error, Output};
use jaato_runtime::{ListedCommand, Runtime, SessionOptions, visible};
use jaato_template::shell_word;
use serde_json::{Value, json};

use crate::args::{GlobalArgs, OutputForm};
use crate::ask::TerminalAsker;
use crate::call::LiveEventSink;
use crate::exit::{CommandFailure, CommandResult, Exit};
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{conversation, report, start, terminal, tool};

/// The arguments of `command`.
#[derive(Debug, Args)]
pub struct CommandArgs {
    /// The command; lists all commands if absent
    pub name: Option<String>,

    /// The arguments: words in the order of the parameters, or one JSON object. Put `--` before
    /// words that begin with a dash
    #[arg(allow_negative_numbers = true)]
    pub arguments: Vec<String>,

    /// Print the possible next words, one per line, and run nothing; the last argument is the
    /// prefix to complete
    #[arg(long, requires = "name")]
    pub complete: bool,

    /// List commands as JSON
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

/// Runs a command, or lists them all.
pub async fn run_command(global: GlobalArgs, args: CommandArgs) -> CommandResult {
    terminal::reserve();
    match args.name {
        Some(name) if args.complete => complete_command(global, &name, &args.arguments).await,
        Some(name) => run_and_print(global, &name, &args.arguments, AnswerForm::Json).await,
        None => list_commands(global, args.json).await,
    }
}

async fn list_commands(global: GlobalArgs, as_json: bool) -> CommandResult {
    let runtime = start::lasting_runtime(start::setup_arguments(global)).await?;
    report::print_problems(&start::list_problems(runtime));
    let commands = runtime.list_commands();
    report::print_problems(&commands.iter().filter_map(refusal_reason).collect::<Vec<_>>());
    if as_json {
        return report::print_exact_json(&commands.iter().map(command_to_json).collect());
    }
    let rows: Vec<_> = commands
        .iter()
        .map(|command| {
            let plugin = command.plugin.as_ref().map_or("jaato", |plugin| plugin.as_str());
            vec![
                command.usage_line(),
                plugin.to_owned(),
                command_status(command).to_owned(),
                command.spec.description.clone(),
            ]
        })
        .collect();
    report::print_table(&["command", "plugin", "status", "description"], &rows)?;
    Ok(Exit::Done)
}

fn command_status(command: &ListedCommand) -> &'static str {
    match &command.status {
        CommandStatus::Enabled => "enabled",
        CommandStatus::Refused(_) => "refused",
    }
}

/// Returns why a command is refused, if it is.
fn refusal_reason(command: &ListedCommand) -> Option<String> {
    let CommandStatus::Refused(refusal) = &command.status else { return None };
    let (name, plugin) = (&command.spec.name, command.plugin.as_ref()?);
    Some(format!("command `{name}` of plugin `{plugin}` is refused: {refusal}"))
}

fn command_to_json(command: &ListedCommand) -> Value {
    json!({
        "name": command.spec.name,
        "description": command.spec.description,
        "parameters": command.spec.parameters,
        "share_with_model": command.spec.share_with_model,
        "usage": command.usage_line(),
        "plugin": command.plugin,
        "status": command_status(command),
    })
}

async fn complete_command(global: GlobalArgs, name: &str, words: &[String]) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    let view = View::start(OutputForm::Text, Cancel::new());
    let session =
        runtime.open_session_for_calls(SessionOptions::unattended(Arc::clone(&view) as _))?;
    let (begun, whole) = words.split_last().map_or(("", &[][..]), |(last, rest)| (last, rest));
    let choices = runtime.word_completer(&session).complete_words(name, whole, begun).await;
    let shown = view.finish(&Cancel::new()).await;
    runtime.close_session(session.id()).await;
    start::close_runtime(runtime).await;
    shown?;
    for WordChoice { text, description } in choices {
        let gap = if description.is_empty() { "" } else { "\t" };
        report::print_line(&format!("{text}{gap}{}", visible::visible_name(&description)))?;
    }
    Ok(Exit::Done)
}

/// The format of a command's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// As JSON, for programs.
    Json,
    /// Its text, for users. JSON if it has no text.
    Text,
}

/// Runs a plugin's command that has a row of its own in jaato's help: `jaato mcp`, `jaato hook`. It
/// takes an action, a name and further words, which stay separate, as the shell passed them.
pub async fn run_typed_command(global: GlobalArgs, name: &str, words: &[String]) -> CommandResult {
    terminal::reserve();
    let mut arguments = json!({});
    let mut words = words.iter();
    for key in ["action", "name"] {
        if let Some(word) = words.next() {
            arguments[key] = word.as_str().into();
        }
    }
    let rest: Vec<String> = words.map(|word| shell_word(word)).collect();
    if !rest.is_empty() {
        arguments["command"] = rest.join(" ").into();
    }
    run_and_print(global, name, &[arguments.to_string()], AnswerForm::Text).await
}

/// Runs a command and prints its answer.
pub async fn run_and_print(
    global: GlobalArgs,
    name: &str,
    words: &[String],
    form: AnswerForm,
) -> CommandResult {
    let runtime = start::start_runtime(start::setup_arguments(global)).await?;
    report::print_problems(runtime.setting_problems());
    if runtime.registry().command(name).is_none() && runtime.can_be_set_later(name) {
        // Commands appear together with the tools of their source.
        tool::list_offered_tools(&runtime, vec![name.to_owned()]).await?;
    }
    let arguments = match runtime.parse_command_arguments(name, words) {
        Ok(arguments) => arguments,
        Err(error) => {
            if runtime.registry().command(name).is_none() {
                // The command may be in a plugin that could not be used.
                report::print_problems(&start::list_problems(&runtime));
            }
            return Err(error.into());
        }
    };
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    let answer = run_plugin_command(&runtime, name, arguments, &view, &cancel).await;
    let shown = view.finish(&cancel).await;
    start::close_runtime(runtime).await;
    shown?;
    if cancel.is_cancelled() {
        return Ok(Exit::Cancelled);
    }
    let content = answer?.content;
    match (form, content.get("result").and_then(Value::as_str)) {
        (AnswerForm::Text, Some(text)) => {
            text.lines().try_for_each(|line| report::print_line(&visible::escape_lines(line)))?;
            Ok(Exit::Done)
        }
        (AnswerForm::Text | AnswerForm::Json, _) => report::print_json(&Value::Object(content)),
    }
}

async fn run_plugin_command(
    runtime: &Runtime,
    name: &str,
    arguments: Value,
    view: &Arc<View>,
    cancel: &Cancel,
) -> Result<Output, CommandFailure> {
    let mut options = SessionOptions::unattended(Arc::new(LiveEventSink(Arc::clone(view))));
    options.asker = runtime
        .asker_with_channel(Arc::new(TerminalAsker::new(Arc::clone(view), Arc::default())))?;
    let mut session = runtime.open_session_for_calls(options)?;
    let answer = runtime.run_command(&mut session, name, arguments, cancel).await;
    conversation::end_tasks(&session, view).await;
    runtime.close_session(session.id()).await;
    Ok(answer?)
}

/// Runs a command without a user. Returns `None` if no plugin offers the command.
pub async fn run_unattended(
    runtime: &Runtime,
    name: &str,
    arguments: Value,
) -> Result<Option<Result<Output, Error>>, CommandFailure> {
    if runtime.registry().command(name).is_none() {
        return Ok(None);
    }
    let cancel = Cancel::new();
    let view = View::start(OutputForm::Text, cancel.clone());
    let options = SessionOptions::unattended(Arc::clone(&view) as _);
    let mut session = runtime.open_session_for_calls(options)?;
    let answer = runtime.run_command(&mut session, name, arguments, &cancel).await;
    let shown = view.finish(&cancel).await;
    runtime.close_session(session.id()).await;
    shown?;
    Ok(Some(answer))
}

/// As [`run_unattended`], for the answer's text.
pub async fn answer_text(
    runtime: &Runtime,
    name: &str,
    arguments: Value,
) -> Result<Option<Result<String, Error>>, CommandFailure> {
    let answer = run_unattended(runtime, name, arguments).await?;
    Ok(answer.map(|answer| {
        let content = answer?.content;
        Ok(content.get("result").and_then(Value::as_str).unwrap_or_default().to_owned())
    }))
}
