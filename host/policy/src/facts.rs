//! The facts of a call that rules match: paths, hosts, a command line.
//!
//! Facts are collected broadly on purpose, because rules deny and ask by them. An allow rule must
//! allow everything that was found.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use jaato_types::touches::ToolCallTargets;

use crate::shell::{self, CommandLine, NameReach, NamedHost, ShellAnalysis, ShellFileName};
use crate::touched_targets::{PATH_BYTES_MAX, may_be_ambiguous_host};
use crate::{PolicyCall, ResolvedCallPaths, expansion};

/// The facts of a call that rules need, computed once for all of them.
pub(crate) struct PolicyFacts<'a> {
    pub(crate) call: &'a PolicyCall<'a>,
    /// The strings of the arguments, by their declarations.
    pub(crate) touched: ToolCallTargets,
    /// The declared paths, and the targets of links on the call's paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Undeclared strings, read as paths.
    pub(crate) undeclared_paths: Vec<PathBuf>,
    /// The declared hosts, and those of URLs in undeclared strings.
    pub(crate) hosts: Vec<String>,
    pub(crate) line: Option<CommandLine>,
    pub(crate) shell: Option<ShellAnalysis>,
    /// Files that the words of the command line may name.
    pub(crate) shell_paths: Vec<ShellPath>,
    /// Hosts that those words may name.
    pub(crate) shell_hosts: Vec<NamedHost>,
    /// Why the line may name other files, and other hosts.
    pub(crate) unclear_names: Option<String>,
    pub(crate) unclear_hosts: Option<String>,
    /// The commands of the line that differ from all before them.
    pub(crate) distinct: Vec<usize>,
    /// Undeclared strings, parsed as command lines once a rule needs that.
    undeclared_lines: OnceCell<Vec<ShellAnalysis>>,
    /// The paths that these may name.
    undeclared_names: OnceCell<Vec<PathBuf>>,
}

/// A file that a command line may name.
#[derive(Debug, Clone)]
pub(crate) struct ShellPath {
    /// The full path.
    pub(crate) path: PathBuf,
    /// The name in the line.
    pub(crate) named: ShellFileName,
}

impl<'a> PolicyFacts<'a> {
    pub(crate) fn from_call(call: &'a PolicyCall<'a>) -> Self {
        let touched = call.collect_touched();
        let line = call.touched_command_line(&touched);
        let shell = line.as_ref().map(shell::analyse_line);
        let distinct = shell.as_ref().map_or_else(Vec::new, distinct_commands);
        let named = shell.iter().flat_map(ShellAnalysis::named_files);
        let shell_paths = named.map(|named| ShellPath { path: call.absolute_name(&named), named });
        let shell_paths = shell_paths.collect();
        let shell_hosts = shell.iter().flat_map(ShellAnalysis::named_hosts).collect();
        let unclear_names =
            shell.as_ref().and_then(ShellAnalysis::unclear_name_reason).map(str::to_owned);
        let unclear_hosts =
            shell.as_ref().and_then(ShellAnalysis::unclear_host_reason).map(str::to_owned);
        Self {
            call,
            paths: call.touched_paths(&touched),
            undeclared_paths: call.undeclared_paths(&touched),
            hosts: call.touched_hosts(&touched),
            touched,
            line,
            shell,
            shell_paths,
            shell_hosts,
            unclear_names,
            unclear_hosts,
            distinct,
            undeclared_lines: OnceCell::new(),
            undeclared_names: OnceCell::new(),
        }
    }

    /// Returns the undeclared strings as command lines.
    pub(crate) fn undeclared_lines(&self) -> &[ShellAnalysis] {
        self.undeclared_lines.get_or_init(|| {
            let texts = self.touched.undeclared.iter().map(|it| it.text.clone());
            texts.map(|text| shell::analyse_line(&CommandLine::Shell(text))).collect()
        })
    }

    /// Returns true if programs may find other hosts in the arguments than `hosts`.
    pub(crate) fn has_ambiguous_hosts(&self) -> bool {
        let mut undeclared = self.touched.undeclared.iter();
        self.touched.hosts.iter().any(|text| shell::is_ambiguous_host(text))
            || undeclared.any(|it| may_be_ambiguous_host(&it.text))
    }

    /// Returns the paths that the undeclared strings may name as command lines.
    pub(crate) fn undeclared_names(&self) -> &[PathBuf] {
        self.undeclared_names.get_or_init(|| {
            let names = self.undeclared_lines().iter().flat_map(ShellAnalysis::named_files);
            names.map(|name| self.call.absolute_path(&name.text)).collect()
        })
    }

