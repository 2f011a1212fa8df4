//! `jaato call`: the user calls tools, one or many, in a session without a model.

use std::sync::Arc;

use clap::Args;
use jaato_runtime::registry::PluginEntry;
use jaato_runtime::session_loop::{Cancel, EventSink, Session, add_bytes_note};
use jaato_runtime::types::{DataPart, Error, ErrorKind, Event, EventEnvelope, Output, ToolName};
use jaato_runtime::{Runtime, SessionOptions};
use serde_json::{Map, Value, json};

use crate::args::{EnvironmentArgs, GlobalArgs, OutputForm};
use crate::ask::TerminalAsker;
use crate::exit::{CommandFailure, CommandResult, Exit, exit_for_error};
use crate::input_lines::read_lines;
use crate::signals::cancel_on_signals;
use crate::view::View;
use crate::{conversation, report, start, terminal};

/// The arguments of `call`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["tool", "batch"]))]
pub struct CallArgs {
    /// The tool
    pub tool: Option<String>,

    /// The arguments of the tool, a JSON object
    #[arg(default_value = "{}", conflicts_with = "batch")]
    pub arguments: String,

    /// Read calls from standard input, one JSON object {"tool", "args"} per line, and run them in
    /// one session
    #[arg(long)]
    pub batch: bool,

    #[command(flatten)]
    pub environment: EnvironmentArgs,
}

/// Calls one tool, or those on standard input.
pub async fn call_tool(global: GlobalArgs, args: CallArgs) -> CommandResult {
    terminal::reserve();
    let arguments = match &args.tool {
        Some(_) => Some(parse_arguments(&args.arguments)?),
        None => None,
    };
    let mut start_arguments = start::setup_arguments(global);
    start::add_environment(&mut start_arguments, &args.environment);
    let runtime = start::start_runtime(start_arguments).await?;
    report::print_problems(runtime.setting_problems());
    let cancel = Cancel::new();
    cancel_on_signals(cancel.clone());
    let view = View::start(OutputForm::Text, cancel.clone());
    // A call that the user typed is the user's own act and needs no permission. The calls that it
    // makes in turn cause permission prompts, if a user is present.
    let mut options = SessionOptions::unattended(Arc::new(LiveEventSink(Arc::clone(&view))));
    options.environment_options = start::environment_options(&runtime, &args.environment)?;
    if !args.batch {
        let terminal = TerminalAsker::new(Arc::clone(&view), Arc::default());
        options.asker = runtime.asker_with_channel(Arc::new(terminal))?;
    }
    let mut session = runtime.open_session_for_calls(options)?;
    // Plugins may have tools that their code does not declare.
    session.renew_tools(&cancel).await;
    let outcome = match (args.tool, arguments) {
        (Some(tool), Some(arguments)) => {
            let called =
                session.run_user_call(&ToolName::from(tool.as_str()), arguments, &cancel).await;
            // Earlier events must appear above the result.
            view.settle().await;
            call_one_tool(&runtime, &session, &tool, called).await
        }
        _ => run_batch(&runtime, &session, &cancel).await,
    };
    conversation::end_tasks(&session, &view).await;
    let shown = view.finish(&cancel).await;
    runtime.close_session(session.id()).await;
    start::close_runtime(runtime).await;
    shown?;
    if cancel.is_cancelled() && outcome.is_ok() { Ok(Exit::Cancelled) } else { outcome }
}

async fn call_one_tool(
    runtime: &Runtime,
    session: &Session,
    tool: &str,
    called: Result<Output, Error>,
) -> CommandResult {
    match called {
        Ok(output) => {
            report::print_exact_json(&output_to_json(runtime, session, output).await)?;
            Ok(Exit::Done)
        }
        Err(error) => {
            if error.kind == ErrorKind::UnknownTool {
                // The tool may be in a plugin that could not be used.
                report::print_problems(&start::list_problems(runtime));
                if let Some(failure) = unused_tool_failure(runtime, tool) {
                    return Err(failure);
                }
            }
            Err(CommandFailure {
                exit: exit_for_error(error.kind),
                message: error.message,
                hint: error.hint,
            })
        }
    }
}

/// Explains why a plugin that offers a tool is not used, if there is one.
fn unused_tool_failure(runtime: &Runtime, tool: &str) -> Option<CommandFailure> {
    let offers = |entry: &&PluginEntry| {
        let tools = entry.description().map_or(&[][..], |it| &it.tools);
        tools.iter().any(|spec| spec.name.as_str() == tool)
    };
    let registry = runtime.registry();
    let mut offering = registry.plugins().iter().filter(offers);
    let (entry, (why, hint)) =
        offering.find_map(|entry| Some((entry, entry.unusable_reason()?)))?;
    let plugin = &entry.candidate.manifest.name;
    let text = format!("tool `{tool}` of plugin `{plugin}` cannot be used: {why}");
    Some(CommandFailure::new(Exit::Plugin, text).maybe_hint(hint))
}

