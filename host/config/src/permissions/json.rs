//! Converts `permissions.json`, the original's format, to our rules.
//!
//! Its denials are read broadly, and its permissions narrowly. There a pattern `git *` meant
//! "begins with these letters". Here it means one simple command of that program.

use jaato_policy::{
    CommandPattern, Glob, RestOfCommand, Rule, RuleConditions, RuleFile, RuleLayer, RuleOutcome,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{AskingChannel, ParsedRuleFile, RuleFileOrigin};

/// How many seconds the original waits for an answer.
const TIMEOUT_S: i64 = 30;

/// Programs that `block_dangerous_commands` forbids.
const DANGEROUS: [&str; 34] = [
    "sudo", "su", "doas", "pkexec", "shutdown", "reboot", "halt", "poweroff", "init", "rm",
    "rmdir", "mkfs", "dd", "shred", "curl", "wget", "nc", "netcat", "ncat", "ssh", "scp", "rsync",
    "ftp", "sftp", "kill", "killall", "pkill", "chmod", "chown", "chgrp", "mount", "umount",
    "mkfs.*", "telnet",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PermissionsFile {
    version: Option<Value>,
    #[serde(rename = "defaultPolicy")]
    default_policy: Option<String>,
    blacklist: Option<RuleList>,
    whitelist: Option<RuleList>,
    sanitization: Option<SanitizationSettings>,
    channel: Option<ChannelSettings>,
    cwd: Option<String>,
    #[serde(rename = "$schema")]
    _schema: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuleList {
    tools: Vec<String>,
    patterns: Vec<String>,
    arguments: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SanitizationSettings {
    enabled: bool,
    block_shell_metacharacters: bool,
    block_dangerous_commands: bool,
    allowed_dangerous_commands: Vec<String>,
    custom_blocked_commands: Vec<String>,
    path_scope: Option<PathScope>,
}

impl Default for SanitizationSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            block_shell_metacharacters: true,
            block_dangerous_commands: true,
            allowed_dangerous_commands: Vec::new(),
            custom_blocked_commands: Vec::new(),
            path_scope: None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PathScope {
    enabled: bool,
    allowed_roots: Vec<String>,
    block_absolute: bool,
    block_parent_traversal: bool,
    resolve_symlinks: bool,
    allow_home: bool,
    allow_tmp: bool,
}

impl Default for PathScope {
    fn default() -> Self {
        Self {
            enabled: true,
            allowed_roots: vec![".".to_owned()],
            block_absolute: true,
            block_parent_traversal: true,
            resolve_symlinks: true,
            allow_home: false,
            allow_tmp: true,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChannelSettings {
    #[serde(rename = "type")]
    kind: String,
    endpoint: Option<String>,
    timeout: Option<i64>,
}

struct PermissionsReader<'a> {
    origin: &'a RuleFileOrigin<'a>,
    text: &'a str,
    file: RuleFile,
    warnings: Vec<String>,
}

pub(super) fn parse_json_rules(
    origin: &RuleFileOrigin<'_>,
    text: &str,
) -> Result<ParsedRuleFile, (usize, String)> {
    let file: PermissionsFile =
        serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
    let mut reader =
        PermissionsReader { origin, text, file: origin.empty_file(), warnings: Vec::new() };
    reader.add_header(&file)?;
    if let Some(list) = &file.blacklist {
        reader.add_rule_list(list, RuleOutcome::Deny)?;
    }
    if let Some(sanitization) = file.sanitization.as_ref().filter(|wanted| wanted.enabled) {
        reader.add_sanitization(sanitization)?;
    }
    if let Some(list) = &file.whitelist {
        reader.add_rule_list(list, RuleOutcome::Allow)?;
    }
    let channel = file.channel.map(|channel| {
        let kinds = ["console", "webhook", "queue", "file"];
        if !kinds.contains(&channel.kind.as_str()) {
            return Err((
                reader.line_of_value("type"),
                format!("channel `{}` is unknown", channel.kind),
            ));
        }
        let timeout_s = channel.timeout.unwrap_or(TIMEOUT_S);
        Ok(AskingChannel { kind: channel.kind, endpoint: channel.endpoint, timeout_s })
    });
    let channel = channel.transpose()?;
    let warnings = reader.warnings;
    Ok(ParsedRuleFile { file: reader.file, without_shipped: false, channel, warnings })
}

impl PermissionsReader<'_> {
    fn add_header(&mut self, file: &PermissionsFile) -> Result<(), (usize, String)> {
        let is_known = match &file.version {
            None => true,
            Some(Value::String(version)) => matches!(version.as_str(), "1" | "1.0"),
            Some(other) => other.as_f64() == Some(1.0),
        };
        if !is_known {
            return Err((self.line_of_value("version"), "its version is not 1".to_owned()));
        }
        if file.cwd.is_some() {
            self.add_warning(
                "cwd",
                "`cwd` has no effect: paths are relative to the workspace's root",
            );
        }
        let Some(policy) = &file.default_policy else { return Ok(()) };
        let line = self.line_of_value("defaultPolicy");
        let outcome = match (policy.as_str(), self.origin.layer) {
            ("allow", RuleLayer::Workspace) => {
                self.add_warning("defaultPolicy", "a workspace cannot set `default` to `allow`");
                return Ok(());
            }
            ("allow", _) => RuleOutcome::Allow,
            ("ask", _) => RuleOutcome::Ask,
            ("deny", _) => RuleOutcome::Deny,
            (other, _) => {
                return Err((
                    line,
                    format!("`defaultPolicy` is `{other}`; it must be allow, ask or deny"),
                ));
            }
        };
        self.file.default = Some((outcome, line));
        Ok(())
    }

    fn add_rule_list(
        &mut self,
        list: &RuleList,
        outcome: RuleOutcome,
    ) -> Result<(), (usize, String)> {
        for tool in &list.tools {
            self.add_rule(
                outcome,
                tool,
                RuleConditions { tool: Some(Glob::new(tool)), ..RuleConditions::default() },
            );
        }
        for pattern in &list.patterns {
            match outcome {
                RuleOutcome::Allow => self.add_allowed_pattern(pattern),
                RuleOutcome::Ask | RuleOutcome::Deny => self.add_denied_pattern(pattern),
            }
        }
        for (tool, arguments) in &list.arguments {
            let Value::Object(arguments) = arguments else {
                return Err((
                    self.line_of_value(tool),
                    format!("`arguments.{tool}` is not an object"),
                ));
            };
            for (argument, values) in arguments {
                let values = values.as_array().map(Vec::as_slice);
                let values = values.ok_or_else(|| {
                    (
                        self.line_of_value(argument),
                        format!("`arguments.{tool}.{argument}` is not a list"),
                    )
                })?;
                for value in values {
                    let Some(value) = value.as_str().filter(|value| !value.is_empty()) else {
                        return Err((
                            self.line_of_value(argument),
                            format!("`{value}` is not a text"),
                        ));
                    };
                    self.add_argument_rule(outcome, tool, argument, value);
                }
            }
        }
        Ok(())
    }

    /// Adds a pattern that denies: the text as it was meant, and the command that it names.
    fn add_denied_pattern(&mut self, pattern: &str) {
        let signature = Some(Glob::new(replace_letter_sets(pattern)));
        self.add_rule(
            RuleOutcome::Deny,
            pattern,
            RuleConditions { signature, ..RuleConditions::default() },
        );
        if !pattern.contains('(')
            && let Some(command) =
                CommandPattern::parse(&replace_letter_sets(pattern), RestOfCommand::SafeOptions)
        {
            let command = Some(command);
            self.add_rule(
                RuleOutcome::Deny,
                pattern,
                RuleConditions { command, ..RuleConditions::default() },
            );
        }
        if let Some(tool) = tool_in_pattern(pattern) {
            let tool = Some(Glob::new(tool));
            self.add_rule(
                RuleOutcome::Deny,
                pattern,
                RuleConditions { tool, ..RuleConditions::default() },
            );
        }
    }

    /// Adds a pattern that allows: one simple command, or every call to a tool.
    fn add_allowed_pattern(&mut self, pattern: &str) {
        if let Some(tool) = tool_in_pattern(pattern) {
            let tool = Some(Glob::new(tool));
            return self.add_rule(
                RuleOutcome::Allow,
                pattern,
                RuleConditions { tool, ..RuleConditions::default() },
            );
        }
        let exact = !pattern.contains(['*', '?', '[']);
        let body =
            pattern.strip_suffix(" *").or_else(|| pattern.strip_suffix('*')).unwrap_or(pattern);
        let is_command = !body.is_empty() && !body.contains(['*', '?', '[', '(']);
        let rest = if exact { RestOfCommand::Nothing } else { RestOfCommand::SafeOptions };
        match CommandPattern::parse(body, rest).filter(|_| is_command) {
            Some(command) => {
                let command = Some(command);
                self.add_rule(RuleOutcome::Allow, pattern, RuleConditions { command, ..RuleConditions::default() });
            }
            None => self.add_warning(
                pattern,
                "a pattern that allows names a command, or a tool as `tool(*)`: this one allows nothing",
            ),
        }
    }

    fn add_argument_rule(&mut self, outcome: RuleOutcome, tool: &str, argument: &str, value: &str) {
        let tool = Some(Glob::new(tool));
        let with = |glob: String| RuleConditions {
            tool: tool.clone(),
            arguments: vec![(argument.to_owned(), Glob::new(glob))],
            ..RuleConditions::default()
        };
        let command = (argument == "command")
            .then(|| CommandPattern::parse(value, RestOfCommand::SafeOptions))
            .flatten();
        match (outcome, command) {
            (RuleOutcome::Allow, Some(command)) => {
                let command = Some(command);
                self.add_rule(
                    outcome,
                    value,
                    RuleConditions { tool, command, ..RuleConditions::default() },
                );
            }
            (RuleOutcome::Allow, None) => match self.origin.path_pattern(value) {
                Ok(path) if is_path_argument(argument) => {
                    let path = Some(path);
                    self.add_rule(
                        outcome,
                        value,
                        RuleConditions { tool, path, ..RuleConditions::default() },
                    );
                }
                _ => {
                    self.add_rule(outcome, value, with(value.to_owned()));
                    self.add_rule(outcome, value, with(format!("{value} *")));
                }
            },
            (RuleOutcome::Ask | RuleOutcome::Deny, command) => {
                for glob in [format!("{value}*"), format!("* {value}"), format!("* {value} *")] {
                    self.add_rule(outcome, value, with(glob));
                }
                if command.is_some() {
                    self.add_rule(
                        outcome,
                        value,
                        RuleConditions { tool, command, ..RuleConditions::default() },
                    );
                }
            }
        }
    }

    fn add_sanitization(&mut self, wanted: &SanitizationSettings) -> Result<(), (usize, String)> {
        let text = self.text;
        // An unwritten flag counts as true, so it has no line of its own.
        let written = |key, otherwise| match text.contains(&format!("\"{key}\"")) {
            true => key,
            false => otherwise,
        };
        let shell = written("block_shell_metacharacters", "sanitization");
        let dangerous_key = written("block_dangerous_commands", "sanitization");
        if wanted.block_shell_metacharacters {
            let compound = true;
            self.add_rule(
                RuleOutcome::Deny,
                shell,
                RuleConditions { compound, ..RuleConditions::default() },
            );
        }
        let dangerous = DANGEROUS.iter().filter(|_| wanted.block_dangerous_commands);
        let dangerous = dangerous.map(|name| (*name).to_owned());
        let allowed = &wanted.allowed_dangerous_commands;
        let blocked: Vec<String> = dangerous
            .filter(|name| !allowed.contains(name))
            .chain(wanted.custom_blocked_commands.iter().cloned())
            .collect();
        for name in &blocked {
            let command = CommandPattern::parse(name, RestOfCommand::SafeOptions);
            let at = written(name, dangerous_key);
            self.add_rule(
                RuleOutcome::Deny,
                at,
                RuleConditions { command, ..RuleConditions::default() },
            );
        }
        let Some(scope) = wanted.path_scope.as_ref().filter(|scope| scope.enabled) else {
            return Ok(());
        };
        if !(scope.block_absolute && scope.block_parent_traversal && scope.resolve_symlinks) {
            self.add_warning(
                "path_scope",
                "`path_scope` applies to every spelling of a path: its `block_…` and `resolve_symlinks` are always true",
            );
        }
        let mut roots = scope.allowed_roots.clone();
        roots.extend(scope.allow_tmp.then(|| "/tmp".to_owned()));
        roots.extend(scope.allow_home.then(|| "~".to_owned()));
        let line = self.line_of_value("path_scope");
        let outside: Result<Vec<_>, String> =
            roots.iter().map(|root| self.origin.path_pattern(root)).collect();
        let outside = outside.map_err(|what| (line, what))?;
        self.add_rule(
            RuleOutcome::Deny,
            "path_scope",
            RuleConditions { outside, ..RuleConditions::default() },
        );
        Ok(())
    }

    fn add_rule(&mut self, outcome: RuleOutcome, written: &str, when: RuleConditions) {
        if let Err(what) = self.origin.check_allow_of_workspace(outcome, &when) {
            return self.add_warning(written, &format!("{what}; this rule is ignored"));
        }
        let line = self.line_of_value(written);
        self.file.rules.push(Rule { outcome, when, line, why: None });
    }

    fn add_warning(&mut self, written: &str, what: &str) {
        let (path, line) = (self.origin.path.display(), self.line_of_value(written));
        self.warnings.push(format!("`{path}:{line}`: {what}"));
    }

    /// Returns the line that has a text as a value. JSON has no comments, so the text can only be a
    /// value.
    fn line_of_value(&self, written: &str) -> usize {
        let quoted = Value::from(written).to_string();
        let at = self.text.find(&quoted).unwrap_or_default();
        self.text[..at].matches('\n').count() + 1
    }
}

/// Returns the tool of `tool(*)`, which means every call to the tool.
fn tool_in_pattern(pattern: &str) -> Option<&str> {
    let tool = pattern.strip_suffix("(*)")?;
    (!tool.is_empty() && !tool.contains(['*', '?', '[', '(', ' '])).then_some(tool)
}

fn is_path_argument(name: &str) -> bool {
    ["path", "file", "dir", "directory", "folder"].iter().any(|part| name.contains(part))
}

/// Replaces the sets of a pattern, `[ab]`, with any single letter. That may deny more, but never
/// less.
fn replace_letter_sets(pattern: &str) -> String {
    let mut plain = String::new();
    let mut rest = pattern;
    while let Some((before, behind)) = rest.split_once('[') {
        plain.push_str(before);
        match behind.split_once(']') {
            Some((_, behind)) => {
                plain.push('?');
                rest = behind;
            }
            None => {
                plain.push('[');
                rest = behind;
            }
        }
    }
    plain + rest
}
