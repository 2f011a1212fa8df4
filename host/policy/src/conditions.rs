//! The conditions under which a rule of a file matches. All of them must hold for the call.

use std::fmt;
use std::path::PathBuf;

use crate::{Glob, JsonDigest, ToolDefinition};

/// A rule's conditions. A condition that is not set matches every call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleConditions {
    /// The tool's name.
    pub tool: Option<Glob>,
    /// The plugin's name.
    pub plugin: Option<Glob>,
    /// The annotations that the tool must have, or must not have.
    pub annotations: Vec<(AnnotationKind, bool)>,
    /// Arguments by name. The text of each must match.
    pub arguments: Vec<(String, Glob)>,
    /// The exact arguments, with no others.
    pub exactly: Option<ExactCall>,
    /// The definition that another program's tool must have, unchanged since the user's answer.
    pub definition: Option<ToolDefinition>,
    /// The root of the workspace in which the call runs.
    pub workspace: Option<PathPattern>,
    /// A simple command that the call runs.
    pub command: Option<CommandPattern>,
    /// A file or folder. It matches if the call names it, or something below it.
    pub path: Option<PathPattern>,
    /// A host that the call names in a URL.
    pub host: Option<Glob>,
    /// The kind of the agent: `main`, `subagent`.
    pub agent_type: Option<Glob>,
    /// The agent's name.
    pub agent_name: Option<Glob>,
    /// Folders that the call must not leave. It matches if a path is in none of them.
    pub outside: Vec<PathPattern>,
    /// Matches a call that runs more than one plain command: it joins commands, substitutes or
    /// writes files.
    pub compound: bool,
    /// The whole call as one line, in the form of the original's patterns. Such a rule can only
    /// deny and ask, and only `permissions.json` has them.
    pub signature: Option<Glob>,
}

/// Exactly one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactCall {
    /// The digest of its arguments.
    pub digest: JsonDigest,
    /// The call as text, for readers of the rule. It has no effect.
    pub text: Option<String>,
}

/// An annotation of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnnotationKind {
    /// It changes nothing.
    ReadOnly,
    /// It may destroy something.
    Destructive,
    /// Repeating it has no further effect.
    Idempotent,
    /// It reaches beyond this machine.
    OpenWorld,
}

/// A simple command: a program and its first words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    /// The program, as it is called.
    pub program: String,
    /// The words after it, in order. Each may contain `*` in a rule that denies or asks.
    pub words: Vec<String>,
    /// Which other words may follow.
    pub rest: RestOfCommand,
}

/// The words that may follow those of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RestOfCommand {
    /// Nothing.
    Nothing,
    /// Words, and options that are known to run nothing and write nothing.
    #[default]
    SafeOptions,
    /// Words and options with which the program is known to only read. Written as `options =
    /// "read"`.
    Reading,
    /// Anything. Written as `options = "any"`. The user takes the risk.
    AnyOptions,
}

/// A file or folder that a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    /// As it was written.
    pub written: String,
    /// The complete path, without `~` and `..`. Its names may contain `*` and `?`.
    pub path: PathBuf,
}

impl AnnotationKind {
    /// All annotations.
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
    /// Parses a pattern as users write it: `git status`, `git *`, `git`. Words are separated by
    /// white space. A `*` at the end says that more words may follow, which is always true.
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

impl fmt::Display for RuleConditions {
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
