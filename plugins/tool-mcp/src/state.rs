//! The plugin's state. Each process has one, shared by all sessions.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use jaato_plugin_sdk::dynamic::{ToolsAwaited, ToolsMissing};
use jaato_plugin_sdk::hooks::{CompleteWords, WordChoices};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::schemars;
use jaato_plugin_sdk::serde_json::{self, Map};
use tokio::sync::Notify;

use crate::cache::McpServerCache;
use crate::config::{FILE_NAME, McpConfigLocations, StdioServerAddress};
use crate::content::McpContent;
use crate::log::{ServerLog, ServerLogStore};
use crate::names::PREFIX;
use crate::runner::PackageInstallRegistration;
use crate::runtime::{McpRuntime, McpSpawner};
use crate::server::{McpServer, ProgramLauncher, SharedServerContext};
use crate::server_requests::SessionCall;
use crate::servers::{McpServers, read_config_files};
use crate::transport::stdio;
use crate::transport::wire::StdioWire;
use crate::{call, resources, sampling, user_commands};

/// Answers of at least this size are processed on the host's thread pool.
const LARGE_BYTES: usize = 64 * 1024;

/// `[plugins.tool-mcp]`.
#[tool_type]
#[serde(default)]
#[derive(Default)]
struct Config {
    /// Servers by name, as in `.mcp.json`.
    servers: Map<String, Value>,
    /// The folder with the user's `.mcp.json`. The default is the home folder.
    home: String,
}

/// The servers of a process and the thread of their protocol.
pub struct McpPlugin {
    runtime: Arc<McpRuntime>,
    /// The servers.
    pub servers: Arc<McpServers>,
}

/// Starts programs through the host, so that they end with it.
struct HostProgramLauncher {
    home: Home,
    spawner: McpSpawner,
}

impl ProgramLauncher for HostProgramLauncher {
    fn launch_program(
        &self,
        reach: &StdioServerAddress,
        log: &ServerLog,
        install: Option<PackageInstallRegistration>,
    ) -> BoxFuture<'static, Result<StdioWire>> {
        let (home, spawner) = (self.home.clone(), self.spawner.clone());
        let (reach, log) = (reach.clone(), log.clone());
        async move { stdio::start_stdio_program(&home, &reach, &spawner, &log, install).await }
            .boxed()
    }
}

impl State for McpPlugin {
    async fn create(home: &Home, _saved: Option<Value>) -> Result<Self> {
        let config: Config = home.config().await?;
        let facts = home.session().await?;
        let folder = match config.home.is_empty() {
            true => std::env::var_os("HOME").map(PathBuf::from),
            false => Some(PathBuf::from(config.home)),
        };
        let places = McpConfigLocations {
            workspace: facts.trusted_workspace.map(PathBuf::from),
            agreed: facts.agreed_variables,
            home: folder.filter(|folder| folder.is_absolute()),
            folder: PathBuf::from(&facts.working_directory),
            settings: config.servers,
        };
        let kept = home.store().folder().await.ok().map(PathBuf::from);
        let reading = places.clone();
        let read = move |_: &Reporter| {
            let kept = kept.as_deref();
            (
                McpServerCache::load_cache(kept),
                ServerLogStore::open_in_folder(kept),
                read_config_files(&reading),
            )
        };
        let (cache, lines, (configured, prints)) = home.blocking(read).await?;
        let runtime = McpRuntime::start()?;
        let spawner = runtime.spawner();
        let launch = HostProgramLauncher { home: home.clone(), spawner: spawner.clone() };
        let around = SharedServerContext {
            launch: Arc::new(launch),
            home: Some(home.clone()),
            spawner,
            lines: Arc::new(lines),
            installs: Arc::default(),
            cache,
            roots: vec![facts.working_directory],
            changed: Notify::new(),
        };
        for line in &configured.lines {
            home.log(LogLevel::Warn, line);
        }
        let servers = McpServers::new(Arc::new(around), places);
        servers.apply_config(configured, prints);
        if let Err(error) = servers.publish_offer(home).await {
            // Another instance closed a moment ago and set its tools, so these are set later.
            home.log(LogLevel::Debug, &error.message);
            servers.around.changed.notify_one();
        }
        servers.publish_changes(home);
        Ok(Self { runtime, servers })
    }

