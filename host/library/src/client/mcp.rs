//! The tools of MCP servers, by the names that the servers give them.

use serde_json::{Map, Value};

use super::facade::JaatoRuntime;
use crate::blocking::BlockingJaato;
use crate::types::{Error, ErrorKind, Result};

/// Calls tools of MCP servers. The plugin `tool-mcp` connects to the servers that its configuration
/// or `.mcp.json` names, and keeps the connections.
#[derive(Clone)]
pub struct MCPClientManager(BlockingJaato);

impl MCPClientManager {
    /// Uses the servers of a host.
    pub fn new(jaato: BlockingJaato) -> Self {
        Self(jaato)
    }

    /// Uses the servers of a runtime.
    ///
    /// # Errors
    /// If the runtime's plugins are not configured.
    pub fn of_runtime(runtime: &JaatoRuntime) -> Result<Self> {
        let text = "the runtime has no plugins yet: call `configure_plugins` first";
        let missing = || Error::new(ErrorKind::Configuration, text);
        runtime.jaato().map(Self).ok_or_else(missing)
    }

    /// Lists the tools of all servers, each with its server's name.
    ///
    /// # Errors
    /// Only by a bug.
    pub fn all_tools(&self) -> Result<Vec<(String, String)>> {
        let tools = self.0.wait(self.0.inner().tools())?;
        let names = tools.iter().filter_map(|tool| {
            let (server, name) = tool.name.as_str().strip_prefix("mcp__")?.split_once("__")?;
            Some((server.to_owned(), name.to_owned()))
        });
        Ok(names.collect())
    }

    /// Calls a tool of a server, without a permission prompt.
    ///
    /// # Errors
    /// If the tool does not exist or fails.
    pub fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
    ) -> Result<Map<String, Value>> {
        self.0.call(&format!("mcp__{server}__{tool}"), arguments)
    }

    /// Calls a tool of the first server that has it.
    ///
    /// # Errors
    /// If no server has it, or it fails.
    pub fn call_tool_auto(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        let all = self.all_tools()?;
        let server = all.iter().find(|(_, name)| name == tool).map(|(server, _)| server);
        let missing = || {
            let text = format!("tool `{tool}` was not found on any MCP server");
            Error::new(ErrorKind::NotFound, text)
        };
        self.call_tool(server.ok_or_else(missing)?, tool, arguments)
    }
}
