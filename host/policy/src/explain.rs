//! Evaluates a call completely, to explain a decision to the user.

use jaato_types::touches::ToolCallTargets;

use crate::coverage::{covers_whole_call, pattern_covers_command};
use crate::decide::deciding_rule;
use crate::facts::PolicyFacts;
use crate::matching::{RuleMatch, match_rule};
use crate::shell::Doubt;
use crate::{
    Decision, PolicyCall, ResolvedCallPaths, Rule, RuleFile, RuleId, RuleOutcome, RuleRef, Rules,
    WorkspaceTrust,
};

/// A decision, with everything that was checked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The decision.
    pub decision: Decision,
    /// Every rule in the files, in order, with its result.
    pub tried: Vec<RuleEvaluation>,
    /// The paths and hosts that the call names.
    pub touches: Vec<TouchedTarget>,
    /// The commands that the call runs, one line each.
    pub commands: Vec<String>,
    /// The reasons why its command line is not plain.
    pub doubts: Vec<Doubt>,
    /// Whether a rule in the files would allow it if the user trusted the workspace.
    pub waits_for_trust: bool,
}

/// A path or host that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedTarget {
    /// `read`, `write`, `search_root`, `pattern`, `host`, `word` of a command line, `link` for the
    /// target of links, `undeclared` for a string that may be any of these.
    pub kind: &'static str,
    /// A path in full, anything else as the call has it.
    pub name: String,
}

/// The result of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEvaluation {
    /// The rule.
    pub rule: RuleRef,
    /// The rule's outcome.
    pub outcome: RuleOutcome,
    /// Whether it matches. `None` if that is unknown.
    pub matched: Option<bool>,
}

/// Decides about a call, and returns every step.
pub fn evaluate_call(rules: &Rules, call: &PolicyCall<'_>) -> Evaluation {
    let facts = PolicyFacts::from_call(call);
    let decision = Decision::from_rule(deciding_rule(rules, &facts));
    let waits_for_trust = decision.outcome == RuleOutcome::Ask && {
        let trusted = PolicyCall { workspace: WorkspaceTrust::Trusted, ..*call };
        deciding_rule(rules, &PolicyFacts::from_call(&trusted)).id == RuleId::FileAllow
    };
    let mut tried = Vec::new();
    for file in &rules.files {
        for rule in &file.rules {
            let (matched, about) = match rule.outcome {
                RuleOutcome::Deny | RuleOutcome::Ask => match match_rule(rule, &facts) {
                    RuleMatch::No => (Some(false), None),
                    RuleMatch::Yes(about) => (Some(true), about),
                    RuleMatch::Perhaps(about) => (None, Some(about)),
                },
                RuleOutcome::Allow => evaluate_allow_rule(file, rule, &facts),
            };
            let rule_ref = file.rule_ref(rule, about);
            tried.push(RuleEvaluation { rule: rule_ref, outcome: rule.outcome, matched });
        }
    }
    let touches = touched_targets(&facts);
    let (commands, doubts) = facts.shell.map_or_else(Default::default, |shell| {
        (shell.commands.iter().map(|command| command.command_text()).collect(), shell.doubts)
    });
    Evaluation { decision, tried, touches, commands, doubts, waits_for_trust }
}

/// Returns whether a rule allows the call. A rule that allows a command applies to each command
/// that it covers, and the line is allowed if all of them are covered.
fn evaluate_allow_rule(
    file: &RuleFile,
    rule: &Rule,
    facts: &PolicyFacts<'_>,
) -> (Option<bool>, Option<String>) {
    if covers_whole_call(&rule.when, facts) && file.may_allow_call(facts) {
        return (Some(true), None);
    }
    let shell = facts.shell.iter().filter(|shell| shell.is_plain());
    let mut commands = shell.flat_map(|shell| &shell.commands);
    let covered = commands.find(|command| pattern_covers_command(&rule.when, command, facts));
    (Some(covered.is_some()), covered.map(|command| format!("`{}`", command.command_text())))
}

fn touched_targets(facts: &PolicyFacts<'_>) -> Vec<TouchedTarget> {
    let ToolCallTargets { reads, writes, search_roots, patterns, undeclared, .. } = &facts.touched;
    let path = |kind, text: &String| {
        let name = facts.call.absolute_path(text).display().to_string();
        TouchedTarget { kind, name }
    };
    let of_paths =
        |kind, texts: &[String]| texts.iter().map(|text| path(kind, text)).collect::<Vec<_>>();
    let mut touches = of_paths("read", reads);
    touches.extend(of_paths("write", writes));
    touches.extend(of_paths("search_root", search_roots));
    let named = |kind, name: String| TouchedTarget { kind, name };
    touches.extend(patterns.iter().map(|text| named("pattern", text.clone())));
    let words = facts.shell_paths_written().map(|path| path.display().to_string());
    touches.extend(words.map(|path| named("word", path)));
    let places = facts.call.resolved.into_iter().flat_map(ResolvedCallPaths::differing_targets);
    let links = places.map(|path| path.display().to_string());
    touches.extend(links.map(|path| named("link", path)));
    let of_shell = facts.shell_hosts.iter().filter(|named| named.is_certain);
    let hosts = facts.hosts.iter().chain(of_shell.map(|named| &named.host));
    touches.extend(hosts.map(|host| named("host", host.clone())));
    touches.extend(undeclared.iter().map(|it| named("undeclared", it.text.clone())));
    touches
}
