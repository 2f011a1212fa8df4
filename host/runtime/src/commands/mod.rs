//! User commands: lists them, parses their words, and runs them in a session.

mod complete;
mod own;
mod words;

pub use complete::{WORD_CHOICES_MAX, WordCompleter};
pub use own::preview_json;

use std::sync::Arc;

use jaato_instances::{CallSite, FacetRequest, delta_callback, invalid_answer_error};
use jaato_registry::{CommandStatus, nearest_name};
use jaato_session::{ArgumentChecks, CallScope, Cancel, CommandCall, Session};
use jaato_types::{CommandSpec, Error, ErrorKind, Frame, Output, PluginName, SessionId, ToolSpec};
use serde_json::{Map, Value, json};

use crate::host::RuntimeHost;
use crate::runtime::Runtime;

/// A command in the list.
#[derive(Debug, Clone)]
pub struct ListedCommand {
    /// The command's name and parameters.
    pub spec: CommandSpec,
    /// The command's plugin, or `None` for a built-in command.
    pub plugin: Option<PluginName>,
    /// Whether it can be run.
    pub status: CommandStatus,
}

impl ListedCommand {
    /// Returns the usage line: `note <text…> [count]`.
    pub fn usage_line(&self) -> String {
        words::usage_line(&self.spec)
    }
}

impl Runtime {
    /// Lists the commands for users by name: built-in commands and those of plugins, then the
    /// refused ones.
    pub fn list_commands(&self) -> Vec<ListedCommand> {
        let of_plugin = |entry: jaato_registry::CommandEntry<'_>| ListedCommand {
            spec: entry.spec.clone(),
            plugin: Some(entry.plugin.clone()),
            status: entry.status,
        };
        let registry = self.registry();
        let own = own::built_in_specs().map(|spec| ListedCommand {
            spec,
            plugin: None,
            status: CommandStatus::Enabled,
        });
        let mut commands: Vec<_> =
            own.into_iter().chain(registry.commands().map(of_plugin)).collect();
        let set = self.host().plugins.plugins.set_commands(None);
        commands.extend(set.into_iter().map(|(plugin, spec)| ListedCommand {
            spec,
            plugin: Some(plugin),
            status: CommandStatus::Enabled,
        }));
        commands.retain(|command| !command.spec.unlisted);
        commands.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
        commands.extend(registry.refused_commands().map(of_plugin));
        commands
    }

    /// Parses the words after a command's name: one JSON object, or words in the order of its
    /// parameters. The arguments are validated when the command runs.
    ///
    /// # Errors
    /// `invalid_arguments` if the command does not exist, or a word cannot be parsed.
    pub fn parse_command_arguments(&self, name: &str, words: &[String]) -> Result<Value, Error> {
        if let Some(spec) = own::built_in_specs().iter().find(|spec| spec.name == name) {
            return words::arguments_from_words(spec, words);
        }
        let (_, spec) = self.find_plugin_command(name, None)?;
        words::arguments_from_words(&spec, words)
    }

    /// Finds a command of a plugin: one that its code declares, or that it has set for the session.
    fn find_plugin_command(
        &self,
        name: &str,
        session: Option<&SessionId>,
    ) -> Result<(PluginName, CommandSpec), Error> {
        if let Some(entry) = self.registry().command(name) {
            return Ok((entry.plugin.clone(), entry.spec.clone()));
        }
        let mut set = self.host().plugins.plugins.set_commands(session).into_iter();
        set.find(|(_, spec)| spec.name == name).ok_or_else(|| self.unknown_command(name))
    }

    /// Runs a command in a session. The user's own command needs no permission prompt. Events
    /// report it. If its plugin says so, the session's next request shows the answer to the model.
    ///
    /// # Errors
    /// If the command does not exist, the arguments do not match, or the command fails.
    pub async fn run_command(
        &self,
        session: &mut Session,
        name: &str,
        arguments: Value,
        cancel: &Cancel,
    ) -> Result<Output, Error> {
        if let Some(spec) = own::built_in_specs().iter().find(|spec| spec.name == name) {
            validate_arguments(spec, &arguments)?;
            return own::run_built_in(self.host(), (name, &arguments), session, cancel).await;
        }
        // Nothing runs between turns, so the conversation can take the current tools.
        session.renew_tools(cancel).await;
        let (plugin, spec) = self.find_plugin_command(name, Some(session.id()))?;
        validate_arguments(&spec, &arguments)?;
        let call = CommandCall {
            name: name.to_owned(),
            source: self.registry().event_source_name(&plugin).to_owned(),
            arguments: arguments.clone(),
            share_with_model: spec.share_with_model,
        };
        let has_model = !session.facts().model.is_empty();
        let host = Arc::clone(self.host());
        let request = json!({ "name": name, "arguments": arguments });
        let work =
            |scope| Box::pin(run_plugin_command(host, plugin, request, scope, has_model)) as _;
        session.run_command(call, work, cancel).await
    }

    fn unknown_command(&self, name: &str) -> Error {
        let error =
            Error::new(ErrorKind::InvalidArguments, format!("there is no command `{name}`"));
        let registry = self.registry();
        let known = registry.commands().map(|entry| entry.spec.name.as_str());
        match nearest_name(name, known.chain([own::CONTEXT, own::GC, own::OBJECTS])) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint("`jaato command` lists them"),
        }
    }
}

async fn run_plugin_command(
    host: Arc<RuntimeHost>,
    plugin: PluginName,
    request: Value,
    scope: CallScope,
    has_model: bool,
) -> Result<Output, Error> {
    let tell = delta_callback(&scope);
    let name = request["name"].as_str().unwrap_or_default();
    let site = host.tool_call_site(has_model, name, &scope);
    let site = CallSite { call: Some(scope.call.clone()), ..site };
    let frame = Frame::write(&request)
        .map_err(|error| Error::new(ErrorKind::InvalidArguments, error.to_string()))?;
    let (plugin, facet) = (plugin.as_str(), FacetRequest::Command);
    let answer = host.plugins.call_plugin(plugin, facet, site, frame, &tell, &scope.cancel).await?;
    let parsed = Frame::parse(&answer).map_err(invalid_answer_error(plugin))?;
    let (content, bytes) =
        (parsed.json().map_err(invalid_answer_error(plugin))?, parsed.bytes.to_vec());
    Ok(Output { content, bytes, ..Output::default() })
}

/// Validates arguments like those of a tool, before a plugin sees them.
fn validate_arguments(spec: &CommandSpec, arguments: &Value) -> Result<(), Error> {
    let parameters = match &spec.parameters {
        Value::Null => json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        schema => schema.clone(),
    };
    let as_tool = json!({ "name": spec.name, "description": "", "parameters": parameters });
    let as_tool: ToolSpec = serde_json::from_value(as_tool)
        .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))?;
    ArgumentChecks::new().check_tool_arguments(&as_tool, arguments).map_err(|error| {
        match error.kind {
            ErrorKind::InvalidArguments => Error { hint: Some(usage_hint(spec)), ..error },
            _ => error,
        }
    })
}

fn usage_hint(spec: &CommandSpec) -> String {
    format!("write it as `{}`, or with one JSON object", words::usage_line(spec))
}

/// Returns empty arguments.
fn empty_arguments() -> Value {
    Value::Object(Map::new())
}
