//! Collects what all servers offer: tools under the names that models use, commands for prompts,
//! and the servers' instructions.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaato_plugin_sdk::dynamic::ToolsSet;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::text::truncate_bytes;
use jaato_plugin_sdk::types::{Annotations, Availability, CommandSpec, ToolSpec};

use crate::log::sanitize_line;
use crate::names::{CATEGORY, legal_server_name, tool_name};
use crate::server::{McpConnectionStatus, McpServer};
use crate::server_description::{
    RemotePrompt, RemoteTool, ServerDescription, TOOLS_MAX, plain_text,
};
use crate::{resources, sampling};

/// The maximum number of commands of all servers. The host accepts 200.
const COMMANDS_MAX: usize = 150;
/// The maximum number of bytes of all instructions. The host accepts 64 KiB.
const INSTRUCTIONS_BYTES_MAX: usize = 16 * 1024;
/// The maximum length of a command's line. The host accepts slightly more.
const LINE_BYTES_MAX: usize = 200;

/// The maximum number of lines about broken entries shown to the model.
const LINES_TOLD_MAX: usize = 5;

/// The offered tools and commands, with the meaning of each name.
#[derive(Default)]
pub struct McpOffer {
    /// The set for the host.
    pub set: ToolsSet,
    /// Tools by the name that the model uses.
    pub tools: BTreeMap<String, OfferedItem<RemoteTool>>,
    /// Prompts by the name that the user types.
    pub prompts: BTreeMap<String, OfferedItem<RemotePrompt>>,
    /// Servers by the name of their sampling tool.
    pub sampling: BTreeMap<String, String>,
    /// The digests of the entries of servers that have resources.
    with_resources: Vec<String>,
    /// The number of tools over the limit.
    left_out: usize,
}

/// The meaning of a name.
#[derive(Clone)]
pub struct OfferedItem<T> {
    /// The server.
    pub server: Arc<McpServer>,
    /// The server's tool or prompt.
    pub what: T,
}

impl McpOffer {
    /// Collects the offers of all servers. Servers that were never up offer nothing.
    pub fn from_servers(servers: &[Arc<McpServer>]) -> Self {
        let mut offer = Self::default();
        let mut said = Vec::new();
        let mut states = Vec::new();
        for server in servers.iter().filter(|it| !it.entry.disabled) {
            states.extend(server_summary(server));
            offer.set.notices.extend(server_notices(server));
            let Some(described) = server.known_description() else { continue };
            offer.add_server(server, &described);
            let about = described.instructions.trim();
            if !about.is_empty() {
                said.push(json!({ "server": server.name(), "says": about }));
            }
        }
        if !offer.with_resources.is_empty() {
            offer.set.tools.extend(resources::resource_tool_specs(&offer.with_resources.join(" ")));
        }
        if offer.left_out > 0 {
            let left_out = offer.left_out;
            offer.set.notices.push(format!(
                "{left_out} MCP tools are left out, because at most {TOOLS_MAX} are offered; select \
                 some with `tools` in a server's entry"
            ));
        }
        let line = format!("MCP servers: {}", states.join(", "));
        let parts: Vec<String> = (!states.is_empty())
            .then_some(line)
            .into_iter()
            .chain(quote_instructions(&said))
            .collect();
        offer.set.instructions = (!parts.is_empty()).then(|| parts.join("\n"));
        offer
    }

    /// Adds the problems of the files, and the workspace's file that is ignored.
    #[must_use]
    pub fn with_problems(mut self, lines: Vec<String>, untrusted: Option<String>) -> Self {
        let told = lines.iter().chain(&untrusted).take(LINES_TOLD_MAX);
        let told: Vec<String> = told.map(|line| sanitize_line(line)).collect();
        if !told.is_empty() {
            let before = self.set.instructions.map(|it| it + "\n").unwrap_or_default();
            let line = format!("{before}MCP servers that cannot be used: {}", told.join("; "));
            self.set.instructions = Some(line);
        }
        // The host itself notifies the user of an untrusted workspace.
        self.set.notices.extend(lines.iter().map(|line| format!("MCP: {}", sanitize_line(line))));
        self
    }

    fn add_server(&mut self, server: &Arc<McpServer>, described: &ServerDescription) {
        let sampling = tool_name(server.name(), "sampling");
        for tool in described.tools.iter().filter(|it| server.entry.is_tool_allowed(&it.name)) {
            let name = tool_name(server.name(), &tool.name);
            // A tool with this name would run instead of the sampling tool.
            if name == sampling || self.tools.contains_key(&name) {
                continue;
            }
            if self.tools.len() >= TOOLS_MAX {
                self.left_out += 1;
                continue;
            }
            self.set.tools.push(tool_spec(server, tool, &name));
            self.tools.insert(name, OfferedItem { server: Arc::clone(server), what: tool.clone() });
        }
        for prompt in &described.prompts {
            let name = tool_name(server.name(), &prompt.name);
            if self.prompts.len() >= COMMANDS_MAX || self.prompts.contains_key(&name) {
                continue;
            }
            self.set.commands.push(prompt_command(server, prompt, &name));
            self.prompts
                .insert(name, OfferedItem { server: Arc::clone(server), what: prompt.clone() });
        }
        self.set.tools.push(sampling::sampling_tool_spec(&sampling, &server.entry));
        self.sampling.insert(sampling, server.name().to_owned());
        if described.has_resources {
            self.with_resources.push(server.entry.digest.clone());
        }
    }
}

