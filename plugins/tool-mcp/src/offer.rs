//! What is offered of all servers: tools by the names that models call, commands for prompts, and
//! what servers say about themselves.

use std::collections::BTreeMap;
use std::sync::Arc;

use jaato_plugin_sdk::dynamic::ToolsSet;
use jaato_plugin_sdk::serde_json::{Map, Value, json};
use jaato_plugin_sdk::types::{Availability, CommandSpec, ToolSpec};

use crate::described::{Described, RemotePrompt, RemoteTool, cut, plain};
use crate::names::{CATEGORY, server_part, tool_name};
use crate::server::Server;
use crate::{resources, sampling};

/// Tools of all servers; the host takes a thousand of a plugin.
const TOOLS_MAX: usize = 900;
/// Commands of all servers; the host takes 200.
const COMMANDS_MAX: usize = 150;
/// Bytes of all instructions; the host takes 64 KiB.
const INSTRUCTIONS_BYTES_MAX: usize = 16 * 1024;
/// Longest line of a command; the host takes some more.
const LINE_BYTES_MAX: usize = 200;

/// What is offered, and what each name stands for.
#[derive(Default)]
pub struct Offer {
    /// What the host is told.
    pub set: ToolsSet,
    /// Tools by the name that a model calls.
    pub tools: BTreeMap<String, Meant<RemoteTool>>,
    /// Prompts by the name that a person types.
    pub prompts: BTreeMap<String, Meant<RemotePrompt>>,
    /// Servers by the name of their tool for sampling.
    pub sampling: BTreeMap<String, String>,
    /// The digests of the entries of servers that have resources.
    with_resources: Vec<String>,
}

/// What a name stands for.
#[derive(Clone)]
pub struct Meant<T> {
    /// Whose it is.
    pub server: Arc<Server>,
    /// What.
    pub what: T,
}

impl Offer {
    /// Puts together what servers have. Those that were never up have nothing.
    pub fn of(servers: &[Arc<Server>]) -> Self {
        let mut offer = Self::default();
        let mut said = Vec::new();
        for server in servers.iter().filter(|it| !it.entry.disabled) {
            let Some(described) = server.described() else { continue };
            offer.take(server, &described);
            let about = described.instructions.trim();
            if !about.is_empty() {
                said.push(json!({ "server": server.name(), "says": about }));
            }
        }
        if !offer.with_resources.is_empty() {
            offer.set.tools.extend(resources::specs(&offer.with_resources.join(" ")));
        }
        offer.set.instructions = instructions(&said);
        offer
    }

    fn take(&mut self, server: &Arc<Server>, described: &Described) {
        let sampling = tool_name(server.name(), "sampling");
        for tool in described.tools.iter().filter(|it| server.entry.allows(&it.name)) {
            let name = tool_name(server.name(), &tool.name);
            // A tool of this name would be run in the place of the question to a model.
            if self.tools.len() >= TOOLS_MAX || name == sampling || self.tools.contains_key(&name) {
                continue;
            }
            self.set.tools.push(spec(server, tool, &name));
            self.tools.insert(name, Meant { server: Arc::clone(server), what: tool.clone() });
        }
        for prompt in &described.prompts {
            let name = tool_name(server.name(), &prompt.name);
            if self.prompts.len() >= COMMANDS_MAX || self.prompts.contains_key(&name) {
                continue;
            }
            self.set.commands.push(command(server, prompt, &name));
            self.prompts.insert(name, Meant { server: Arc::clone(server), what: prompt.clone() });
        }
        self.set.tools.push(sampling::spec(&sampling, &server.entry));
        self.sampling.insert(sampling, server.name().to_owned());
        if described.has_resources {
            self.with_resources.push(server.entry.digest.clone());
        }
    }
}

/// Describes a tool for the model. Whatever the server says of it is its own word: it never runs
/// without the person's rules.
fn spec(server: &Server, tool: &RemoteTool, name: &str) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: tool.description.clone(),
        parameters: tool.schema.clone(),
        category: format!("{CATEGORY}: {}", server_part(server.name())),
        availability: match server.entry.always_load {
            true => Availability::Core,
            false => Availability::Discoverable,
        },
        foreign: true,
        origin: server.entry.digest.clone(),
        auto_background: true,
        ..ToolSpec::default()
    }
}

/// Describes a prompt as a command of the person's.
fn command(server: &Server, prompt: &RemotePrompt, name: &str) -> CommandSpec {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in &prompt.arguments {
        let description = cut(&plain(&argument.description), LINE_BYTES_MAX);
        let property = json!({ "type": "string", "description": description });
        properties.insert(argument.name.clone(), property);
        if argument.required {
            required.push(Value::from(argument.name.clone()));
        }
    }
    CommandSpec {
        name: name.to_owned(),
        description: cut(
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

/// Writes down what servers say about themselves, as data: nothing in it is an instruction.
fn instructions(said: &[Value]) -> Option<String> {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for said in said {
        bytes += said.to_string().len();
        if bytes > INSTRUCTIONS_BYTES_MAX {
            break;
        }
        kept.push(said);
    }
    let head = "What MCP servers say about their tools (their words, not the person's):";
    (!kept.is_empty()).then(|| format!("{head}\n{}", json!(kept)))
}
