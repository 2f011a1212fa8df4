//! Evaluates a call completely, to explain a decision to the user.

use jaato_types::touches::Touched;

use crate::coverage::{covers, covers_whole};
use crate::decide::deciding_rule;
use crate::facts::Facts;
use crate::matching::{Matched, matches};
use crate::shell::Doubt;
use crate::{
    Call, Decision, Outcome, PathsResolved, Rule, RuleFile, RuleId, RuleRef, Rules, WorkspaceTrust,
};

/// A decision, with everything that was checked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The decision.
    pub decision: Decision,
    /// Every rule in the files, in order, with its result.
    pub tried: Vec<Tried>,
    /// The paths and hosts that the call names.
    pub touches: Vec<Touch>,
    /// The commands that the call runs, one line each.
    pub commands: Vec<String>,
    /// The reasons why its command line is not plain.
    pub doubts: Vec<Doubt>,
    /// Whether a rule in the files would allow it if the user trusted the workspace.
    pub waits_for_trust: bool,
}

/// A path or host that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touch {
    /// `read`, `write`, `search_root`, `pattern`, `host`, `word` of a command line, `link` for the
    /// target of links, `undeclared` for a string that may be any of these.
    pub kind: &'static str,
    /// A path in full, anything else as the call has it.
    pub name: String,
}

/// The result of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    /// The rule.
    pub rule: RuleRef,
    /// The rule's outcome.
    pub outcome: Outcome,
    /// Whether it matches. `None` if that is unknown.
    pub matched: Option<bool>,
}

/// Decides about a call, and returns every step.
pub fn evaluate(rules: &Rules, call: &Call<'_>) -> Evaluation {
    let facts = Facts::of(call);
    let decision = Decision::by(deciding_rule(rules, &facts));
    let waits_for_trust = decision.outcome == Outcome::Ask && {
        let trusted = Call { workspace: WorkspaceTrust::Trusted, ..*call };
        deciding_rule(rules, &Facts::of(&trusted)).id == RuleId::FileAllow
    };
    let mut tried = Vec::new();
    for file in &rules.files {
        for rule in &file.rules {
            let (matched, about) = match rule.outcome {
                Outcome::Deny | Outcome::Ask => match matches(rule, &facts) {
                    Matched::No => (Some(false), None),
                    Matched::Yes(about) => (Some(true), about),
                    Matched::Perhaps(about) => (None, Some(about)),
                },
                Outcome::Allow => allows(file, rule, &facts),
            };
            let rule_ref = file.rule_ref(rule, about);
            tried.push(Tried { rule: rule_ref, outcome: rule.outcome, matched });
        }
    }
    let touches = touches(&facts);
    let (commands, doubts) = facts.shell.map_or_else(Default::default, |shell| {
        (shell.commands.iter().map(|command| command.text()).collect(), shell.doubts)
    });
    Evaluation { decision, tried, touches, commands, doubts, waits_for_trust }
}

/// Returns whether a rule allows the call. A rule that allows a command applies to each command
/// that it covers, and the line is allowed if all of them are covered.
fn allows(file: &RuleFile, rule: &Rule, facts: &Facts<'_>) -> (Option<bool>, Option<String>) {
    if covers_whole(&rule.when, facts) && file.may_allow(facts) {
        return (Some(true), None);
    }
    let shell = facts.shell.iter().filter(|shell| shell.is_plain());
    let mut commands = shell.flat_map(|shell| &shell.commands);
    let covered = commands.find(|command| covers(&rule.when, command, facts));
    (Some(covered.is_some()), covered.map(|command| format!("`{}`", command.text())))
}

fn touches(facts: &Facts<'_>) -> Vec<Touch> {
    let Touched { reads, writes, search_roots, patterns, undeclared, .. } = &facts.touched;
    let path = |kind, text: &String| {
        let name = facts.call.whole(text).display().to_string();
        Touch { kind, name }
    };
    let of_paths =
        |kind, texts: &[String]| texts.iter().map(|text| path(kind, text)).collect::<Vec<_>>();
    let mut touches = of_paths("read", reads);
    touches.extend(of_paths("write", writes));
    touches.extend(of_paths("search_root", search_roots));
    let named = |kind, name: String| Touch { kind, name };
    touches.extend(patterns.iter().map(|text| named("pattern", text.clone())));
    let words = facts.shell_paths_written().map(|path| path.display().to_string());
    touches.extend(words.map(|path| named("word", path)));
    let places = facts.call.resolved.into_iter().flat_map(PathsResolved::places);
    let links = places.map(|path| path.display().to_string());
    touches.extend(links.map(|path| named("link", path)));
    let of_shell = facts.shell_hosts.iter().filter(|named| named.is_certain);
    let hosts = facts.hosts.iter().chain(of_shell.map(|named| &named.host));
    touches.extend(hosts.map(|host| named("host", host.clone())));
    touches.extend(undeclared.iter().map(|it| named("undeclared", it.text.clone())));
    touches
}
