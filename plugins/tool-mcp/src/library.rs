//! A library for connections to servers without jaato. The seed calls it `MCPClientManager`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jaato_plugin_sdk::serde_json::{Map, Value};
use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rmcp::RoleClient;
use rmcp::transport::Transport;

use crate::call::{McpRequest, request_on_connection};
use crate::client::McpClient;
use crate::config::{HttpServerAddress, StdioServerAddress};
use crate::connection::{self, McpConnection, OpenConnection, ProtocolEra};
use crate::log::{ServerLog, ServerLogStore};
use crate::runtime::McpRuntime;
use crate::server_description::{self, RemoteTool};
use crate::transport::http::{self, Authorize, HttpBackend};
use crate::transport::program;
use crate::transport::wire::{LineTransport, StdioWire};

/// The maximum time for the probe of a server's era.
const PROBE_TIME: Duration = Duration::from_secs(5);
/// The maximum time for setting up a connection.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The time limit of a call.
const CALL_TIME: Duration = Duration::from_secs(60);

/// Connections to several servers.
///
/// ```
/// use jaato_plugin_sdk::serde_json::{Map, json};
/// use tool_mcp::library::McpClientManager;
/// use tool_mcp::transport::wire::StdioWire;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// // A server that knows one tool. `connect` starts a program and speaks to it by its standard
/// // input and output; any other pair of channels does as well.
/// let wire = StdioWire::with_request_handler(|method, params| match method {
///     "initialize" => Some(json!({
///         "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
///         "serverInfo": { "name": "moon", "version": "1" },
///     })),
///     "tools/list" => Some(json!({ "tools": [{ "name": "echo", "inputSchema": {} }] })),
///     "tools/call" => {
///         let text = &params["arguments"]["text"];
///         Some(json!({ "content": [{ "type": "text", "text": text }] }))
///     }
///     _ => None,
/// });
/// let mut manager = McpClientManager::new()?;
/// manager.connect_over("moon", wire).await?;
/// assert_eq!(manager.find_tool("echo"), Some("moon"));
///
/// let arguments = json!({ "text": "hello" }).as_object().cloned().unwrap_or_default();
/// let answer = manager.call_tool_auto("echo", arguments).await?;
/// assert_eq!(answer["content"][0]["text"], "hello");
/// assert!(manager.call_tool("sun", "echo", Map::new()).await.is_err());
/// manager.disconnect("moon").await?;
/// # Ok::<(), jaato_plugin_sdk::Error>(())
/// # }).unwrap();
/// ```
pub struct McpClientManager {
    runtime: Arc<McpRuntime>,
    lines: Arc<ServerLogStore>,
    connected: BTreeMap<String, ConnectedServer>,
}

/// A connected server.
struct ConnectedServer {
    opened: OpenConnection,
    tools: Vec<RemoteTool>,
}

impl McpClientManager {
    /// Creates a manager without connections.
    ///
    /// # Errors
    /// `unavailable` if the system cannot start a thread.
    pub fn new() -> Result<Self> {
        let (lines, connected) = (Arc::default(), BTreeMap::new());
        Ok(Self { runtime: McpRuntime::start()?, lines, connected })
    }

