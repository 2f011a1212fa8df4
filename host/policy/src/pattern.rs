//! The later calls for which a user's answer can hold.

use std::path::{Path, PathBuf};

use jaato_types::ToolName;
use serde::{Deserialize, Serialize};

use crate::coverage::is_allowed_by_files;
use crate::facts::PolicyFacts;
use crate::shell::{self, ShellAnalysis, SimpleCommand};
use crate::{
    CommandPattern, JsonDigest, PluginSource, PolicyCall, RestOfCommand, Rules, WorkspaceTrust,
};

/// The longest text of a call that a pattern keeps, in letters.
const TEXT_LETTERS_MAX: usize = 200;

/// The calls to a tool for which an answer holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallPattern {
    /// Calls with exactly these arguments.
    Exact {
        /// The digest of the arguments.
        digest: JsonDigest,
        /// The call as the user sees it: the command line, or the tool with its arguments.
        text: String,
    },
    /// Calls that run simple commands beginning with these words, next to commands that rules
    /// allow.
    Command {
        /// The program.
        program: String,
        /// The words after it.
        words: Vec<String>,
    },
    /// Calls whose paths are all in this folder, or are all this file.
    Path(PathBuf),
    /// Calls whose URLs all name this host.
    Host(String),
    /// Calls that type into this terminal of the session.
    Terminal(String),
    /// Every call to the tool.
    Tool,
}

impl CallPattern {
    /// Creates the pattern that applies to exactly this call.
    pub fn exact_call(call: &PolicyCall<'_>) -> Self {
        Self::from_exact_facts(&PolicyFacts::from_call(call))
    }

    fn from_exact_facts(facts: &PolicyFacts<'_>) -> Self {
        let signature = facts.call_signature();
        let mut text = signature.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((at, _)) = text.char_indices().nth(TEXT_LETTERS_MAX) {
            text.truncate(at);
            text.push('…');
        }
        Self::Exact { digest: JsonDigest::from_json(facts.call.arguments), text }
    }

    /// Returns the name of its kind in records, which contain nothing of a call. Never changes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exact { .. } => "exact",
            Self::Command { .. } => "command",
            Self::Path(_) => "path",
            Self::Host(_) => "host",
            Self::Terminal(_) => "terminal",
            Self::Tool => "tool",
        }
    }

    /// Describes the calls: ``exactly `cargo test -q` ``, ``any `cargo test` ``.
    pub fn describe_calls(&self, tool: &ToolName) -> String {
        match self {
            Self::Exact { text, .. } => format!("exactly `{text}`"),
            Self::Command { program, words } => {
                let words: String = words.iter().map(|word| format!(" {word}")).collect();
                format!("any `{program}{words}`")
            }
            Self::Path(path) => format!("`{tool}` in `{}`", path.display()),
            Self::Host(host) => format!("`{tool}` with `{host}`"),
            Self::Terminal(name) => format!("`{tool}` in the terminal `{name}`"),
            Self::Tool => format!("any `{tool}`"),
        }
    }

    /// Returns true if it covers a call.
    pub(crate) fn covers_call(&self, facts: &PolicyFacts<'_>) -> bool {
        match self {
            Self::Exact { digest, .. } => *digest == JsonDigest::from_json(facts.call.arguments),
            Self::Command { .. } => facts.shell.as_ref().is_some_and(|analysis| {
                let mut commands = analysis.commands.iter();
                analysis.is_plain() && commands.all(|command| self.covers_command(command))
            }),
            Self::Path(folder) => {
                let TouchedNames { paths, hosts } = TouchedNames::from_facts(facts);
                !paths.is_empty()
                    && facts.call.has_known_paths()
                    && hosts.is_empty()
                    && paths.iter().all(|path| path.starts_with(folder))
            }
            Self::Host(host) => {
                let TouchedNames { paths, hosts } = TouchedNames::from_facts(facts);
                paths.is_empty()
                    && !facts.call.skips_web_checks()
                    && !hosts.is_empty()
                    && hosts.iter().all(|named| named == host)
            }
            Self::Terminal(name) => typed_terminal(facts.call) == Some(name),
            Self::Tool => true,
        }
    }

    /// Returns true if a rule in a file can apply to the calls of this pattern. A terminal ends
    /// with its session, and rules for programs that run the workspace's code need its trust.
    pub fn can_be_saved(&self, call: &PolicyCall<'_>) -> bool {
        match self {
            Self::Terminal(_) => false,
            Self::Command { .. } => {
                let Some(line) = call.command_line() else { return false };
                let analysis = shell::analyse_line(&line);
                let mut commands = analysis.commands.iter();
                commands.all(|command| {
                    !self.covers_command(command) || self.covers_with_trust(command, call.workspace)
                })
            }
            Self::Exact { .. } | Self::Path(_) | Self::Host(_) | Self::Tool => true,
        }
    }

    /// Returns true if it covers a command of a plain line. The user saw the pattern in this
    /// workspace and has run such a command here, so an answer needs no further trust, but the
    /// command must run in this folder.
    pub(crate) fn covers_command(&self, command: &SimpleCommand) -> bool {
        self.covers_with_trust(command, WorkspaceTrust::Trusted)
    }

    fn covers_with_trust(&self, command: &SimpleCommand, workspace: WorkspaceTrust) -> bool {
        let Self::Command { program, words } = self else { return false };
        let pattern = CommandPattern {
            program: program.clone(),
            words: words.clone(),
            rest: RestOfCommand::SafeOptions,
        };
        shell::covers_command(&pattern, command, workspace)
    }
}

