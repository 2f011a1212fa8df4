//! Extracts the paths, hosts and the command line of a call by the declarations of its tool.

use std::path::PathBuf;

use jaato_types::touches::ToolCallTargets;
use serde_json::Value;

use crate::shell::{CommandLine, is_ambiguous_host, operand_host, url_host};
use crate::{PluginSource, PolicyCall, ResolvedCallPaths, TypingTarget};

/// Names under which foreign tools commonly take a command line.
const COMMAND_NAMES: [&str; 5] = ["command", "cmd", "command_line", "script", "shell"];

/// The longest text that can be a path.
pub(crate) const PATH_BYTES_MAX: usize = 4096;

impl PolicyCall<'_> {
    /// Collects the strings of the arguments. A foreign tool's declarations are its author's
    /// claims, so they do not count.
    pub(crate) fn collect_touched(&self) -> ToolCallTargets {
        match self.source {
            PluginSource::Shipped => ToolCallTargets::from_arguments(self.schema, self.arguments),
            PluginSource::Relayed | PluginSource::Elsewhere => {
                ToolCallTargets::from_foreign_arguments(self.schema, self.arguments)
            }
        }
    }

    /// Returns true if it types into a terminal whose reader is not known yet.
    pub fn has_unknown_typing_target(&self) -> bool {
        let is_shipped = self.source == PluginSource::Shipped;
        is_shipped && self.tool.as_str() == "shell_input" && self.typed_into.is_none()
    }

    /// Returns the command line that the call runs, if its tool runs one.
    pub fn command_line(&self) -> Option<CommandLine> {
        self.touched_command_line(&self.collect_touched())
    }

    pub(crate) fn touched_command_line(&self, touched: &ToolCallTargets) -> Option<CommandLine> {
        if self.source == PluginSource::Shipped {
            match self.tool.as_str() {
                "cli_based_tool" => return self.cli_command_line(),
                "shell_input" => return Some(self.typed_command_line()),
                _ => {}
            }
            if !touched.commands.is_empty() {
                return Some(CommandLine::Shell(touched.commands.join("\n")));
            }
        }
        let is_command = |name: &str| COMMAND_NAMES.contains(&name);
        let lines = touched.undeclared.iter().filter(|it| is_command(&it.name));
        let lines: Vec<&str> = lines.map(|it| it.text.as_str()).collect();
        (!lines.is_empty()).then(|| CommandLine::Unknown(lines.join("\n")))
    }

    /// Returns the hosts that the arguments name.
    pub fn argument_hosts(&self) -> Vec<String> {
        self.touched_hosts(&self.collect_touched())
    }

    fn argument_text(&self, name: &str) -> Option<String> {
        self.arguments.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    /// Returns the command line of `args`, whose words no shell reads.
    fn cli_command_line(&self) -> Option<CommandLine> {
        let command = self.argument_text("command")?;
        let words = self.arguments.get("args").and_then(Value::as_array);
        let Some(words) = words.filter(|words| !words.is_empty()) else {
            return Some(CommandLine::Shell(command));
        };
        let words = words.iter().map(|word| word.as_str().unwrap_or_default().to_owned());
        Some(CommandLine::Words(std::iter::once(command).chain(words).collect()))
    }

    fn typed_command_line(&self) -> CommandLine {
        let input = self.argument_text("input").unwrap_or_default();
        match self.typed_into {
            // A tab makes the shell complete the line to something unknown.
            Some(TypingTarget::ShellPrompt) if !input.contains('\t') => CommandLine::Shell(input),
            Some(TypingTarget::ShellPrompt | TypingTarget::Unknown) | None => {
                CommandLine::Unknown(input)
            }
        }
    }

    /// Returns the declared paths in full, and the targets of links on the call's paths, as far as
    /// the host knows them. A pattern is represented by the folder that contains all its matches.
    /// Relative paths stay relative if the working directory is unknown.
    pub(crate) fn touched_paths(&self, touched: &ToolCallTargets) -> Vec<PathBuf> {
        let texts = self.touched_path_texts(touched);
        let mut paths: Vec<PathBuf> = texts.iter().map(|text| self.absolute_path(text)).collect();
        paths.extend(self.resolved.into_iter().flat_map(ResolvedCallPaths::differing_targets));
        paths.sort();
        paths.dedup();
        paths
    }

    /// Returns the declared paths as they are written.
    pub(crate) fn touched_path_texts(&self, touched: &ToolCallTargets) -> Vec<String> {
        let declared = [&touched.reads, &touched.writes, &touched.search_roots];
        let declared = declared.into_iter().flatten().filter(|text| !text.is_empty());
        let mut texts: Vec<String> = declared.cloned().collect();
        let roots = touched.search_roots.iter().filter(|text| !text.is_empty());
        let mut roots: Vec<&str> = roots.map(String::as_str).collect();
        if roots.is_empty() {
            roots.push(".");
        }
        for pattern in &touched.patterns {
            texts.extend(roots.iter().flat_map(|root| pattern_base_paths(root, pattern)));
        }
        texts
    }

    /// Returns the undeclared strings as paths.
    pub(crate) fn undeclared_paths(&self, touched: &ToolCallTargets) -> Vec<PathBuf> {
        self.undeclared_texts(touched).map(|text| self.absolute_path(text)).collect()
    }

    /// Returns the undeclared strings that can be paths.
    pub(crate) fn undeclared_texts<'t>(
        &self,
        touched: &'t ToolCallTargets,
    ) -> impl Iterator<Item = &'t str> + use<'t> {
        let texts = touched.undeclared.iter().map(|it| it.text.as_str());
        texts.filter(|text| !text.is_empty() && text.len() <= PATH_BYTES_MAX)
    }

    /// Returns the declared hosts, and those of URLs in undeclared strings, in lower case.
    pub(crate) fn touched_hosts(&self, touched: &ToolCallTargets) -> Vec<String> {
        let declared = touched.hosts.iter().filter(|text| !text.is_empty());
        let declared = declared.map(|text| declared_host(text).unwrap_or_else(|| text.clone()));
        let undeclared = touched.undeclared.iter().filter_map(|it| url_host(&it.text));
        let mut hosts: Vec<String> = declared.chain(undeclared).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }
}

