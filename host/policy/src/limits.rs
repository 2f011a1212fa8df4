//! Computes the limits of an allowed call's file operations from the rules.

use jaato_types::files::FileLimits;

use crate::edits::protected_files;
use crate::matching::{match_annotations, match_arguments, matches_names};
use crate::{
    DenyRuleHandling, PolicyCall, RuleConditions, RuleId, RuleLayer, RuleOutcome, RuleRef, Rules,
};

/// Returns the limits of a call's file operations: denied paths and, if a rule or a mode allows the
/// call, paths that need a prompt. `allowed_by` is that rule, or `None` if the user allowed the
/// call, or if nothing has yet.
pub fn file_limits(
    rules: &Rules,
    call: &PolicyCall<'_>,
    allowed_by: Option<&RuleRef>,
) -> FileLimits {
    let denied = match rules.deny_rules {
        DenyRuleHandling::Hold => rule_patterns(rules, call, RuleOutcome::Deny, |_| true),
        DenyRuleHandling::Ignored => Vec::new(),
    };
    let asked = match allowed_by.map(|rule| rule.id) {
        None | Some(RuleId::OwnCall) => Vec::new(),
        // The user allowed everything that such a call does, except what the machine's file asks
        // about.
        Some(RuleId::AllowOption | RuleId::YesOption | RuleId::SessionAlways) => {
            rule_patterns(rules, call, RuleOutcome::Ask, |layer| layer == RuleLayer::Enterprise)
        }
        Some(
            RuleId::FileAllow
            | RuleId::ModeAcceptEdits
            | RuleId::ReadOnly
            | RuleId::AutoApproval
            | RuleId::FileDefaultAllow
            | RuleId::Disabled
            | RuleId::FileBroken
            | RuleId::FileDeny
            | RuleId::SessionNever
            | RuleId::ModeReadOnly
            | RuleId::ModePlan
            | RuleId::FileUnclear
            | RuleId::ModeStartPlan
            | RuleId::FileAsk
            | RuleId::UncheckedRead
            | RuleId::NewHost
            | RuleId::FileDefaultDeny
            | RuleId::FileDefaultAsk
            | RuleId::UnprovenPromise
            | RuleId::Silence,
        ) => rule_patterns(rules, call, RuleOutcome::Ask, |_| true),
    };
    let is_narrow = allowed_by.is_some_and(|rule| {
        rule.id == RuleId::ModeAcceptEdits || rule.layer == RuleLayer::Workspace
    });
    let protected = protected_files(call).filter(|_| is_narrow);
    FileLimits { denied, asked, protected, ..FileLimits::default() }
}

/// Returns the paths that rules deny to file operations outside of calls.
pub fn file_limits_outside_calls(rules: &Rules) -> FileLimits {
    let is_for_all = |when: &RuleConditions| RuleConditions { path: None, ..when.clone() };
    let of_file = rules.files.iter().flat_map(|file| &file.rules);
    let denying = of_file.filter(|rule| rule.outcome == RuleOutcome::Deny);
    let denying = denying.filter(|rule| is_for_all(&rule.when) == RuleConditions::default());
    let paths = denying.filter_map(|rule| rule.when.path.as_ref());
    let denied = match rules.deny_rules {
        DenyRuleHandling::Hold => paths.map(|it| it.path.to_string_lossy().into_owned()).collect(),
        DenyRuleHandling::Ignored => Vec::new(),
    };
    FileLimits { denied, ..FileLimits::default() }
}

/// Returns the folder of a path pattern before its first name with `*` or `?`.
pub fn folder_of_pattern(pattern: &str) -> &str {
    match pattern.find(['*', '?']) {
        Some(end) => &pattern[..pattern[..end].rfind('/').unwrap_or(0)],
        None => pattern,
    }
}

/// Returns the paths of the rules with this outcome that may apply to the call, whatever it
/// touches.
fn rule_patterns(
    rules: &Rules,
    call: &PolicyCall<'_>,
    outcome: RuleOutcome,
    is_wanted: impl Fn(RuleLayer) -> bool,
) -> Vec<String> {
    let files = rules.files.iter().filter(|file| is_wanted(file.layer));
    let of_outcome = files.flat_map(|file| &file.rules).filter(|rule| rule.outcome == outcome);
    let speaking = of_outcome.filter(|rule| {
        let when = &rule.when;
        let is_of_paths = when.command.is_none()
            && when.host.is_none()
            && when.signature.is_none()
            && when.outside.is_empty()
            && !when.compound;
        is_of_paths
            && matches_names(when, call)
            && match_annotations(when, call).is_possible()
            && match_arguments(when, call).is_possible()
    });
    let paths = speaking.filter_map(|rule| rule.when.path.as_ref());
    paths.map(|it| it.path.to_string_lossy().into_owned()).collect()
}