/// The paths and hosts of a call about which no other facts matter. Empty for other calls.
#[derive(Default)]
struct TouchedNames<'a> {
    paths: &'a [PathBuf],
    hosts: &'a [String],
}

impl<'a> TouchedNames<'a> {
    fn from_facts(facts: &'a PolicyFacts<'_>) -> Self {
        let is_shipped = facts.call.source == PluginSource::Shipped;
        match is_shipped && facts.touched.is_complete() && facts.line.is_none() {
            true => Self { paths: &facts.paths, hosts: &facts.hosts },
            false => Self::default(),
        }
    }
}

/// Returns the terminal that a call types into.
fn typed_terminal<'a>(call: &PolicyCall<'a>) -> Option<&'a str> {
    let is_typing = matches!(call.tool.as_str(), "shell_input" | "shell_control");
    let is_shipped = call.source == PluginSource::Shipped;
    let name = call.arguments.get("session_id").filter(|_| is_typing && is_shipped);
    name.and_then(serde_json::Value::as_str)
}

/// Returns the patterns that a prompt can offer to allow, from narrow to wide. The first is the
/// call itself.
///
/// Commands of a pipeline that rules in files allow need no answer, so the pattern covers the
/// others.
pub fn propose_patterns(rules: &Rules, call: &PolicyCall<'_>) -> Vec<CallPattern> {
    let facts = PolicyFacts::from_call(call);
    let mut proposals = vec![CallPattern::from_exact_facts(&facts)];
    // Only its author knows the meaning of a foreign tool's arguments, so only the whole tool can
    // be allowed.
    if call.source != PluginSource::Shipped {
        proposals.push(CallPattern::Tool);
        return proposals;
    }
    if facts.line.is_some() || typed_terminal(call).is_some() {
        proposals.extend(propose_command_pattern(rules, &facts));
        proposals.extend(typed_terminal(call).map(str::to_owned).map(CallPattern::Terminal));
        return proposals;
    }
    let TouchedNames { paths, hosts } = TouchedNames::from_facts(&facts);
    match (paths, hosts) {
        ([], []) if call.is_harmless_tool() => proposals.push(CallPattern::Tool),
        ([path], _) => {
            proposals.push(CallPattern::Path(path.clone()));
            let folder = path.parent().filter(|folder| folder.parent().is_some());
            proposals.extend(folder.map(Path::to_owned).map(CallPattern::Path));
        }
        ([], [host]) => proposals.push(CallPattern::Host(host.clone())),
        _ => {}
    }
    proposals.into_iter().filter(|pattern| pattern.covers_call(&facts)).collect()
}

/// Returns the pattern for the first command of a plain line that no rule in a file allows, if it
/// also covers the other such commands.
fn propose_command_pattern(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<CallPattern> {
    let analysis: &ShellAnalysis = facts.shell.as_ref().filter(|shell| shell.is_plain())?;
    let needs_answer = |command: &&SimpleCommand| !is_allowed_by_files(rules, command, facts);
    let asked: Vec<&SimpleCommand> = analysis.commands.iter().filter(needs_answer).collect();
    let asked = if asked.is_empty() { analysis.commands.iter().collect() } else { asked };
    let (program, words) = shell::suggested_words(asked.first()?)?;
    let pattern = CallPattern::Command { program, words };
    asked.iter().all(|command| pattern.covers_command(command)).then_some(pattern)
}