fn parse_arguments(text: &str) -> Result<Value, CommandFailure> {
    let example = "jaato call get_environment '{\"aspect\": \"os\"}'";
    let wrong = |text: String| CommandFailure::new(Exit::Usage, text).hint(example);
    let value: Value = serde_json::from_str(text)
        .map_err(|error| wrong(format!("the arguments are not JSON: {error}")))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(wrong(format!("the arguments are not a JSON object but {}", json_type_name(&value))))
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Runs each line of standard input as it arrives, and answers it at once.
async fn run_batch(runtime: &Runtime, session: &Session, cancel: &Cancel) -> CommandResult {
    let mut lines = read_lines();
    let mut failed = false;
    while let Some(line) = tokio::select! {
        () = cancel.cancelled() => None,
        line = lines.recv() => line,
    } {
        let answer = match line {
            Ok(line) if line.trim_ascii().is_empty() => continue,
            Ok(line) => answer_call_line(runtime, session, &line, cancel).await,
            Err(error) => failure_line(None, None, &error),
        };
        failed |= answer.contains_key("error");
        report::print_json_line(&Value::Object(answer))?;
    }
    Ok(if failed { Exit::Failed } else { Exit::Done })
}

async fn answer_call_line(
    runtime: &Runtime,
    session: &Session,
    line: &[u8],
    cancel: &Cancel,
) -> Map<String, Value> {
    let wrong = |text: String| {
        Error::new(ErrorKind::InvalidArguments, text).with_hint(
            "a line is a JSON object: {\"tool\": \"NAME\", \"args\": {…}}, and perhaps an \"id\"",
        )
    };
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return failure_line(None, None, &wrong(format!("the line is not JSON: {error}")));
        }
    };
    let id = value.get("id").cloned();
    if let Some(key) = unknown_key(&value) {
        return failure_line(id, None, &wrong(format!("the line has an unknown key `{key}`")));
    }
    let Some(tool) = value.get("tool").and_then(Value::as_str).map(str::to_owned) else {
        let text = if value.is_object() {
            "the line needs a text `tool`"
        } else {
            "the line is not a JSON object"
        };
        return failure_line(id, None, &wrong(text.to_owned()));
    };
    let arguments = value.get("args").cloned().unwrap_or_else(|| json!({}));
    match session.run_user_call(&ToolName::from(tool.as_str()), arguments, cancel).await {
        Ok(output) => {
            let mut line = new_result_line(id, Some(tool));
            line.insert("result".to_owned(), output_to_json(runtime, session, output).await);
            line
        }
        Err(error) => failure_line(id, Some(tool), &error),
    }
}

/// Finds a key in a line besides the three known ones. It is probably a typo, and the call would
/// run with other arguments than its author intended.
fn unknown_key(line: &Value) -> Option<&String> {
    line.as_object()?.keys().find(|key| !["id", "tool", "args"].contains(&key.as_str()))
}

fn new_result_line(id: Option<Value>, tool: Option<String>) -> Map<String, Value> {
    let id = id.map(|id| ("id".to_owned(), id));
    let tool = ("tool".to_owned(), tool.map_or(Value::Null, Value::from));
    id.into_iter().chain([tool]).collect()
}

fn failure_line(id: Option<Value>, tool: Option<String>, error: &Error) -> Map<String, Value> {
    let mut line = new_result_line(id, tool);
    let error = json!({ "kind": error.kind.name(), "message": error.message, "hint": error.hint });
    line.insert("error".to_owned(), error);
    line
}

/// Returns the output as JSON. It gives only the number of raw bytes, and the files of attachments.
async fn output_to_json(runtime: &Runtime, session: &Session, output: Output) -> Value {
    let Output { mut content, bytes, attachments, .. } = output;
    if !attachments.is_empty() {
        let mut notes = Vec::new();
        for attachment in &attachments {
            notes.push(attachment_note(runtime, session, attachment).await);
        }
        let numbered = (2..).map(|number| format!("attachments_{number}"));
        let mut keys = std::iter::once("attachments".to_owned()).chain(numbered);
        let Some(free) = keys.find(|key| !content.contains_key(key)) else {
            unreachable!("there are more numbers than keys")
        };
        content.insert(free, Value::Array(notes));
    }
    if !bytes.is_empty() {
        add_bytes_note(&mut content, json!({ "length": bytes.len() }));
    }
    Value::Object(content)
}

async fn attachment_note(runtime: &Runtime, session: &Session, attachment: &DataPart) -> Value {
    let mut note = json!({ "mime_type": attachment.mime_type });
    if let Some(name) = &attachment.name {
        note["name"] = name.as_str().into();
    }
    match runtime.keep_attachment(session.id(), attachment).await {
        Ok(path) => note["file"] = path.display().to_string().into(),
        Err(error) => note["not_kept"] = error.message.into(),
    }
    note
}

/// Shows the output of a running tool. The command itself prints the result.
pub struct LiveEventSink(pub Arc<View>);

impl EventSink for LiveEventSink {
    fn receive_event(&self, envelope: EventEnvelope) {
        let is_live = match &envelope.event {
            Event::ToolOutput { .. }
            | Event::Notice { .. }
            | Event::Progress { .. }
            | Event::Notified { .. }
            | Event::FileChanged { .. }
            | Event::PlanChanged { .. }
            | Event::TaskStarted { .. }
            | Event::FormAnswered { .. } => true,
            // The user knows their own call, but not the calls that it makes in turn.
            Event::ToolCallStarted { by, .. } => by.is_some(),
            _ => false,
        };
        if is_live {
            self.0.receive_event(envelope);
        }
    }
}
