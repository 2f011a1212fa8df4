//! The client, the runtime and the session under their original names.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::permissions::PermissionPlugin;
use super::registry::PluginRegistry;
use super::tokens::TokenLedger;
use crate::blocking;
use crate::config::GcSettings;
use crate::types::{Error, ErrorKind, Event, Message, Result};
use crate::{GcReport, HistoryEntry, SessionBuilder};

/// One runtime and its main session. Threads share it.
#[derive(Clone, Default)]
pub struct JaatoClient(Arc<Mutex<ClientState>>);

#[derive(Default)]
struct ClientState {
    connection: Option<ConnectArguments>,
    main: Option<(JaatoRuntime, JaatoSession)>,
    /// The program's choice. `None` leaves it to the configuration.
    is_streaming: Option<bool>,
}

/// What `connect` stores.
#[derive(Clone, Default)]
struct ConnectArguments {
    project: String,
    location: String,
    model: String,
}

/// Gets the session that a client uses, for example to read its context.
pub trait SessionPlugin {
    /// Takes the session.
    fn set_session(&mut self, session: &JaatoSession);
}

impl JaatoClient {
    /// Creates a client that is not connected.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the model, and the project and location of a Google cloud, empty for any other
    /// server. Contacts no server.
    ///
    /// # Errors
    /// If the model is empty.
    pub fn connect(&self, project: &str, location: &str, model: &str) -> Result<()> {
        if model.is_empty() {
            return Err(Error::new(
                ErrorKind::Configuration,
                "`connect` needs the name of a model",
            ));
        }
        self.0.lock().connection = Some(ConnectArguments::new(project, location, model));
        Ok(())
    }

    /// Starts the runtime with the exposed plugins, and the main session. Without a permission
    /// plugin, only tools run that need no prompt.
    ///
    /// # Errors
    /// If the client is not connected, or a part of the registry cannot be used.
    pub fn configure_tools(
        &self,
        registry: &PluginRegistry,
        permission_plugin: Option<PermissionPlugin>,
        ledger: Option<Arc<TokenLedger>>,
    ) -> Result<()> {
        let connection = self.0.lock().connection.clone().ok_or_else(not_connected)?;
        let runtime = JaatoRuntime::new();
        runtime.connect(&connection.project, &connection.location);
        runtime.configure_plugins(registry, permission_plugin, ledger)?;
        let session = runtime.create_session(&connection.model, None, None)?;
        let mut state = self.0.lock();
        if let Some(is_enabled) = state.is_streaming {
            session.set_streaming_enabled(is_enabled);
        }
        state.main = Some((runtime, session));
        Ok(())
    }

    /// Sends a message and returns the final text. `on_output` gets each piece of output with its
    /// source (`model`, or a plugin's name) and its mode: `write` for a new block, `append` to
    /// continue it. A cancelled turn returns its partial text and a mark.
    ///
    /// # Errors
    /// If tools are not configured, or the turn fails.
    pub fn send_message(
        &self,
        message: &str,
        on_output: impl FnMut(&str, &str, &str),
    ) -> Result<String> {
        self.get_session()?.send_message(message, on_output)
    }

    /// Returns the conversation, empty before tools are configured.
    pub fn get_history(&self) -> Vec<Message> {
        self.get_session().map(|session| session.get_history()).unwrap_or_default()
    }

    /// Begins again, with a conversation or with none.
    ///
    /// # Errors
    /// If tools are not configured, or the history is not a valid conversation.
    pub fn reset_session(&self, history: Option<Vec<Message>>) -> Result<()> {
        self.get_session()?.reset_session(history)
    }

    /// Cancels the running message. Returns true if one was running.
    pub fn stop(&self) -> bool {
        self.get_session().is_ok_and(|session| session.request_stop())
    }

    /// Returns true while a message is processed.
    pub fn is_processing(&self) -> bool {
        self.get_session().is_ok_and(|session| session.is_running())
    }

    /// Streams answers, which is the default, or gets each one in full.
    pub fn set_streaming_enabled(&self, is_enabled: bool) {
        let mut state = self.0.lock();
        state.is_streaming = Some(is_enabled);
        if let Some((_, session)) = &state.main {
            session.set_streaming_enabled(is_enabled);
        }
    }

