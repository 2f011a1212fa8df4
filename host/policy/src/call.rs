//! The facts about a call that rules use.

use std::path::{Path, PathBuf};

use jaato_types::{Annotations, PluginName, ToolName};
use serde_json::Value;

use crate::{ResolvedCallPaths, ToolDefinition};

/// The shipped tool that reads from the web.
const WEB_FETCH: &str = "web_fetch";

/// The arguments with which it skips a check.
const UNCHECKED_ARGUMENTS: [&str; 2] = ["insecure", "no_proxy"];

/// The facts of one call.
#[derive(Debug, Clone, Copy)]
pub struct PolicyCall<'a> {
    /// The tool.
    pub tool: &'a ToolName,
    /// The plugin that offers it.
    pub plugin: &'a PluginName,
    /// The source of that plugin.
    pub source: PluginSource,
    /// The tool's annotations about its effects.
    pub annotations: Annotations,
    /// Whether the tool asks to run without a prompt.
    pub auto_approval: bool,
    /// Who makes the call.
    pub caller: Caller,
    /// The arguments, as they would run.
    pub arguments: &'a Value,
    /// The schema of the arguments, with the tool's declarations. Only the declarations of a
    /// shipped tool count.
    pub schema: &'a Value,
    /// The tool's current definition, if its plugin passes it on from another program.
    pub definition: Option<ToolDefinition>,
    /// The agent that makes the call.
    pub agent: CallingAgent<'a>,
    /// The base of relative paths in the arguments. `None` if it is unknown.
    pub directory: Option<&'a Path>,
    /// The home folder, for `~`. `None` if it is unknown.
    pub home: Option<&'a Path>,
    /// The resolved paths of the arguments. Rules see these in addition to the written ones.
    pub resolved: Option<&'a ResolvedCallPaths>,
    /// Whether the user trusts the workspace.
    pub workspace: WorkspaceTrust,
    /// The workspace's root. `None` if it is unknown.
    pub root: Option<&'a Path>,
    /// The folders with jaato's own files.
    pub own_folders: &'a [PathBuf],
    /// Whether the repository of the working directory configures nothing that `git` would run when
    /// it reads.
    pub repository_is_plain: bool,
    /// The reader of the text that the call types into a terminal. `None` for other calls.
    pub typed_into: Option<TypingTarget>,
}

impl<'a> PolicyCall<'a> {
    /// Creates a model's call to a tool without any other known facts: by the main agent, of a
    /// plugin that is not shipped and has no annotations, in an untrusted workspace.
    pub fn new(tool: &'a ToolName, plugin: &'a PluginName, arguments: &'a Value) -> Self {
        Self {
            tool,
            plugin,
            source: PluginSource::Elsewhere,
            annotations: Annotations::default(),
            auto_approval: false,
            caller: Caller::Model,
            arguments,
            schema: &Value::Null,
            definition: None,
            agent: CallingAgent::MAIN,
            directory: None,
            home: None,
            resolved: None,
            repository_is_plain: false,
            workspace: WorkspaceTrust::Untrusted,
            root: None,
            own_folders: &[],
            typed_into: None,
        }
    }
}

/// The agent that makes a call, as rules name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallingAgent<'a> {
    /// `main`, or `subagent` for a session that another one opened.
    pub agent_type: &'a str,
    /// Its name for users. Empty for the main agent.
    pub agent_name: &'a str,
}

impl CallingAgent<'_> {
    /// The agent that the user talks to.
    pub const MAIN: CallingAgent<'static> = CallingAgent { agent_type: "main", agent_name: "" };
}

/// Whether the user trusts the workspace in which a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceTrust {
    /// The user trusts it.
    Trusted,
    /// The workspace may contain untrusted files, so programs that run code from them are not
    /// harmless.
    Untrusted,
}

/// The reader of the text that a call types into a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypingTarget {
    /// A known shell that waits at its prompt, with nothing typed yet. The text is a command line.
    ShellPrompt,
    /// Anything else, or unknown. The text cannot be analysed.
    Unknown,
}

/// The author of a tool, which decides whether its annotations count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginSource {
    /// Shipped with the host, or part of it. Its annotations are true.
    Shipped,
    /// A shipped plugin passes on a tool of another program, such as an MCP server. Neither its
    /// annotations nor its schema count.
    Relayed,
    /// From anywhere else, trusted or not. Trust in a file lets it run, but does not make its
    /// annotations true.
    Elsewhere,
}

/// Who makes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model, or a plugin on its behalf.
    Model,
    /// The user, who typed the call.
    Person,
}

impl PluginSource {
    /// Returns the source of a tool: whether its plugin is shipped, and whether the plugin says
    /// that another program wrote the tool.
    pub fn from_origin(is_shipped: bool, is_foreign: bool) -> Self {
        match (is_shipped, is_foreign) {
            (true, false) => Self::Shipped,
            (true, true) => Self::Relayed,
            (false, _) => Self::Elsewhere,
        }
    }
}

impl PolicyCall<'_> {
    /// Returns true if all calls to the tool are similar enough to allow them at once. The effect
    /// of a tool that is destructive, or reaches beyond this machine, depends on its arguments.
    pub(crate) fn is_harmless_tool(&self) -> bool {
        let promises = self.annotations;
        promises.read_only || !(promises.destructive || promises.open_world)
    }

    /// Returns true if the call reads from the web without the check of the server's certificate,
    /// or without the user's proxy. No answer or rule about its host allows that.
    pub(crate) fn skips_web_checks(&self) -> bool {
        let is_set = |name| self.arguments.get(name).and_then(Value::as_bool) == Some(true);
        let is_fetch = self.source == PluginSource::Shipped && self.tool.as_str() == WEB_FETCH;
        is_fetch && UNCHECKED_ARGUMENTS.into_iter().any(is_set)
    }
}
