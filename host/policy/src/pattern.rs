//! What an approval of a person remembers, and for how long.

use std::path::{Path, PathBuf};

use jaato_types::ToolName;

use crate::shell;
use crate::{ArgumentsDigest, Call, CommandPattern, PluginSource, RestOfCommand};

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For this call.
    Once,
    /// Until the turn ends.
    Turn,
    /// Until the session ends.
    Session,
    /// For good: it is written into the person's file.
    Always,
}

impl Scope {
    /// Every scope, from the shortest.
    pub const ALL: [Self; 4] = [Self::Once, Self::Turn, Self::Session, Self::Always];

    /// The scope's name in events, records and answers. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Always => "always",
        }
    }

    /// Finds a scope by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// The calls that an answer holds for, beside the tool and its plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Calls with exactly these arguments.
    Exact(ArgumentsDigest),
    /// Calls that run one simple command beginning with these words, and nothing else.
    Command {
        /// The program.
        program: String,
        /// The words behind it.
        words: Vec<String>,
    },
    /// Calls of which every path lies in this folder, or is this file.
    Path(PathBuf),
    /// Calls of which every URL names this host.
    Host(String),
    /// Calls that type into this terminal of the session.
    Terminal(String),
    /// Every call of the tool.
    Tool,
}

impl Pattern {
    /// The pattern that holds for exactly this call.
    pub fn exactly(call: &Call<'_>) -> Self {
        Self::Exact(ArgumentsDigest::of(call.arguments))
    }

    /// The name of its kind in records, which hold nothing of a call. Never changes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Command { .. } => "command",
            Self::Path(_) => "path",
            Self::Host(_) => "host",
            Self::Terminal(_) => "terminal",
            Self::Tool => "tool",
        }
    }

    /// Says in words which calls it is for: `every call of `shell``.
    pub fn text(&self, tool: &ToolName) -> String {
        match self {
            Self::Exact(_) => format!("exactly this call of `{tool}`"),
            Self::Command { program, words } => {
                let words: String = words.iter().map(|word| format!(" {word}")).collect();
                format!("calls of `{tool}` that only run `{program}{words} …`")
            }
            Self::Path(path) => format!("calls of `{tool}` in `{}`", path.display()),
            Self::Host(host) => format!("calls of `{tool}` to `{host}`"),
            Self::Terminal(name) => format!("calls of `{tool}` in the terminal `{name}`"),
            Self::Tool => format!("every call of `{tool}`"),
        }
    }

    /// Tells whether it is for a call.
    pub fn covers(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Exact(digest) => *digest == ArgumentsDigest::of(call.arguments),
            Self::Command { program, words } => runs_only(call, program, words),
            Self::Path(folder) => {
                let Touches { paths, hosts } = Touches::of(call);
                !paths.is_empty()
                    && hosts.is_empty()
                    && paths.iter().all(|path| path.starts_with(folder))
            }
            Self::Host(host) => {
                let Touches { paths, hosts } = Touches::of(call);
                paths.is_empty() && !hosts.is_empty() && hosts.iter().all(|named| named == host)
            }
            Self::Terminal(name) => terminal_of(call) == Some(name),
            Self::Tool => true,
        }
    }
}

/// The paths and hosts of a call of which nothing else has to be known; none for others.
#[derive(Default)]
struct Touches {
    paths: Vec<PathBuf>,
    hosts: Vec<String>,
}

impl Touches {
    fn of(call: &Call<'_>) -> Self {
        let touched = call.touched();
        let is_known = call.source == PluginSource::Shipped && touched.is_complete();
        if !is_known || call.line_of(&touched).is_some() {
            return Self::default();
        }
        Self { paths: call.paths_of(&touched), hosts: call.hosts_of(&touched) }
    }
}

/// Returns the terminal that a call types into.
fn terminal_of<'a>(call: &Call<'a>) -> Option<&'a str> {
    let is_typing = matches!(call.tool.as_str(), "shell_input" | "shell_control");
    let is_shipped = call.source == PluginSource::Shipped;
    let name = call.arguments.get("session_id").filter(|_| is_typing && is_shipped);
    name.and_then(serde_json::Value::as_str)
}

/// Returns what a person may be offered to allow beside this call alone, from narrow to wide. The
/// first is the call itself.
pub fn proposals(call: &Call<'_>) -> Vec<Pattern> {
    let mut proposals = vec![Pattern::exactly(call)];
    match call.source {
        // What the arguments of a foreign tool mean is its author's word.
        PluginSource::Elsewhere => return proposals,
        PluginSource::Relayed => {
            proposals.push(Pattern::Tool);
            return proposals;
        }
        PluginSource::Shipped => {}
    }
    if call.command_line().is_some() {
        // A pattern for a command line is for one simple command: what runs beside it is another
        // decision.
        proposals.extend(command_proposals(call));
        proposals.extend(terminal_of(call).map(str::to_owned).map(Pattern::Terminal));
        return proposals.into_iter().filter(|pattern| pattern.covers(call)).collect();
    }
    let Touches { paths, hosts } = Touches::of(call);
    if let [path] = paths.as_slice() {
        proposals.push(Pattern::Path(path.clone()));
        let folder = path.parent().filter(|folder| folder.parent().is_some());
        proposals.extend(folder.map(Path::to_owned).map(Pattern::Path));
    }
    if let [host] = hosts.as_slice() {
        proposals.push(Pattern::Host(host.clone()));
    }
    proposals.push(Pattern::Tool);
    proposals.into_iter().filter(|pattern| pattern.covers(call)).collect()
}

/// Tells whether a call runs one simple command that begins with these words, and nothing else.
fn runs_only(call: &Call<'_>, program: &str, words: &[String]) -> bool {
    let Some(line) = call.command_line() else { return false };
    let analysis = shell::analyse(&line);
    let pattern = CommandPattern {
        program: program.to_owned(),
        words: words.to_vec(),
        rest: RestOfCommand::SafeOptions,
    };
    match analysis.commands.as_slice() {
        [command] if analysis.is_plain() => shell::covers(&pattern, command, call.workspace),
        _ => false,
    }
}

/// Returns the patterns that a person may be offered for the command line of a call, from narrow to
/// wide.
fn command_proposals(call: &Call<'_>) -> Vec<Pattern> {
    let Some(line) = call.command_line() else { return Vec::new() };
    let analysis = shell::analyse(&line);
    let [command] = analysis.commands.as_slice() else { return Vec::new() };
    let words: Vec<String> = command.words.iter().map(|word| word.text.clone()).collect();
    let Some((program, words)) = words.split_first() else { return Vec::new() };
    let operands = words.iter().take_while(|word| !word.starts_with('-')).count();
    let lengths = [operands.min(2), operands.min(1), 0];
    let mut proposals: Vec<Pattern> = lengths
        .into_iter()
        .map(|length| Pattern::Command {
            program: program.clone(),
            words: words[..length].to_vec(),
        })
        .collect();
    proposals.dedup();
    proposals
}
