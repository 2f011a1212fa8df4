//! The verdict about a call, and the model's text about a refusal.

use std::path::PathBuf;

use jaato_policy::{Decision, PolicyCall, RuleId, RuleLayer};
use jaato_types::files::FileLimits;
use jaato_types::{Error, ErrorKind, PluginName, ToolName};

use crate::ChangedCall;

/// The rule's name if the user allowed this one call.
const USER_ONCE: &str = "person.once";
/// The rule's name if the user denied this one call.
const USER_DENIED: &str = "person.denied";
/// The rule's name if no answer came in time.
const USER_LATE: &str = "person.late";
/// The rule's name if the answer is one that the prompt does not allow.
const USER_NOT_OFFERED: &str = "person.not_offered";
/// The rule's name if the paths of the call kept changing while the user was asked.
const USER_CHANGES: &str = "person.changes";
/// The rule's name if the user kept changing the arguments.
const USER_EDITS: &str = "person.edits";
/// The rule's name if a plan starts while no user can be asked.
const UNATTENDED_PLAN: &str = "plan.unattended";
/// The rule's name if a guard denied the call.
const GUARD_DENIED: &str = "guard.denied";
/// The rule's name if a guard wants the user to decide.
const GUARD_ASKS: &str = "guard.asks";
/// The rule's name if the tool's own plugin says, before the user is asked, that the call cannot do
/// its job.
const PREVIEW_REFUSES: &str = "preview.refuses";

/// The verdict about a call.
#[derive(Debug, Default)]
pub struct CallVerdict {
    /// The refusal that the model gets. `None` if the call may run.
    pub refusal: Option<Error>,
    /// The call with the arguments that it runs with, if guards or the user changed them.
    pub changed: Option<ChangedCall>,
    /// Whether the call was denied because no user answered.
    pub lacks_user: bool,
    /// Whether a permission of the user lets the call run, as opposed to the call being harmless.
    pub is_permitted: bool,
    /// A note for the model, next to the result of the call.
    pub note: Option<String>,
    /// The limits of the call's file operations, if it may run.
    pub limits: FileLimits,
    pub(crate) rule: &'static str,
    /// The place of the rule, as `FILE:LINE`.
    pub(crate) place: Option<String>,
    pub(crate) comment: Option<String>,
    /// The channel of the answer. Empty if a rule decided.
    pub(crate) answered_by: String,
    /// How long the answer holds. Empty if a rule decided.
    pub(crate) scope: &'static str,
    /// The later calls for which the answer holds, as text.
    pub(crate) remembered: Option<String>,
    /// The kind of the pattern of these calls.
    pub(crate) pattern: &'static str,
}

/// Why the user gets a prompt.
pub(crate) struct PromptReason {
    pub(crate) rule: &'static str,
    /// The place of the rule, as `FILE:LINE`.
    pub(crate) place: Option<String>,
    pub(crate) why: String,
    /// Whether no rule allows the call, and none asks.
    pub(crate) is_silence: bool,
    hint: Option<String>,
    /// The changes since the user allowed the call, as a warning.
    pub(crate) changed: Option<String>,
    /// Whether every such call asks, so that no answer applies to later ones.
    pub(crate) is_each: bool,
}

/// The later calls for which an answer holds.
pub(crate) struct RememberedScope {
    pub(crate) scope: &'static str,
    /// The calls, as text.
    pub(crate) text: String,
    /// The pattern's kind.
    pub(crate) kind: &'static str,
}

impl PromptReason {
    pub(crate) fn from_rule(facts: &PolicyCall<'_>, decision: &Decision) -> Self {
        Self {
            rule: decision.rule.name(),
            place: decision.rule.file_and_line(),
            why: decision.explain(facts),
            is_silence: decision.rule.id == RuleId::Silence,
            hint: decision.refusal_hint(facts),
            changed: None,
            is_each: false,
        }
    }

    /// Returns the reason to ask again because paths changed since the user allowed the call.
    pub(crate) fn after_path_changes(self, paths: &[PathBuf]) -> Self {
        let told: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        let why = format!("{} changed while you were asked", told.join(", "));
        let changed = Some(format!("{why}; check the call again"));
        Self { changed, why, is_silence: false, ..self }
    }

    /// Returns the reason to ask again because another program's tool changed since the user
    /// allowed its calls.
    pub(crate) fn after_tool_changes(self, changes: &[&str]) -> Self {
        if changes.is_empty() {
            return self;
        }
        let all = changes.join(" and ");
        let warning = format!("{all} changed since you allowed this tool; check the call again");
        Self { changed: Some(warning), ..self }
    }

    pub(crate) fn from_guard(plugin: &PluginName, reason: &str) -> Self {
        let why = format!("plugin `{plugin}` wants you to decide: {reason}");
        Self {
            rule: GUARD_ASKS,
            place: None,
            why,
            is_silence: false,
            hint: None,
            changed: None,
            is_each: true,
        }
    }
}

impl CallVerdict {
    pub(crate) fn allowed_by_rule(decision: &Decision) -> Self {
        let is_permitted = match decision.rule.layer {
            RuleLayer::BuiltIn | RuleLayer::Shipped => false,
            RuleLayer::Enterprise
            | RuleLayer::User
            | RuleLayer::Workspace
            | RuleLayer::CommandLine
            | RuleLayer::Session => true,
        };
        let (rule, place) = (decision.rule.name(), decision.rule.file_and_line());
        Self { rule, place, is_permitted, ..Self::default() }
    }

