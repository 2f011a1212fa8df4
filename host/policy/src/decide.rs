//! The decision itself: the first rule that matches decides.

use crate::facts::PolicyFacts;
use crate::matching::{RuleMatch, match_rule};
use crate::{
    Caller, Decision, DenyRuleHandling, PluginSource, PolicyCall, PolicyMode, Rule, RuleFile,
    RuleId, RuleLayer, RuleOutcome, RuleRef, Rules, WrittenRule, coverage, edits,
};

/// Decides about a call. Denials come before permissions. If no rule allows the call, the user is
/// asked, because silence is not consent.
pub fn decide(rules: &Rules, call: &PolicyCall<'_>) -> Decision {
    Decision::from_rule(deciding_rule(rules, &PolicyFacts::from_call(call)))
}

pub(crate) fn deciding_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> RuleRef {
    let steps: [fn(&Rules, &PolicyFacts<'_>) -> Option<RuleRef>; 8] = [
        denying_rule,
        typed_call_rule,
        unclear_call_rule,
        plan_start_rule,
        session_grant_rule,
        file_rule,
        web_read_rule,
        annotation_rule,
    ];
    let mut steps = steps.iter();
    steps
        .find_map(|step| step(rules, facts))
        .unwrap_or_else(|| default_decision_rule(rules, facts.call))
}

/// Returns the rule that denies the call. No later step can override it.
fn denying_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    let call = facts.call;
    if rules.disabled.contains(call.tool) {
        return Some(RuleRef::without_file(RuleId::Disabled));
    }
    if rules.deny_rules == DenyRuleHandling::Hold {
        if let Some(file) = rules.files.iter().find(|file| file.broken.is_some()) {
            return Some(file.broken_rule());
        }
        if let Some(rule) =
            first_matching_rule(rules, facts, RuleOutcome::Deny, RuleMatch::is_certain)
        {
            return Some(rule);
        }
    }
    if rules.is_refused_call(facts) {
        return Some(RuleRef::without_file(RuleId::SessionNever));
    }
    denying_mode_rule(rules, facts).map(RuleRef::without_file)
}

/// Returns the mode's rule if the mode denies the call.
fn denying_mode_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleId> {
    let call = facts.call;
    let rule = match rules.mode {
        PolicyMode::Ask | PolicyMode::AcceptEdits => return None,
        PolicyMode::Plan if call.is_plan_write() => return None,
        PolicyMode::Plan => RuleId::ModePlan,
        PolicyMode::ReadOnly => RuleId::ModeReadOnly,
    };
    let reads = || is_proven_read_only(call) || coverage::is_read_only_call(rules, facts);
    (call.caller == Caller::Model && !reads()).then_some(rule)
}

/// Allows a call that the user typed.
fn typed_call_rule(_: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    match facts.call.caller {
        Caller::Person => Some(RuleRef::without_file(RuleId::OwnCall)),
        Caller::Model => None,
    }
}

/// Asks about a call that a rule may deny, and about a call for which the machine's file requires a
/// prompt, unless the user allowed exactly this call.
fn unclear_call_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    if rules.is_allowed_exactly(facts) {
        return None;
    }
    let is_unclear = |matched: &RuleMatch| matches!(matched, RuleMatch::Perhaps(_));
    let may_be_denied = match rules.deny_rules {
        DenyRuleHandling::Hold => first_matching_rule(rules, facts, RuleOutcome::Deny, is_unclear),
        DenyRuleHandling::Ignored => None,
    };
    if let Some(rule) = may_be_denied {
        return Some(RuleRef { id: RuleId::FileUnclear, ..rule });
    }
    if rules.is_granted_call(facts) {
        return None;
    }
    first_matching_rule(rules, facts, RuleOutcome::Ask, RuleMatch::is_possible)
        .filter(|rule| rule.layer == RuleLayer::Enterprise)
}

/// Asks before the plan starts, even if the call is otherwise allowed, because only the user ends
/// the mode `plan`.
fn plan_start_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    let ends_mode = rules.mode == PolicyMode::Plan && facts.call.is_plan_start();
    ends_mode.then(|| RuleRef::without_file(RuleId::ModeStartPlan))
}

/// Allows calls that the user allowed for this session.
fn session_grant_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    let id = if rules.is_allowed_by_option(facts.call) {
        RuleId::AllowOption
    } else if rules.allow_all {
        RuleId::YesOption
    } else if rules.is_granted_call(facts) {
        RuleId::SessionAlways
    } else {
        return None;
    };
    Some(RuleRef::without_file(id))
}

/// Applies rules that ask, then rules that allow, then the mode `accept-edits`.
fn file_rule(rules: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    first_matching_rule(rules, facts, RuleOutcome::Ask, RuleMatch::is_possible)
        .or_else(|| coverage::allowing_rule(rules, facts))
        .or_else(|| {
            let accepts =
                rules.mode == PolicyMode::AcceptEdits && edits::is_safe_workspace_edit(facts);
            accepts.then(|| RuleRef::without_file(RuleId::ModeAcceptEdits))
        })
}