    /// Returns the words of the command line that are written as paths.
    pub(crate) fn shell_paths_written(&self) -> impl Iterator<Item = &PathBuf> {
        let words = self.shell_paths.iter().filter(|name| {
            let ShellFileName { text, reach } = &name.named;
            let is_word = matches!(reach, NameReach::Word | NameReach::Folder | NameReach::Pattern);
            let is_path = text.starts_with(['/', '~', '.']) || text.contains('/');
            is_word && is_path && !text.contains("://")
        });
        words.map(|name| &name.path)
    }

    /// Returns the whole call as one line, as the original's patterns see it: a command as written,
    /// anything else as `tool(name=value, …)`.
    pub(crate) fn call_signature(&self) -> String {
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

/// Returns the commands of a line that differ from all before them, because rules need to check
/// each only once.
fn distinct_commands(shell: &ShellAnalysis) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let commands = shell.commands.iter().enumerate();
    let fresh = commands.filter(|(_, command)| seen.insert(&command.words));
    fresh.map(|(at, _)| at).collect()
}

impl PolicyCall<'_> {
    /// Returns every path that the call names, including those in its command line, with their
    /// `..`. An environment resolves these.
    pub fn named_paths(&self) -> Vec<PathBuf> {
        let facts = PolicyFacts::from_call(self);
        let declared = self.touched_path_texts(&facts.touched);
        // A name without a slash may be a link, too.
        let words = facts.shell_paths.iter().map(|name| name.named.text.clone());
        let undeclared = self.undeclared_texts(&facts.touched).map(str::to_owned);
        let texts = declared.into_iter().chain(words).chain(undeclared);
        let can_be_path = |text: &String| !text.is_empty() && text.len() <= PATH_BYTES_MAX;
        let mut paths: Vec<PathBuf> =
            texts.filter(can_be_path).map(|text| self.join_path(&text)).collect();
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns true if its command line runs a program, as far as it is understood.
    pub fn runs_program(&self, program: &str) -> bool {
        let shell = PolicyFacts::from_call(self).shell;
        shell.is_some_and(|shell| {
            shell.commands.iter().any(|command| command.program_name() == program)
        })
    }

    /// Returns the patterns among the words of its command line, with their `..`.
    pub fn path_patterns(&self) -> Vec<PathBuf> {
        let facts = PolicyFacts::from_call(self);
        let is_pattern = |name: &&ShellPath| name.named.reach == NameReach::Pattern;
        let patterns = facts.shell_paths.iter().filter(is_pattern);
        patterns.map(|name| self.join_path(&name.named.text)).collect()
    }

    /// Returns true if the call may touch anything, because it has too many paths to check.
    pub(crate) fn may_touch_anything(&self) -> bool {
        self.resolved.is_some_and(ResolvedCallPaths::may_touch_anything)
    }

    /// Returns true if the environment knows where all paths of the call lead, or was not asked.
    /// Otherwise a rule by path cannot allow the call.
    pub(crate) fn has_known_paths(&self) -> bool {
        self.resolved.is_none_or(ResolvedCallPaths::is_complete)
    }

    /// Makes a path absolute: expands `~` and relative paths as far as they are known, and removes
    /// `.` and `..`. `..` leads where the environment says. If the environment was not asked, the
    /// name before `..` counts as a folder.
    pub(crate) fn absolute_path(&self, text: &str) -> PathBuf {
        let joined = self.join_path(text);
        let resolved =
            self.resolved.filter(|_| has_dots(&joined)).and_then(|it| it.target_of(&joined));
        resolved.map_or_else(|| without_dots(&joined), |it| PathBuf::from(&it.path))
    }

    /// Resolves a path against `~` and the working directory.
    pub(crate) fn join_path(&self, text: &str) -> PathBuf {
        let path = text.strip_prefix("file://").unwrap_or(text);
        match (path.strip_prefix('~'), self.home, self.directory) {
            (Some(""), Some(home), _) => home.to_owned(),
            (Some(rest), Some(home), _) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            (None, _, Some(directory)) => directory.join(path),
            _ => PathBuf::from(path),
        }
    }
}

impl PolicyCall<'_> {
    /// Makes a name of a command line absolute. Anything after a pattern stays as it is.
    pub(crate) fn absolute_name(&self, name: &ShellFileName) -> PathBuf {
        match name.reach {
            NameReach::Pattern => {
                let joined = self.join_path(&name.text);
                let known = self.resolved.filter(|_| !expansion::may_leave_folder(&joined));
                match known.and_then(|it| it.target_of(&joined)) {
                    Some(it) if has_dots(&joined) => PathBuf::from(&it.path),
                    _ => expansion::without_dots_before(&joined),
                }
            }
            NameReach::Word | NameReach::Folder | NameReach::Piece | NameReach::Below => {
                self.absolute_path(&name.text)
            }
        }
    }
}

fn has_dots(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// Removes `.` and `..` from a path without asking the file system.
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