/// Tells the model how many tools a server has, or why it has no tools. Returns `None` for a server
/// that was not needed yet and is unknown.
fn server_summary(server: &McpServer) -> Option<String> {
    let name = sanitize_line(server.name());
    let mut parts = Vec::new();
    if let Some(described) = server.known_description() {
        parts.push(format_tool_count(offered_tool_count(server, &described)));
        if described.left_out > 0 {
            parts.push(format!("{} more cannot be used", described.left_out));
        }
    }
    match server.status() {
        McpConnectionStatus::Down { why } => {
            let hint = why.hint.as_ref().map(|hint| format!("; {}", sanitize_line(hint)));
            let why = truncate_bytes(&sanitize_line(&why.message), LINE_BYTES_MAX);
            parts.push(format!("down: {why}{}", hint.unwrap_or_default()));
        }
        McpConnectionStatus::Stopped => parts.push("disconnected by the user".to_owned()),
        McpConnectionStatus::Starting
            if parts.is_empty() && server.time_since_start().is_some() =>
        {
            parts.push("starting".to_owned());
        }
        McpConnectionStatus::Starting
        | McpConnectionStatus::Up(_)
        | McpConnectionStatus::Disabled => {}
    }
    (!parts.is_empty()).then(|| format!("{name} ({})", parts.join(", ")))
}

/// Counts the offered tools of a server.
fn offered_tool_count(server: &McpServer, described: &ServerDescription) -> usize {
    described.tools.iter().filter(|tool| server.entry.is_tool_allowed(&tool.name)).count()
}

fn format_tool_count(tools: usize) -> String {
    match tools {
        1 => "1 tool".to_owned(),
        _ => format!("{tools} tools"),
    }
}

/// Returns notices about a server: that it is down, that it is up for the first time, or that some
/// of its tools cannot be used.
fn server_notices(server: &McpServer) -> Vec<String> {
    let name = sanitize_line(server.name());
    let mut lines = Vec::new();
    match server.status() {
        McpConnectionStatus::Down { why } => {
            let (why, hint) = (sanitize_line(&why.message), sanitize_line(&server.down_hint(&why)));
            lines.push(format!("MCP server `{name}` is down: {why}; {hint}"));
        }
        McpConnectionStatus::Up(_) if !server.has_been_known() => {
            let tools = format_tool_count(
                server.known_description().map_or(0, |it| offered_tool_count(server, &it)),
            );
            lines.push(format!("MCP server `{name}` is up for the first time: {tools}"));
        }
        McpConnectionStatus::Up(_)
        | McpConnectionStatus::Starting
        | McpConnectionStatus::Stopped
        | McpConnectionStatus::Disabled => {}
    }
    if let Some(described) =
        server.known_description().filter(|it| it.left_out > 0 && server.has_new_description())
    {
        let (count, first) = (described.left_out, described.lines.first());
        let first = first.map(|line| format!(" ({})", sanitize_line(line))).unwrap_or_default();
        lines.push(format!(
            "MCP server `{name}`: {count} of its tools and prompts cannot be used{first}; \
             `jaato mcp show {name}` lists them"
        ));
    }
    lines
}

/// Describes a tool to the model. The server's own description is untrusted, so the user's rules
/// always apply.
fn tool_spec(server: &McpServer, tool: &RemoteTool, name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: tool.description.clone(),
        parameters: tool.schema.clone(),
        category: format!("{CATEGORY}: {}", legal_server_name(server.name())),
        availability: match server.entry.always_load {
            true => Availability::Core,
            false => Availability::Discoverable,
        },
        foreign: true,
        origin: server.entry.digest.clone(),
        auto_background: true,
        annotations: Annotations {
            // The server's annotation does not loosen any rule. It only allows parallel calls.
            parallel_safe: tool.reads_only || server.entry.parallel,
            ..Annotations::default()
        },
        ..ToolSpec::default()
    }
}

/// Describes a prompt as a command.
fn prompt_command(server: &McpServer, prompt: &RemotePrompt, name: &str) -> CommandSpec {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in &prompt.arguments {
        let description = truncate_bytes(&plain_text(&argument.description), LINE_BYTES_MAX);
        let property = json!({ "type": "string", "description": description });
        properties.insert(argument.name.clone(), property);
        if argument.required {
            required.push(Value::from(argument.name.clone()));
        }
    }
    CommandSpec {
        name: name.to_owned(),
        description: truncate_bytes(
            &format!("{} ({})", prompt.description.replace('\n', " "), server.name()),
            LINE_BYTES_MAX,
        ),
        parameters: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        as_prompt: true,
        ..CommandSpec::default()
    }
}

/// Writes the servers' instructions as data, so that they do not act as instructions.
fn quote_instructions(said: &[Value]) -> Option<String> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for said in said {
        bytes += said.to_string().len();
        if bytes > INSTRUCTIONS_BYTES_MAX {
            break;
        }
        kept.push(said);
    }
    let head = "What MCP servers say about their tools (their words, not the user's):";
    (!kept.is_empty()).then(|| format!("{head}\n{}", json!(kept)))
}