    /// Gives a plugin the main session.
    ///
    /// # Errors
    /// If tools are not configured.
    pub fn set_session_plugin(&self, plugin: &mut dyn SessionPlugin) -> Result<()> {
        plugin.set_session(&self.get_session()?);
        Ok(())
    }

    /// Sets the gc of the main session: `gc_truncate`, or another gc plugin's name. Without
    /// settings, it has the configured ones.
    ///
    /// # Errors
    /// If tools are not configured, or no usable plugin is that gc.
    pub fn set_gc_plugin(&self, plugin: &str, settings: Option<GcSettings>) -> Result<()> {
        let (runtime, session) = self.main_session()?;
        let configured =
            runtime.jaato().map(|jaato| jaato.inner().runtime().setup().config.gc.clone());
        let mut settings = settings.or(configured).unwrap_or_default();
        plugin.clone_into(&mut settings.plugin);
        session.0.change_gc(Some(settings))
    }

    /// Removes the gc of the main session.
    ///
    /// # Errors
    /// If tools are not configured.
    pub fn remove_gc_plugin(&self) -> Result<()> {
        self.get_session()?.0.change_gc(None)
    }

    /// Collects now, even if the context is not full.
    ///
    /// # Errors
    /// If tools are not configured, the session has no gc, or the gc fails.
    pub fn manual_gc(&self) -> Result<GcReport> {
        self.get_session()?.0.gc()
    }

    /// Returns the runtime, on which further sessions can be created.
    ///
    /// # Errors
    /// If tools are not configured.
    pub fn get_runtime(&self) -> Result<JaatoRuntime> {
        Ok(self.main_session()?.0)
    }

    /// Returns the main session.
    ///
    /// # Errors
    /// If tools are not configured.
    pub fn get_session(&self) -> Result<JaatoSession> {
        Ok(self.main_session()?.1)
    }

    fn main_session(&self) -> Result<(JaatoRuntime, JaatoSession)> {
        self.0.lock().main.clone().ok_or_else(not_configured)
    }
}

/// What sessions share: the provider's configuration, plugins, permissions, the ledger.
#[derive(Clone, Default)]
pub struct JaatoRuntime(Arc<Mutex<RuntimeState>>);

#[derive(Default)]
struct RuntimeState {
    connection: ConnectArguments,
    configured: Option<ConfiguredRuntime>,
}

#[derive(Clone)]
struct ConfiguredRuntime {
    jaato: blocking::BlockingJaato,
    registry: PluginRegistry,
    permission_plugin: Option<PermissionPlugin>,
    ledger: Option<Arc<TokenLedger>>,
}

impl JaatoRuntime {
    /// Creates a runtime without plugins.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the project and location of a Google cloud, empty for any other server.
    pub fn connect(&self, project: &str, location: &str) {
        self.0.lock().connection = ConnectArguments::new(project, location, "");
    }

    /// Starts the host with the registry's plugins.
    ///
    /// # Errors
    /// If a part of the registry cannot be used.
    pub fn configure_plugins(
        &self,
        registry: &PluginRegistry,
        permission_plugin: Option<PermissionPlugin>,
        ledger: Option<Arc<TokenLedger>>,
    ) -> Result<()> {
        let ConnectArguments { project, location, .. } = self.0.lock().connection.clone();
        let mut builder = registry.builder();
        for (name, value) in [("PROJECT_ID", project), ("LOCATION", location)] {
            if !value.is_empty() {
                builder = builder.variable(name, value);
            }
        }
        let (jaato, registry) = (blocking::BlockingJaato::start(builder)?, registry.clone());
        let configured = ConfiguredRuntime { jaato, registry, permission_plugin, ledger };
        self.0.lock().configured = Some(configured);
        Ok(())
    }

    /// Creates a session, which is cheap: a subagent has one of its own. `tools` names plugins;
    /// without it, the session has the tools of all exposed ones.
    ///
    /// # Errors
    /// If plugins are not configured, no provider offers the model, or a plugin does not exist.
    pub fn create_session(
        &self,
        model: &str,
        tools: Option<&[&str]>,
        system_instructions: Option<&str>,
    ) -> Result<JaatoSession> {
        let configured = self.0.lock().configured.clone().ok_or_else(not_configured)?;
        let words = configured.registry.exposed_tools(tools)?;
        let mut builder: SessionBuilder = configured.jaato.session().model(model);
        builder = builder.tools(words.iter().map(|word| word.as_str()));
        if let Some(text) = system_instructions {
            builder = builder.system(text);
        }
        if let Some(permission) = configured.permission_plugin {
            builder = builder.asker(permission.0);
        }
        if let Some(ledger) = configured.ledger {
            builder = builder.ledger(ledger);
        }
        let session = configured.jaato.open(builder)?;
        Ok(JaatoSession(Arc::new(session)))
    }