    async fn close(&self) {
        self.servers.close_connections().await;
        self.runtime.stop().await;
    }

    fn describe(description: &mut Description) {
        description.config_schema = serde_json::to_value(schemars::schema_for!(Config)).ok();
        description.services =
            ["host_process", "ask", "model.complete", "secret", "tools.call", "workspace_file"]
                .map(str::to_owned)
                .to_vec();
        // The plugin opens when a session begins. Otherwise the session would not know its tools.
        description.at_start = true;
        description.only_with_files =
            ["{home}", "{workspace}"].map(|folder| format!("{folder}/{FILE_NAME}")).to_vec();
        description.tool_prefixes =
            [PREFIX, resources::LIST, resources::READ].map(str::to_owned).to_vec();
        description.commands = vec![user_commands::mcp_command_spec()];
    }

    async fn await_tools(cx: &Cx<Self>, awaited: ToolsAwaited) -> Result<ToolsMissing> {
        Ok(cx.state().servers.await_tools(&awaited).await)
    }

    async fn call_tool(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        let servers = &cx.state().servers;
        let offer = servers.current_offer();
        if offer.sampling.contains_key(name) {
            return Ok(Output::json(sampling::sample_model(&cx.reporter(), &arguments).await?));
        }
        if name == resources::LIST || name == resources::READ {
            let server = servers.find_server(arguments["server"].as_str().unwrap_or_default())?;
            let site = Arc::new(SessionCall::new(cx.reporter(), server.name(), name));
            return resources::run_resource_tool(&cx.reporter(), &server, name, &arguments, site)
                .await;
        }
        let Some(meant) = offer.tools.get(name) else {
            let text = format!("the MCP server no longer has a tool `{name}`");
            return Err(Error::new(ErrorKind::UnknownTool, text));
        };
        let (server, tool) = (&meant.server, &meant.what);
        let Value::Object(arguments) = arguments else {
            return Err(Error::new(ErrorKind::InvalidArguments, "arguments must be an object"));
        };
        let site = Arc::new(SessionCall::new(cx.reporter(), server.name(), &tool.name));
        let awaited = std::slice::from_ref(server);
        servers.start_and_wait(awaited, McpServer::start_time, &cx.reporter()).await;
        let answer = call::run_tool(server, tool, arguments, Some(site)).await?;
        let content = match is_large_answer(&answer) {
            true => cx.blocking(move |_| McpContent::from_call_response(answer)).await?,
            false => McpContent::from_call_response(answer),
        };
        Ok(Output::json(content.into_tool_result(&cx.reporter(), &tool.name).await?))
    }

    async fn command(cx: &Cx<Self>, name: &str, arguments: Value) -> Result<Output> {
        match name {
            user_commands::NAME => {
                user_commands::run_mcp_command(&cx.reporter(), &cx.state().servers, &arguments)
                    .await
            }
            name => {
                user_commands::run_prompt(&cx.reporter(), &cx.state().servers, name, arguments)
                    .await
            }
        }
    }

    async fn complete_words(cx: &Cx<Self>, asked: CompleteWords) -> Result<WordChoices> {
        Ok(user_commands::suggest_words(&cx.state().servers, &asked))
    }
}

/// Returns true if processing an answer may take long.
fn is_large_answer(answer: &Value) -> bool {
    let texts = answer["content"].as_array().into_iter().flatten().flat_map(|block| {
        [&block["text"], &block["data"], &block["resource"]["blob"], &block["resource"]["text"]]
    });
    let bytes: usize = texts.filter_map(Value::as_str).map(str::len).sum();
    bytes >= LARGE_BYTES
}

impl McpPlugin {
    /// Finds a server, as [`McpServers::find_server`] does.
    ///
    /// # Errors
    /// `not_found`, which lists the configured servers.
    pub fn find_server(&self, name: &str) -> Result<Arc<McpServer>> {
        self.servers.find_server(name)
    }
}
