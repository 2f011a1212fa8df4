//! What is decided about a call, and in which words the model is told.

use jaato_policy::{Call, Decision, RuleId, Scope};
use jaato_types::{Error, ErrorKind, PluginName, ToolName};

/// The rule's name where a person allowed this one call.
const PERSON_ONCE: &str = "person.once";
/// The rule's name where a person denied this one call.
const PERSON_DENIED: &str = "person.denied";
/// The rule's name where nobody answered in time.
const PERSON_LATE: &str = "person.late";
/// The rule's name where a person changed the arguments again and again.
const PERSON_EDITS: &str = "person.edits";

/// The rule's name where a guard denied the call.
const GUARD_DENIED: &str = "guard.denied";
/// The rule's name where a guard wants a person to be asked.
const GUARD_ASKS: &str = "guard.asks";

/// The rule's name where the tool's own plugin says, before a person is asked, that the call cannot
/// do what it should.
const PREVIEW_REFUSES: &str = "preview.refuses";

/// Why a person is asked.
pub(super) struct Asking {
    pub(super) decision: Decision,
    pub(super) rule: &'static str,
    /// Where the rule stands, as `FILE:LINE`.
    pub(super) place: Option<String>,
    pub(super) why: String,
    pub(super) hint: Option<String>,
    /// Each such call is asked, so that no answer holds for later ones.
    pub(super) is_each: bool,
}

/// What of an answer holds for later calls.
pub(super) struct Remembered {
    pub(super) scope: &'static str,
    /// For which calls, in words.
    pub(super) text: String,
    /// The pattern's kind.
    pub(super) kind: &'static str,
}

/// What was decided about a call.
#[derive(Default)]
pub(super) struct Ruling {
    pub(super) rule: &'static str,
    /// Where the rule stands, as `FILE:LINE`.
    pub(super) place: Option<String>,
    pub(super) comment: Option<String>,
    /// The way on which somebody answered; empty where a rule decided.
    pub(super) answered_by: String,
    /// How long the answer holds; empty where a rule decided.
    pub(super) scope: &'static str,
    /// For which later calls the answer holds.
    pub(super) remembered: Option<String>,
    /// The kind of the pattern that these calls have.
    pub(super) pattern: &'static str,
    /// What the model is told; nothing if the call may run.
    pub(super) refusal: Option<Error>,
}

impl Asking {
    pub(super) fn by_rule(facts: &Call<'_>, decision: Decision) -> Self {
        Self {
            rule: decision.rule.name(),
            place: place_of(&decision),
            why: decision.explain(facts),
            hint: decision.hint(facts),
            is_each: false,
            decision,
        }
    }

    pub(super) fn by_guard(decision: Decision, plugin: &PluginName, reason: &str) -> Self {
        let why = format!("plugin `{plugin}` wants you to decide: {reason}");
        Self { decision, rule: GUARD_ASKS, place: None, why, hint: None, is_each: true }
    }
}

impl Ruling {
    pub(super) fn allow(decision: &Decision) -> Self {
        Self { rule: decision.rule.name(), place: place_of(decision), ..Self::default() }
    }

    pub(super) fn allow_by_person(channel: &str) -> Self {
        Self { rule: PERSON_ONCE, ..Self::default() }.answered(channel, None)
    }

    pub(super) fn allow_like(channel: &str, remembered: Remembered) -> Self {
        let rule = RuleId::SessionAlways.name();
        Self { rule, ..Self::default() }.answered(channel, Some(remembered))
    }

    pub(super) fn deny(facts: &Call<'_>, decision: &Decision) -> Self {
        let text = format!("the call of `{}` is denied: {}", facts.tool, decision.explain(facts));
        let place = place_of(decision);
        Self { place, ..Self::refuse(text, decision.rule.name(), decision.hint(facts), None) }
    }

    pub(super) fn deny_by_person(facts: &Call<'_>, channel: &str, comment: Option<String>) -> Self {
        Self::denied(facts, PERSON_DENIED, comment).answered(channel, None)
    }

    pub(super) fn deny_like(
        facts: &Call<'_>,
        channel: &str,
        comment: Option<String>,
        remembered: Option<Remembered>,
    ) -> Self {
        let rule = match remembered {
            Some(_) => RuleId::SessionNever.name(),
            None => PERSON_DENIED,
        };
        Self::denied(facts, rule, comment).answered(channel, remembered)
    }

    fn denied(facts: &Call<'_>, rule: &'static str, comment: Option<String>) -> Self {
        let text = match &comment {
            Some(comment) => format!("the user denied the call of `{}`: {comment}", facts.tool),
            None => format!("the user denied the call of `{}`", facts.tool),
        };
        let hint = "respect the answer: do not make the same call again";
        Self::refuse(text, rule, Some(hint.to_owned()), comment)
    }

    pub(super) fn deny_by_guard(plugin: &PluginName, error: Error) -> Self {
        let comment = Some(format!("plugin `{plugin}`"));
        let Error { message, hint, .. } = error;
        Self::refuse(message, GUARD_DENIED, hint, comment)
    }

    pub(super) fn deny_unasked(facts: &Call<'_>, asking: &Asking, reason: &str) -> Self {
        let text = format!(
            "the call of `{}` is denied: {}, and nobody can be asked ({reason})",
            facts.tool, asking.why
        );
        let comment = Some(format!("nobody can be asked: {reason}"));
        let place = asking.place.clone();
        Self { place, ..Self::refuse(text, asking.rule, asking.hint.clone(), comment) }
    }

    pub(super) fn deny_late(facts: &Call<'_>, patience_ms: u64) -> Self {
        let seconds = patience_ms.div_ceil(1_000);
        let text = format!(
            "the call of `{}` is denied: nobody answered the question within {seconds} s",
            facts.tool
        );
        let hint = "go on without it, or ask again when somebody is there".to_owned();
        let comment = Some(format!("nobody answered within {seconds} s"));
        Self::refuse(text, PERSON_LATE, Some(hint), comment)
    }

    pub(super) fn deny_endless_edits(tool: &ToolName, edits_max: usize) -> Self {
        let text = format!(
            "the call of `{tool}` is denied: its arguments were changed more than {edits_max} times"
        );
        Self::refuse(text, PERSON_EDITS, None, None)
    }

    pub(super) fn refused_by_preview(error: Error) -> Self {
        Self { rule: PREVIEW_REFUSES, refusal: Some(error), ..Self::default() }
    }

    fn answered(self, channel: &str, remembered: Option<Remembered>) -> Self {
        let answered_by = channel.to_owned();
        match remembered {
            Some(Remembered { scope, text, kind: pattern }) => {
                Self { answered_by, scope, remembered: Some(text), pattern, ..self }
            }
            None => Self { answered_by, scope: Scope::Once.name(), ..self },
        }
    }

    fn refuse(
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

fn place_of(decision: &Decision) -> Option<String> {
    decision.rule.place()
}