    /// Returns the host below, or `None` before plugins are configured.
    pub fn jaato(&self) -> Option<blocking::BlockingJaato> {
        self.0.lock().configured.as_ref().map(|configured| configured.jaato.clone())
    }
}

/// A conversation with its own history, model and tools. Threads share it.
#[derive(Clone)]
pub struct JaatoSession(Arc<blocking::BlockingSession>);

impl JaatoSession {
    /// Sends a message, as [`JaatoClient::send_message`].
    ///
    /// # Errors
    /// If the turn fails.
    pub fn send_message(
        &self,
        message: &str,
        mut on_output: impl FnMut(&str, &str, &str),
    ) -> Result<String> {
        let mut turn = self.0.send(message);
        let mut block = OutputBlock::default();
        for event in turn.by_ref() {
            block.show_event(&event, &mut on_output);
        }
        Ok(turn.wait()?.text)
    }

    /// Returns the conversation.
    pub fn get_history(&self) -> Vec<Message> {
        self.0.history().into_iter().map(|entry| entry.message).collect()
    }

    /// Begins again, with a conversation or with none.
    ///
    /// # Errors
    /// If the history is not a valid conversation.
    pub fn reset_session(&self, history: Option<Vec<Message>>) -> Result<()> {
        let entry = |message| HistoryEntry { message, mark: None, sent: None, made_by: None };
        self.0.reset(history.unwrap_or_default().into_iter().map(entry))
    }

    /// Names the agent in permission prompts: `main`, or `subagent` with its name.
    ///
    /// # Errors
    /// If the session has ended.
    pub fn set_agent_context(&self, agent_type: &str, agent_name: &str) -> Result<()> {
        let name = if agent_name.is_empty() { agent_type } else { agent_name };
        self.0.set_agent((agent_type != "main").then_some(name))
    }

    /// Cancels the running message. Returns true if one was running.
    pub fn request_stop(&self) -> bool {
        let was_running = self.is_running();
        self.0.handle().stop();
        was_running
    }

    /// Returns true while a message is processed.
    pub fn is_running(&self) -> bool {
        self.0.handle().is_processing()
    }

    /// Streams answers, or gets each one in full.
    pub fn set_streaming_enabled(&self, is_enabled: bool) {
        self.0.handle().set_streaming(is_enabled);
    }

    /// Calls a tool of the session for the program itself.
    ///
    /// # Errors
    /// If the tool does not exist, its arguments do not match, or it fails.
    pub fn call_tool(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        self.0.call(tool, arguments)
    }
}

/// Tells a new block of output from the rest of one.
#[derive(Default)]
struct OutputBlock(Option<String>);

impl OutputBlock {
    fn show_event(&mut self, event: &Event, on_output: &mut impl FnMut(&str, &str, &str)) {
        let (source, text) = match event {
            Event::TextDelta { source, text } | Event::ToolOutput { source, text, .. } => {
                (source, text)
            }
            Event::Notice { source, text } => {
                self.0 = None;
                return on_output(source, text, "write");
            }
            Event::StepStarted { .. } | Event::ToolCallStarted { .. } => {
                self.0 = None;
                return;
            }
            _ => return,
        };
        let mode = if self.0.as_ref() == Some(source) { "append" } else { "write" };
        self.0 = Some(source.clone());
        on_output(source, text, mode);
    }
}

impl ConnectArguments {
    fn new(project: &str, location: &str, model: &str) -> Self {
        let [project, location, model] = [project, location, model].map(str::to_owned);
        Self { project, location, model }
    }
}

fn not_connected() -> Error {
    Error::new(ErrorKind::Configuration, "the client is not connected: call `connect` first")
}

fn not_configured() -> Error {
    let text = "tools are not configured: call `configure_tools` or `configure_plugins` first";
    Error::new(ErrorKind::Configuration, text)
}