    /// Starts a program and connects to it. The program gets this process's environment variables
    /// and those given.
    ///
    /// # Errors
    /// `conflict` if the name is already connected, or the reason why the program cannot be started
    /// or does not answer.
    pub async fn connect(
        &mut self,
        name: &str,
        command: &str,
        args: &[&str],
        env: BTreeMap<String, String>,
    ) -> Result<()> {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        let reach = StdioServerAddress { command: command.to_owned(), args, env, cwd: None };
        let log = self.lines.server_log(name);
        let wire = program::start_program(&reach, &log)?;
        match self.open_stdio(name, wire, ProtocolEra::Unknown, log.clone()).await {
            // Some servers end if the first message is not `initialize`.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                let wire = program::start_program(&reach, &log)?;
                self.open_stdio(name, wire, ProtocolEra::Legacy, log).await
            }
            outcome => outcome,
        }
    }

    /// Connects over any pair of channels.
    ///
    /// # Errors
    /// The errors of [`McpClientManager::connect`].
    pub async fn connect_over(&mut self, name: &str, wire: StdioWire) -> Result<()> {
        let log = self.lines.server_log(name);
        self.open_stdio(name, wire, ProtocolEra::Unknown, log).await
    }

    /// Connects to a URL.
    ///
    /// # Errors
    /// The errors of [`McpClientManager::connect`], or `permission_denied` if the server requires a
    /// login.
    pub async fn connect_http(
        &mut self,
        name: &str,
        reach: &HttpServerAddress,
        backend: Arc<dyn HttpBackend>,
        login: Option<Arc<dyn Authorize>>,
    ) -> Result<()> {
        let transport = || http::create_http_transport(reach, Arc::clone(&backend), login.clone());
        let log = self.lines.server_log(name);
        match self.open_transport(name, transport()?, ProtocolEra::Unknown, log.clone()).await {
            // Some servers answer unknown messages, and thus the probe, with invalid data.
            Err(error) if error.kind == ErrorKind::Unavailable => {
                self.open_transport(name, transport()?, ProtocolEra::Legacy, log).await
            }
            outcome => outcome,
        }
    }

    async fn open_stdio(
        &mut self,
        name: &str,
        wire: StdioWire,
        era: ProtocolEra,
        log: ServerLog,
    ) -> Result<()> {
        let transport = LineTransport::new(wire, PROBE_TIME, log.clone());
        self.open_transport(name, transport, era, log).await
    }

    async fn open_transport<T: Transport<RoleClient> + 'static>(
        &mut self,
        name: &str,
        transport: T,
        era: ProtocolEra,
        log: ServerLog,
    ) -> Result<()> {
        if self.connected.contains_key(name) {
            let text = format!("Server '{name}' is already connected");
            return Err(Error::new(ErrorKind::Conflict, text));
        }
        let spawner = self.runtime.spawner();
        let (client, on) = (McpClient::new(log, Vec::new()), spawner.clone());
        let work = async move {
            let opened = connection::open_connection(transport, client, era, on).await;
            let opened = opened.map_err(|error| connection::explain_open_error(&error))?;
            let described = server_description::request_description(&opened.connection).await?;
            Ok(ConnectedServer { opened, tools: described.tools })
        };
        let late = || Error::new(ErrorKind::Timeout, format!("server '{name}' does not answer"));
        let bounded = async move { tokio::time::timeout(CONNECT_TIME, work).await };
        let connected = spawner.run_on_runtime(bounded).await?.unwrap_or_else(|_| Err(late()))?;
        self.connected.insert(name.to_owned(), connected);
        Ok(())
    }

    /// Closes a connection and ends its program.
    ///
    /// # Errors
    /// `not_found` if the server is not connected.
    pub async fn disconnect(&mut self, name: &str) -> Result<()> {
        let Some(mut connected) = self.connected.remove(name) else {
            return Err(not_connected_error(name));
        };
        let close = async move {
            // The connection is closed, regardless of the result.
            let _ = connected.opened.running.close().await;
        };
        self.runtime.spawner().run_on_runtime(close).await
    }

    /// Runs a server's tool and returns the server's response.
    ///
    /// # Errors
    /// `not_found` if the server is not connected, or the server's error.
    pub async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value> {
        let connected = self.connected.get(server).ok_or_else(|| not_connected_error(server))?;
        let asked = McpRequest::Tool { name: tool.to_owned(), arguments };
        request_on_connection(&connected.opened.connection, &asked, CALL_TIME, None).await
    }

    /// Returns the first server that has a tool.
    pub fn find_tool(&self, tool: &str) -> Option<&str> {
        let has =
            |connected: &ConnectedServer| connected.tools.iter().any(|known| known.name == tool);
        self.connected.iter().find(|(_, connected)| has(connected)).map(|(name, _)| name.as_str())
    }

    /// Runs a tool on the first server that has it.
    ///
    /// # Errors
    /// `not_found` if no server has the tool, or the errors of [`McpClientManager::call_tool`].
    pub async fn call_tool_auto(&self, tool: &str, arguments: Map<String, Value>) -> Result<Value> {
        let Some(server) = self.find_tool(tool) else {
            let text = format!("Tool '{tool}' not found on any server");
            return Err(Error::new(ErrorKind::NotFound, text));
        };
        self.call_tool(server, tool, arguments).await
    }

    /// Lists the tools by server.
    pub fn all_tools(&self) -> impl Iterator<Item = (&str, &[RemoteTool])> {
        self.connected.iter().map(|(name, connected)| (name.as_str(), connected.tools.as_slice()))
    }

    /// Returns a server's connection, which sends requests.
    ///
    /// # Errors
    /// `not_found` if the server is not connected.
    pub fn get_connection(&self, server: &str) -> Result<Arc<McpConnection>> {
        let connected = self.connected.get(server).ok_or_else(|| not_connected_error(server))?;
        Ok(Arc::clone(&connected.opened.connection))
    }
}

fn not_connected_error(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("Server '{name}' not connected"))
}
