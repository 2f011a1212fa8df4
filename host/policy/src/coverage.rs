//! Decides whether allow rules cover a call. Strict: rules must allow everything that the call
//! does, and never allow a part that jaato cannot understand.

use std::path::{Path, PathBuf};

use jaato_types::PathGlob;

use crate::edits::protected_files;
use crate::facts::PolicyFacts;
use crate::matching::{match_annotations, match_arguments, matches_names};
use crate::reached_targets::host_glob;
use crate::shell::{self, NameReach, SimpleCommand};
use crate::{
    CommandLine, CommandPattern, Glob, PluginSource, RestOfCommand, Rule, RuleConditions, RuleFile,
    RuleId, RuleLayer, RuleOutcome, RuleRef, Rules, WorkspaceTrust, expansion,
};

/// Returns a rule that allows the call, if rules in files allow all of it.
pub(crate) fn allowing_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    allow_rules(rules)
        .find(|(file, rule)| covers_whole_call(&rule.when, facts) && file.may_allow_call(facts))
        .map(|(file, rule)| file.rule_ref(rule, None))
        .or_else(|| rule_for_all_commands(rules, facts))
}

fn allow_rules(rules: &Rules) -> impl Iterator<Item = (&RuleFile, &Rule)> {
    // Shipped rules do not count if the user wants to name everything that runs.
    let denies =
        rules.files.iter().any(|file| matches!(file.default, Some((RuleOutcome::Deny, _))));
    let files =
        rules.files.iter().filter(move |file| !(denies && file.layer == RuleLayer::Shipped));
    files.flat_map(|file| {
        let allowing = file.rules.iter().filter(|rule| rule.outcome == RuleOutcome::Allow);
        allowing.map(move |rule| (file, rule))
    })
}

impl RuleFile {
    /// Returns true if a rule of the file without a command may allow a call. A workspace's file
    /// comes with the repository, so it allows command lines only by `command`, and no change of
    /// protected files.
    pub(crate) fn may_allow_call(&self, facts: &PolicyFacts<'_>) -> bool {
        if self.layer != RuleLayer::Workspace {
            return true;
        }
        let changes = !facts.call.annotations.read_only;
        let protected = protected_files(facts.call).filter(|_| changes);
        let is_protected =
            |path: &PathBuf| protected.as_ref().is_some_and(|it| it.is_protected(path));
        facts.shell.is_none() && !facts.paths.iter().any(is_protected)
    }
}

/// Returns true if a rule without a command allows the call.
pub(crate) fn covers_whole_call(when: &RuleConditions, facts: &PolicyFacts<'_>) -> bool {
    let is_for_denials = when.signature.is_some() || when.compound || !when.outside.is_empty();
    if when.command.is_some() || is_for_denials || !applies_to_tool(when, facts) {
        return false;
    }
    if !match_arguments(when, facts.call).is_certain() {
        return false;
    }
    // The user saw the whole line, but not the files whose code it runs.
    if when.exactly.is_some() && needs_trust(facts) {
        return false;
    }
    if when.path.is_none() && when.host.is_none() {
        return true;
    }
    // A shell reaches more than the paths and hosts in its command line, and a foreign tool may do
    // anything with its arguments.
    let is_known = facts.call.source == PluginSource::Shipped
        && facts.touched.is_complete()
        && facts.call.has_known_paths()
        && !facts.call.skips_web_checks();
    if !is_known || facts.shell.is_some() {
        return false;
    }
    // A rule that names only paths does not cover hosts, and vice versa.
    let paths_are_inside = match &when.path {
        Some(wanted) => {
            let wanted = PathGlob::new(&wanted.path);
            !facts.paths.is_empty() && facts.paths.iter().all(|path| wanted.is_path_match(path))
        }
        None => facts.paths.is_empty(),
    };
    let hosts_are_named = match &when.host {
        Some(wanted) => {
            let wanted = host_glob(wanted);
            !facts.hosts.is_empty()
                && !facts.has_ambiguous_hosts()
                && facts.hosts.iter().all(|host| wanted.matches(host))
        }
        None => facts.hosts.is_empty(),
    };
    paths_are_inside && hosts_are_named
}

/// Returns the rule for the first command of a line, if every command is allowed by a rule or by an
/// answer of the user.
fn rule_for_all_commands(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    let analysis = facts.shell.as_ref()?;
    // Only the author of a foreign tool knows what it does with a text.
    if facts.call.source != PluginSource::Shipped || !analysis.is_plain() {
        return None;
    }
    let (mut first, mut is_answered) = (None, false);
    for command in &analysis.commands {
        match covering_rule(rules, command, facts) {
            Some((file, rule)) => {
                let about = Some(format!("`{}`", command.command_text()));
                first.get_or_insert_with(|| file.rule_ref(rule, about));
            }
            None if is_granted_command(rules, command, facts) => is_answered = true,
            None => return None,
        }
    }
    if is_answered { Some(RuleRef::without_file(RuleId::SessionAlways)) } else { first }
}

fn covering_rule<'a>(
    rules: &'a Rules,
    command: &SimpleCommand,
    facts: &PolicyFacts<'_>,
) -> Option<(&'a RuleFile, &'a Rule)> {
    allow_rules(rules).find(|(_, rule)| pattern_covers_command(&rule.when, command, facts))
}

fn is_granted_command(rules: &Rules, command: &SimpleCommand, facts: &PolicyFacts<'_>) -> bool {
    rules.granted_patterns(facts.call).any(|pattern| pattern.covers_command(command))
}

