//! When a rule of a file matches: all that it says must be true of the call.

use std::fmt;
use std::path::PathBuf;

use crate::{Glob, JsonDigest, ToolDefinition};

/// What a rule says about the calls it is for. What it does not say matches every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    /// The tool's name.
    pub tool: Option<Glob>,
    /// The plugin's name.
    pub plugin: Option<Glob>,
    /// What the tool promises, or what it must not promise.
    pub annotations: Vec<(Annotation, bool)>,
    /// Arguments by name; the text of each must match.
    pub arguments: Vec<(String, Glob)>,
    /// The arguments, all of them and no others.
    pub exactly: Option<ExactCall>,
    /// What the tool of another program must be, unchanged since the user's answer.
    pub definition: Option<ToolDefinition>,
    /// The root of the workspace in which the call runs.
    pub workspace: Option<PathPattern>,
    /// A simple command that the call runs.
    pub command: Option<CommandPattern>,
    /// A file or folder: the call names it, or something below it.
    pub path: Option<PathPattern>,
    /// A host that the call names in a URL.
    pub host: Option<Glob>,
    /// The kind of the agent: `main`, `subagent`.
    pub agent_type: Option<Glob>,
    /// The agent's name.
    pub agent_name: Option<Glob>,
    /// Folders that the call must not leave: it matches when a path lies in none of them.
    pub outside: Vec<PathPattern>,
    /// It runs more than one plain command: what joins commands, substitutes or writes files.
    pub compound: bool,
    /// The whole call as one line, in the form of the original's patterns. Such a rule can only
    /// forbid and ask; it is read from `permissions.json` alone.
    pub signature: Option<Glob>,
}

/// Exactly one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactCall {
    /// The digest of its arguments.
    pub digest: JsonDigest,
    /// The call as text, for readers of the rule; it decides nothing.
    pub text: Option<String>,
}

/// What a tool can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotation {
    /// Changes nothing.
    ReadOnly,
    /// May destroy.
    Destructive,
    /// Doing it twice is doing it once.
    Idempotent,
    /// Reaches beyond this machine.
    OpenWorld,
}

/// A simple command: a program and the words that it begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    /// The program, as it is called.
    pub program: String,
    /// The words behind it, in order. Each may hold `*` for a rule that forbids or asks.
    pub words: Vec<String>,
    /// Which other words may follow.
    pub rest: RestOfCommand,
}

/// What may stand behind the words that a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestOfCommand {
    /// Nothing.
    Nothing,
    /// Words, and those options of which it is known that they run nothing and write nothing.
    #[default]
    SafeOptions,
    /// Words and options with which, as jaato knows, the program only reads. Written as
    /// `options = "read"`.
    Reading,
    /// Anything. Written as `options = "any"`: the user takes the risk.
    AnyOptions,
}

/// A file or folder that a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    /// As it was written.
    pub written: String,
    /// Whole, without `~` and `..`; may hold `*` and `?` in its names.
    pub path: PathBuf,
}

impl Annotation {
    /// Every one of them.
    pub const ALL: [Self; 4] =
        [Self::ReadOnly, Self::Destructive, Self::Idempotent, Self::OpenWorld];

    /// The name that rules use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::Destructive => "destructive",
            Self::Idempotent => "idempotent",
            Self::OpenWorld => "open_world",
        }
    }
}

impl CommandPattern {
    /// Reads a pattern as people write it: `git status`, `git *`, `git`. Words are parted by white
    /// space; a `*` at the end says that more may follow, which holds without it too.
    pub fn parse(text: &str, rest: RestOfCommand) -> Option<Self> {
        let mut words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        if words.len() > 1 && words.last().is_some_and(|word| word == "*") {
            words.pop();
        }
        let program = (!words.is_empty()).then(|| words.remove(0))?;
        Some(Self { program, words, rest })
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.words.iter().try_for_each(|word| write!(f, " {word}"))
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            parts.extend(value.map(|value| format!("{name} = {value:?}")));
        };
        let text = |glob: &Option<Glob>| glob.as_ref().map(ToString::to_string);
        add("tool", text(&self.tool));
        add("plugin", text(&self.plugin));
        add("command", self.command.as_ref().map(ToString::to_string));
        let reads = self.command.as_ref().is_some_and(|it| it.rest == RestOfCommand::Reading);
        add("options", reads.then(|| "read".to_owned()));
        add("path", self.path.as_ref().map(|path| path.written.clone()));
        add("host", text(&self.host));
        for (name, value) in &self.arguments {
            add(&format!("argument.{name}"), Some(value.to_string()));
        }
        if let Some(exactly) = &self.exactly {
            match &exactly.text {
                Some(text) => add("call", Some(text.clone())),
                None => add("exactly", Some(exactly.digest.to_string())),
            }
        }
        add("workspace", self.workspace.as_ref().map(|root| root.written.clone()));
        add("agent_type", text(&self.agent_type));
        add("agent_name", text(&self.agent_name));
        add("signature", text(&self.signature));
        for (annotation, wanted) in &self.annotations {
            parts.push(format!("{} = {wanted}", annotation.name()));
        }
        if !self.outside.is_empty() {
            let folders: Vec<&str> =
                self.outside.iter().map(|path| path.written.as_str()).collect();
            parts.push(format!("outside = {folders:?}"));
        }
        if self.compound {
            parts.push("compound = true".to_owned());
        }
        f.write_str(if parts.is_empty() { "every call" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}