/// Asks before a shipped tool, which needs no permission otherwise, reads from a host that the user
/// has not allowed, or reads without the usual checks. A page can tell a model to send data to any
/// host as a part of a URL.
fn web_read_rule(_: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    if facts.call.source != PluginSource::Shipped || facts.touched.hosts.is_empty() {
        return None;
    }
    let id = match facts.call.skips_web_checks() {
        true => RuleId::UncheckedRead,
        false => RuleId::NewHost,
    };
    let needs_no_permission = facts.call.annotations.read_only || facts.call.auto_approval;
    needs_no_permission.then(|| RuleRef::without_file(id))
}

/// Allows shipped tools by their annotations.
fn annotation_rule(_: &Rules, facts: &PolicyFacts<'_>) -> Option<RuleRef> {
    let call = facts.call;
    let rule = if call.annotations.read_only {
        RuleId::ReadOnly
    } else if call.auto_approval {
        RuleId::AutoApproval
    } else {
        return None;
    };
    match call.source {
        PluginSource::Shipped => Some(RuleRef::without_file(rule)),
        PluginSource::Relayed | PluginSource::Elsewhere => None,
    }
}

/// Applies the `default` of the files. The strictest counts, because no file may loosen another.
fn default_decision_rule(rules: &Rules, call: &PolicyCall<'_>) -> RuleRef {
    let stated = rules.files.iter().filter_map(|file| Some((file, file.default?)));
    let holds = stated.filter(|(file, (outcome, _))| match (outcome, file.layer) {
        (RuleOutcome::Deny, _) => rules.deny_rules == DenyRuleHandling::Hold,
        (RuleOutcome::Ask, _) => true,
        // The file comes with the repository, so it must not allow everything.
        (RuleOutcome::Allow, layer) => layer != RuleLayer::Workspace,
    });
    let strictest = holds.min_by_key(|(_, (outcome, _))| outcome.permissiveness());
    strictest.map_or_else(
        || {
            let promises = call.annotations.read_only || call.auto_approval;
            let id = if promises { RuleId::UnprovenPromise } else { RuleId::Silence };
            RuleRef::without_file(id)
        },
        |(file, (outcome, line))| file.default_rule(outcome, line),
    )
}

/// Returns the first rule with this outcome that matches as wanted.
fn first_matching_rule(
    rules: &Rules,
    facts: &PolicyFacts<'_>,
    outcome: RuleOutcome,
    wanted: impl Fn(&RuleMatch) -> bool,
) -> Option<RuleRef> {
    rules.files.iter().find_map(|file| {
        let mut of_outcome = file.rules.iter().filter(|rule| rule.outcome == outcome);
        of_outcome.find_map(|rule| {
            let matched = match_rule(rule, facts);
            wanted(&matched).then(|| file.rule_ref(rule, matched.matched_part()))
        })
    })
}

fn is_proven_read_only(call: &PolicyCall<'_>) -> bool {
    call.source == PluginSource::Shipped && call.annotations.read_only
}

impl RuleFile {
    /// Returns a reference to one of its rules, with the part of the call that it matched.
    pub(crate) fn rule_ref(&self, rule: &Rule, about: Option<String>) -> RuleRef {
        let id = match rule.outcome {
            RuleOutcome::Deny => RuleId::FileDeny,
            RuleOutcome::Ask => RuleId::FileAsk,
            RuleOutcome::Allow => RuleId::FileAllow,
        };
        let (file, line, why) = (self.path.clone(), rule.line, rule.why.clone());
        let written = WrittenRule { rule: rule.to_string(), file, line, why, about };
        RuleRef { id, layer: self.layer, written: Some(written) }
    }

    fn default_rule(&self, outcome: RuleOutcome, line: usize) -> RuleRef {
        let id = match outcome {
            RuleOutcome::Deny => RuleId::FileDefaultDeny,
            RuleOutcome::Ask => RuleId::FileDefaultAsk,
            RuleOutcome::Allow => RuleId::FileDefaultAllow,
        };
        let rule = format!("{} by default", outcome.name());
        let written = WrittenRule { rule, file: self.path.clone(), line, why: None, about: None };
        RuleRef { id, layer: self.layer, written: Some(written) }
    }

    fn broken_rule(&self) -> RuleRef {
        let rule = "deny everything, because the file cannot be used".to_owned();
        let (line, why) = self.broken.clone().unwrap_or_default();
        let (file, why) = (self.path.clone(), Some(why));
        let written = WrittenRule { rule, file, line, why, about: None };
        RuleRef { id: RuleId::FileBroken, layer: self.layer, written: Some(written) }
    }
}
