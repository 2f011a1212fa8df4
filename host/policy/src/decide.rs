//! The decision itself: the rules in their order, the first that matches decides.

use crate::{Answer, Call, Caller, Decision, PluginSource, RuleId, Rules};

/// Decides about a call. What forbids comes before what allows, and what no rule allows is asked:
/// silence is not consent.
pub fn decide(rules: &Rules, call: &Call<'_>) -> Decision {
    let rule = deciding_rule(rules, call);
    Decision { outcome: rule.outcome(), rule }
}

fn deciding_rule(rules: &Rules, call: &Call<'_>) -> RuleId {
    if rules.disabled.contains(call.tool) {
        return RuleId::Disabled;
    }
    if rules.is_answered(call, Answer::Never) {
        return RuleId::SessionNever;
    }
    match call.caller {
        Caller::Person => return RuleId::OwnCall,
        Caller::Model => {}
    }
    if rules.is_allowed(call) {
        return RuleId::AllowOption;
    }
    if rules.allow_all {
        return RuleId::YesOption;
    }
    if rules.is_answered(call, Answer::Always) {
        return RuleId::SessionAlways;
    }
    promised(call).unwrap_or(RuleId::Silence)
}

/// What follows from what the tool says of itself.
fn promised(call: &Call<'_>) -> Option<RuleId> {
    let rule = if call.annotations.read_only {
        RuleId::ReadOnly
    } else if call.auto_approval {
        RuleId::AutoApproval
    } else {
        return None;
    };
    Some(match call.source {
        PluginSource::Shipped => rule,
        PluginSource::Elsewhere => RuleId::UnprovenPromise,
    })
}
