//! What a call names, read out of its arguments: paths, hosts, a command line.
//!
//! Reading is generous on purpose: what is found here lets rules forbid and ask. For a rule that
//! allows, everything found must be allowed.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::shell::{self, Analysis, CommandLine};
use crate::{Call, PluginSource, TypedInto};

/// Deepest nesting of arguments that is read.
const DEPTH_MAX: usize = 16;

/// Most values of a call that are read. A call with more counts as naming every path and host.
const VALUES_MAX: usize = 10_000;

/// Most paths of a call of which links are followed: each costs the file system a look.
const PATHS_MAX: usize = 256;

/// What rules need to know of a call, read once for all of them.
pub(crate) struct Facts<'a> {
    pub(crate) call: &'a Call<'a>,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) hosts: Vec<String>,
    pub(crate) line: Option<CommandLine>,
    pub(crate) shell: Option<Analysis>,
    /// Paths and hosts among the words of the command line.
    pub(crate) shell_paths: Vec<PathBuf>,
    /// The same words as they are written.
    shell_words: Vec<String>,
    pub(crate) shell_hosts: Vec<String>,
    /// Which commands of the line are unlike all before them.
    pub(crate) distinct: Vec<usize>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(call: &'a Call<'a>) -> Self {
        let line = call.command_line();
        let shell = line.as_ref().map(shell::analyse);
        let mut words: Vec<String> = shell.iter().flat_map(Analysis::values).collect();
        words.sort();
        words.dedup();
        let distinct = shell.as_ref().map_or_else(Vec::new, distinct);
        let shell_paths = words.iter().map(|word| call.whole(word)).collect();
        let shell_hosts = words.iter().filter_map(|word| host_of(word)).collect();
        let (paths, hosts) = (call.paths(), call.hosts());
        Self {
            call,
            paths,
            hosts,
            line,
            shell,
            shell_paths,
            shell_words: words,
            shell_hosts,
            distinct,
        }
    }

    /// The words of the command line that are written as paths.
    pub(crate) fn shell_paths_written(&self) -> impl Iterator<Item = &PathBuf> {
        self.shell_paths.iter().zip(&self.shell_words).filter_map(|(path, word)| {
            let is_path = word.starts_with(['/', '~', '.']) || word.contains("/");
            (is_path && !word.contains("://")).then_some(path)
        })
    }

    /// The whole call as one line, as the original's patterns see it: a command as it is written,
    /// anything else as `tool(name=value, …)`.
    pub(crate) fn signature(&self) -> String {
        match &self.line {
            Some(CommandLine::Shell(line) | CommandLine::Unknown(line)) => line.clone(),
            Some(CommandLine::Words(words)) => words.join(" "),
            None => {
                let entries = self.call.arguments.as_object().into_iter().flatten();
                let mut entries: Vec<String> = entries
                    .map(|(name, value)| match value.as_str() {
                        Some(text) => format!("{name}={text}"),
                        None => format!("{name}={value}"),
                    })
                    .collect();
                entries.sort();
                format!("{}({})", self.call.tool, entries.join(", "))
            }
        }
    }
}

/// Returns which commands of a line are unlike all before them: rules look at each once.
fn distinct(shell: &Analysis) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let commands = shell.commands.iter().enumerate();
    let fresh = commands.filter(|(_, command)| seen.insert(&command.words));
    fresh.map(|(at, _)| at).collect()
}