/// Returns true if a rule of a file allows a command of a line.
pub(crate) fn is_allowed_by_files(
    rules: &Rules,
    command: &SimpleCommand,
    facts: &PolicyFacts<'_>,
) -> bool {
    covering_rule(rules, command, facts).is_some()
}

/// Returns true if a call runs, or may run, code of an untrusted workspace.
pub(crate) fn needs_trust(facts: &PolicyFacts<'_>) -> bool {
    let trust = facts.call.workspace;
    let is_trusted = |command| shell::is_trusted_command(command, trust);
    facts.shell.as_ref().is_some_and(|analysis| {
        let may_run_any =
            trust == WorkspaceTrust::Untrusted && analysis.hidden_program_doubt().is_some();
        may_run_any || !analysis.commands.iter().all(is_trusted)
    })
}

/// Returns true if rules for commands that only read cover the whole call.
pub(crate) fn is_read_only_call(rules: &Rules, facts: &PolicyFacts<'_>) -> bool {
    let Some(analysis) = &facts.shell else { return false };
    let is_read = |command: &SimpleCommand| {
        let mut covering = allow_rules(rules)
            .filter(|(_, rule)| pattern_covers_command(&rule.when, command, facts));
        covering.any(|(_, rule)| {
            let pattern = rule.when.command.as_ref();
            pattern.is_some_and(|pattern| pattern.rest == RestOfCommand::Reading)
        })
    };
    facts.call.source == PluginSource::Shipped
        && analysis.is_plain()
        && analysis.commands.iter().all(is_read)
}

pub(crate) fn pattern_covers_command(
    when: &RuleConditions,
    command: &SimpleCommand,
    facts: &PolicyFacts<'_>,
) -> bool {
    let Some(pattern) = &when.command else { return false };
    let is_narrow = when.path.is_some() || when.host.is_some();
    let is_for_denials = when.signature.is_some() || when.compound || !when.outside.is_empty();
    !is_narrow
        && !is_for_denials
        && applies_to_tool(when, facts)
        && match_arguments(when, facts.call).is_certain()
        && matches!(facts.line, Some(CommandLine::Shell(_) | CommandLine::Words(_)))
        && shell::covers_command(pattern, command, required_trust(pattern, command, facts))
        && (pattern.rest != RestOfCommand::Reading || is_inside_working_directory(command, facts))
}

/// In a plain repository, `git` reads without running anything, so no trust is needed.
fn required_trust(
    pattern: &CommandPattern,
    command: &SimpleCommand,
    facts: &PolicyFacts<'_>,
) -> WorkspaceTrust {
    let is_plain = pattern.rest == RestOfCommand::Reading
        && command.program_name() == "git"
        && facts.call.repository_is_plain;
    if is_plain { WorkspaceTrust::Trusted } else { facts.call.workspace }
}

/// Returns true if a command names nothing outside the working directory, links included. A
/// terminal may be in another folder.
fn is_inside_working_directory(command: &SimpleCommand, facts: &PolicyFacts<'_>) -> bool {
    let call = facts.call;
    let Some(directory) = call.directory.filter(|_| call.typed_into.is_none()) else {
        return false;
    };
    // A link can lead anywhere.
    let Some(resolved) = call.resolved else { return command.file_names().is_empty() };
    let is_inside = |path: &Path| {
        path.starts_with(directory) || NO_FILES.iter().any(|file| path == Path::new(file))
    };
    let leads_inside = |text: &str| {
        let lead = resolved.target_of(&call.join_path(text));
        lead.is_some_and(|it| is_inside(Path::new(&it.path)))
            && is_inside(&call.absolute_path(text))
    };
    let matches_inside = |pattern: &Path| {
        resolved.has_known_patterns()
            && !expansion::may_leave_folder(pattern)
            && resolved.targets_matching(pattern).all(|it| is_inside(Path::new(&it.path)))
    };
    let mut folders = command.folders.iter().filter(|folder| !folder.is_empty());
    folders.all(|folder| leads_inside(folder))
        && call.touched_path_texts(&facts.touched).iter().all(|text| leads_inside(text))
        && command.file_names().iter().all(|name| match name.reach {
            NameReach::Pattern => {
                matches_inside(&call.join_path(&name.text)) && is_inside(&call.absolute_name(name))
            }
            NameReach::Word | NameReach::Folder | NameReach::Piece | NameReach::Below => {
                leads_inside(&name.text)
            }
        })
}

/// Device files without content.
const NO_FILES: [&str; 4] = ["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"];

/// Returns true if a rule applies to the tool. The author of a foreign tool chooses its name and
/// its annotations, so a rule must name its plugin in full. If a shipped plugin passes the tool on,
/// the rule must name the tool in full, because that name contains the server's name.
fn applies_to_tool(when: &RuleConditions, facts: &PolicyFacts<'_>) -> bool {
    let call = facts.call;
    let names = |named: &Option<Glob>, name: &str| {
        named.as_ref().is_some_and(|named| named.as_str() == name)
    };
    let is_meant = match call.source {
        PluginSource::Shipped => true,
        PluginSource::Relayed => names(&when.tool, call.tool.as_str()),
        PluginSource::Elsewhere => names(&when.plugin, call.plugin.as_str()),
    };
    is_meant && matches_names(when, call) && match_annotations(when, call).is_certain()
}