/// Returns the paths, as written, at or below which all matches of a pattern are.
fn pattern_base_paths(root: &str, pattern: &str) -> Vec<String> {
    let below_root = |text: &str| match text.starts_with(['/', '~']) {
        true => text.to_owned(),
        false => format!("{root}/{text}"),
    };
    let Some(end) = pattern.find(['*', '?', '[', '{', '\\']) else {
        let mut reach = vec![below_root(pattern)];
        if !pattern.contains('/') {
            // Some tools find a name at any depth.
            reach.push(root.to_owned());
        }
        return reach;
    };
    let (literal, rest) = pattern.split_at(end);
    if ["..", "{/", ",/"].iter().any(|part| rest.contains(part)) {
        return vec!["/".to_owned()];
    }
    let folder = literal.rfind('/').map_or("", |at| &literal[..=at]);
    vec![below_root(folder)]
}

/// Returns the words of a text that may be hosts, normalized.
pub(crate) fn possible_hosts(text: &str) -> impl Iterator<Item = String> {
    split_words(text).filter_map(declared_host)
}

/// Returns true if an undeclared text is, or contains, a host that programs may parse differently.
pub(crate) fn may_be_ambiguous_host(text: &str) -> bool {
    let is_host = |text: &str| text.contains(['.', '%', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let is_word = !text.trim().contains(char::is_whitespace) && is_host(text);
    let mut urls = split_words(text).filter(|word| url_host(word).is_some());
    is_word && is_ambiguous_host(text) || urls.any(is_ambiguous_host)
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |sign: char| sign.is_whitespace() || "\"'`<>()[]{},;|=&\\".contains(sign);
    text.split(is_between)
}

/// Returns the host that a text names, including a URL without a scheme or with a single slash.
fn declared_host(text: &str) -> Option<String> {
    let text = text.trim();
    let rest = text.split_once(':').map(|(_, rest)| rest).filter(|rest| rest.starts_with('/'));
    let rest = rest.unwrap_or(text).trim_start_matches(['/', '\\']);
    url_host(text).or_else(|| operand_host(rest))
}