impl Call<'_> {
    /// Returns true if it types into a terminal, and nobody has said yet who reads there.
    pub fn is_typed_unseen(&self) -> bool {
        let is_shipped = self.source == PluginSource::Shipped;
        is_shipped && self.tool.as_str() == "shell_input" && self.typed_into.is_none()
    }

    /// Returns the command line that the call runs, if its tool runs such.
    pub fn command_line(&self) -> Option<CommandLine> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let is_shipped = self.source == PluginSource::Shipped;
        match self.tool.as_str() {
            "cli_based_tool" if is_shipped => {
                let command = text("command")?;
                let words = self.arguments.get("args").and_then(Value::as_array);
                let Some(words) = words.filter(|words| !words.is_empty()) else {
                    return Some(CommandLine::Shell(command));
                };
                let words = words.iter().map(|word| word.as_str().unwrap_or_default().to_owned());
                Some(CommandLine::Words(std::iter::once(command).chain(words).collect()))
            }
            "shell_spawn" if is_shipped => text("command").map(CommandLine::Shell),
            "shell_input" if is_shipped => {
                let input = text("input").unwrap_or_default();
                Some(match self.typed_into {
                    // A tab would have the shell complete the line: what it runs nobody knows.
                    Some(TypedInto::ShellPrompt) if !input.contains('\t') => {
                        CommandLine::Shell(input)
                    }
                    Some(TypedInto::ShellPrompt | TypedInto::Unknown) | None => {
                        CommandLine::Unknown(input)
                    }
                })
            }
            _ => ["command", "cmd", "command_line", "script"]
                .into_iter()
                .find_map(text)
                .map(if is_shipped { CommandLine::Shell } else { CommandLine::Unknown }),
        }
    }

    /// Returns the paths that the arguments name, each whole; those that links lead to are among
    /// them, as far as the host found out. Relative ones stay relative where nobody knows from
    /// where.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = Vec::new();
        visit(self.arguments, &mut |name, text| {
            if is_path_name(name) && !text.is_empty() {
                paths.push(self.whole(text));
            }
        });
        paths.extend(self.resolved.iter().cloned());
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns every path that the call names, also among the words of its command line: what links
    /// may lead away from.
    pub fn named_paths(&self) -> Vec<PathBuf> {
        let facts = Facts::of(self);
        let of_shell = facts.shell_paths_written().cloned().collect::<Vec<_>>();
        facts.paths.into_iter().chain(of_shell).take(PATHS_MAX).collect()
    }

    /// Returns the hosts that the arguments name in URLs, in small letters.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        visit(self.arguments, &mut |name, text| {
            hosts.extend(host_of(text));
            if matches!(name, "host" | "hostname" | "domain") && !text.contains('/') {
                hosts.push(plain_host(text));
            }
        });
        hosts.sort();
        hosts.dedup();
        hosts
    }

    /// Makes a path whole: `~` and relative ones as far as they are known, without `.` and `..`.
    pub(crate) fn whole(&self, text: &str) -> PathBuf {
        let path = text.strip_prefix("file://").unwrap_or(text);
        let joined = match (path.strip_prefix('~'), self.home, self.directory) {
            (Some(""), Some(home), _) => home.to_owned(),
            (Some(rest), Some(home), _) if rest.starts_with('/') => home.join(&rest[1..]),
            (None, _, Some(directory)) => directory.join(path),
            _ => PathBuf::from(path),
        };
        without_dots(&joined)
    }
}

/// Takes `.` and `..` out of a path without asking the file system.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                let is_up = whole
                    .components()
                    .next_back()
                    .is_none_or(|last| matches!(last, Component::ParentDir));
                if is_up && !whole.has_root() {
                    whole.push("..");
                } else {
                    whole.pop();
                }
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => whole.push(part),
        }
    }
    whole
}

/// Returns the host of a URL in a text, or of what git takes for one (`git@host:path`).
pub(crate) fn host_of(text: &str) -> Option<String> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let is_scheme = !scheme.is_empty()
            && scheme
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        let rest = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
        let host = rest.rsplit('@').next().unwrap_or_default();
        return (is_scheme && !host.is_empty()).then(|| plain_host(host));
    }
    let (user, rest) = text.split_once('@')?;
    let (host, _) = rest.split_once(':')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    (is_word(user) && is_word(host) && !host.contains('/')).then(|| plain_host(host))
}

/// A host without its port, without a final dot, in small letters.
fn plain_host(text: &str) -> String {
    let host = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => text.split(':').next().unwrap_or(text),
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn is_path_name(name: &str) -> bool {
    const WHOLE: [&str; 14] = [
        "path",
        "paths",
        "file",
        "files",
        "filename",
        "file_name",
        "directory",
        "dir",
        "folder",
        "root",
        "cwd",
        "source",
        "destination",
        "target",
    ];
    WHOLE.contains(&name)
        || ["_path", "_paths", "_file", "_files", "_dir", "_directory", "_folder"]
            .iter()
            .any(|ending| name.ends_with(ending))
}

/// Shows each text among the arguments with the name that it stands under.
fn visit(arguments: &Value, show: &mut dyn FnMut(&str, &str)) {
    fn walk(
        name: &str,
        value: &Value,
        depth: usize,
        left: &mut usize,
        show: &mut dyn FnMut(&str, &str),
    ) {
        if *left == 0 || depth > DEPTH_MAX {
            return;
        }
        *left -= 1;
        match value {
            Value::String(text) => show(name, text),
            Value::Array(items) => {
                items.iter().for_each(|item| walk(name, item, depth + 1, left, show))
            }
            Value::Object(entries) => {
                entries.iter().for_each(|(name, value)| walk(name, value, depth + 1, left, show));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut left = VALUES_MAX;
    walk("", arguments, 0, &mut left, show);
}