    pub(crate) fn allowed_by_user(channel: &str, remembered: Option<RememberedScope>) -> Self {
        let rule = match remembered {
            Some(_) => RuleId::SessionAlways.name(),
            None => USER_ONCE,
        };
        Self { rule, is_permitted: true, ..Self::default() }.with_answer(channel, remembered)
    }

    /// Allows a plan without a user. Each call of the plan is still decided on its own.
    pub(crate) fn plan_without_user(why: &str) -> Self {
        let note = format!(
            "no user was available to approve the plan ({why}); the permission rules still decide \
             about each call"
        );
        let comment = Some(format!("no user can be asked: {why}"));
        Self { rule: UNATTENDED_PLAN, comment, note: Some(note), ..Self::default() }
    }

    pub(crate) fn denied_by_rule(facts: &PolicyCall<'_>, decision: &Decision) -> Self {
        let text = format!("the call to `{}` is denied: {}", facts.tool, decision.explain(facts));
        let place = decision.rule.file_and_line();
        Self {
            place,
            ..Self::deny_call(text, decision.rule.name(), decision.refusal_hint(facts), None)
        }
    }

    pub(crate) fn denied_by_user(
        facts: &PolicyCall<'_>,
        channel: &str,
        comment: Option<String>,
        remembered: Option<RememberedScope>,
    ) -> Self {
        let rule = match remembered {
            Some(_) => RuleId::SessionNever.name(),
            None => USER_DENIED,
        };
        let text = match &comment {
            Some(comment) => format!("the user denied the call to `{}`: {comment}", facts.tool),
            None => format!("the user denied the call to `{}`", facts.tool),
        };
        let hint = "respect the answer: do not make the same call again";
        Self::deny_call(text, rule, Some(hint.to_owned()), comment).with_answer(channel, remembered)
    }

    pub(crate) fn denied_not_offered(facts: &PolicyCall<'_>, channel: &str) -> Self {
        let why = "the prompt does not offer this answer";
        let text = format!("the call to `{}` is denied: {why}", facts.tool);
        Self::deny_call(text, USER_NOT_OFFERED, None, Some(why.to_owned()))
            .with_answer(channel, None)
    }

    pub(crate) fn denied_by_guard(plugin: &PluginName, error: Error) -> Self {
        let comment = Some(format!("plugin `{plugin}`"));
        let Error { message, hint, .. } = error;
        Self::deny_call(message, GUARD_DENIED, hint, comment)
    }

    pub(crate) fn denied_without_user(
        facts: &PolicyCall<'_>,
        reason: &PromptReason,
        why: &str,
    ) -> Self {
        let text = format!(
            "the call to `{}` is denied: {}, and no user can be asked ({why})",
            facts.tool, reason.why
        );
        let comment = Some(format!("no user can be asked: {why}"));
        let refused = Self::deny_call(text, reason.rule, reason.hint.clone(), comment);
        Self { place: reason.place.clone(), lacks_user: true, ..refused }
    }

    pub(crate) fn denied_after_timeout(facts: &PolicyCall<'_>, patience_ms: u64) -> Self {
        let seconds = patience_ms.div_ceil(1_000);
        let text = format!(
            "the call to `{}` is denied: no answer came to the permission prompt within {seconds} s",
            facts.tool
        );
        let hint = "continue without this call, or try again later".to_owned();
        let comment = Some(format!("no answer within {seconds} s"));
        Self { lacks_user: true, ..Self::deny_call(text, USER_LATE, Some(hint), comment) }
    }

    pub(crate) fn denied_after_edits(tool: &ToolName, edits_max: usize) -> Self {
        let text = format!(
            "the call to `{tool}` is denied: its arguments were changed more than {edits_max} times"
        );
        Self::deny_call(text, USER_EDITS, None, None)
    }

    pub(crate) fn denied_after_changes(tool: &ToolName) -> Self {
        let text = format!(
            "the call to `{tool}` is denied: its files kept changing while the user was asked"
        );
        Self::deny_call(text, USER_CHANGES, None, None)
    }

    pub(crate) fn refused_by_preview(error: Error) -> Self {
        Self { rule: PREVIEW_REFUSES, refusal: Some(error), ..Self::default() }
    }

    fn with_answer(self, channel: &str, remembered: Option<RememberedScope>) -> Self {
        let answered_by = channel.to_owned();
        match remembered {
            Some(RememberedScope { scope, text, kind: pattern }) => {
                Self { answered_by, scope, remembered: Some(text), pattern, ..self }
            }
            None => Self { answered_by, scope: "once", ..self },
        }
    }

    fn deny_call(
        text: String,
        rule: &'static str,
        hint: Option<String>,
        comment: Option<String>,
    ) -> Self {
        let text = format!("{text} (rule `{rule}`)");
        let error = Error { hint, ..Error::new(ErrorKind::PermissionDenied, text) };
        Self { rule, comment, refusal: Some(error), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use jaato_policy::{RuleOutcome, RuleRef};

    use super::*;

    #[test]
    fn only_user_and_session_rules_count_as_permission() {
        let is_permitted = |layer| {
            let rule = RuleRef { id: RuleId::FileAllow, layer, written: None };
            CallVerdict::allowed_by_rule(&Decision { outcome: RuleOutcome::Allow, rule })
                .is_permitted
        };
        assert!(is_permitted(RuleLayer::User) && is_permitted(RuleLayer::Session));
        assert!(!is_permitted(RuleLayer::BuiltIn) && !is_permitted(RuleLayer::Shipped));
    }
}
