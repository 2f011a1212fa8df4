//! May a call run? The tool is there, the arguments match, the rules or a person allow it.

use jaato_policy::{
    Answer as Standing, ArgumentsDigest, Call, Caller, Decision, Outcome, PluginSource, RuleId,
    SessionRule, decide,
};
use jaato_types::{Error, ErrorKind, Event, ToolCall};

use super::{Admitted, CallRunner, CallsDone, Fate, Initiative};
use crate::{Answer, KnownTool, Question, introspection};

/// The rule's name where a person allowed this one call.
const PERSON_ONCE: &str = "person.once";
/// The rule's name where a person denied this one call.
const PERSON_DENIED: &str = "person.denied";

/// What was decided about a call.
struct Ruling {
    rule: &'static str,
    comment: Option<String>,
    /// What the model is told; nothing if the call may run.
    refusal: Option<Error>,
}

impl CallRunner<'_> {
    /// Takes a call as far as the point where it may run.
    pub(super) async fn admit<'a>(
        &'a self,
        call: &'a ToolCall,
        done: &mut CallsDone,
    ) -> Admitted<'a> {
        if self.cancel.is_cancelled() {
            return Admitted { call, tool: None, fate: Fate::Drop };
        }
        let found = match self.toolbox.find(&call.name) {
            Ok(found) => found,
            Err(error) => return Admitted { call, tool: None, fate: Fate::Refuse(error) },
        };
        let tool = found.tool;
        if !found.active && !done.activated.contains(&call.name) {
            done.activated.push(call.name.clone());
        }
        let withheld = match self.initiative {
            Initiative::Model | Initiative::Plugin => self.toolbox.withheld_error(&call.name),
            Initiative::Person | Initiative::Tool => None,
        };
        let checked = withheld.map_or_else(|| self.toolbox.check(tool, &call.arguments), Err);
        let fate = match checked {
            Ok(()) => self.pass_gate(call, tool, done).await,
            Err(error) => Fate::Refuse(error),
        };
        if matches!(fate, Fate::Run) && introspection::is_own(tool) {
            done.activated.extend(introspection::wanted(&self.toolbox, call));
        }
        Admitted { call, tool: Some(tool), fate }
    }

    async fn pass_gate(&self, call: &ToolCall, tool: &KnownTool, done: &mut CallsDone) -> Fate {
        let facts = self.facts_of(call, tool);
        let decision = {
            let rules = self.rules.lock();
            decide(&rules, &facts)
        };
        let ruling = match decision.outcome {
            Outcome::Allow => Ruling::allow(decision.rule.name()),
            Outcome::Deny => Ruling::deny(&facts, decision),
            Outcome::Ask => match self.ask(call, tool, &facts, decision).await {
                Some(answer) => self.rule_by(answer, &facts, decision, done),
                None => return Fate::Drop,
            },
        };
        self.emitter.emit(Event::PermissionDecided {
            call_id: call.id.clone(),
            name: call.name.clone(),
            allowed: ruling.refusal.is_none(),
            rule: ruling.rule.to_owned(),
            comment: ruling.comment,
        });
        ruling.refusal.map_or(Fate::Run, Fate::Refuse)
    }

    fn facts_of<'a>(&self, call: &'a ToolCall, tool: &'a KnownTool) -> Call<'a> {
        Call {
            tool: &call.name,
            plugin: &tool.plugin,
            source: if tool.shipped { PluginSource::Shipped } else { PluginSource::Elsewhere },
            annotations: tool.spec.annotations,
            auto_approval: tool.spec.auto_approval,
            caller: match self.initiative {
                Initiative::Model | Initiative::Tool | Initiative::Plugin => Caller::Model,
                Initiative::Person => Caller::Person,
            },
            arguments: ArgumentsDigest::of(&call.arguments),
        }
    }

    /// Asks a person; nothing if the turn was cancelled meanwhile.
    async fn ask(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        facts: &Call<'_>,
        decision: Decision,
    ) -> Option<Answer> {
        if let Some(reason) = self.ports.asker.nobody() {
            return Some(Answer::Nobody { reason });
        }
        self.emitter.emit(Event::PermissionAsked {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            rule: decision.rule.name().to_owned(),
        });
        let (why, always) = (decision.explain(facts), facts.always_scope());
        let by = self.origin.map(|origin| &origin.plugin);
        let question = Question { call, tool, by, decision, why, always };
        let _held = self.origin.map(|origin| origin.hold.hold());
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            answer = self.ports.asker.ask(question) => Some(answer),
        }
    }

    fn rule_by(
        &self,
        answer: Answer,
        facts: &Call<'_>,
        decision: Decision,
        done: &mut CallsDone,
    ) -> Ruling {
        match answer {
            Answer::AllowOnce => Ruling::allow(PERSON_ONCE),
            Answer::AllowInSession => {
                self.remember(facts, Standing::Always);
                Ruling::allow(RuleId::SessionAlways.name())
            }
            Answer::Deny { comment } => Ruling::deny_by_person(facts, PERSON_DENIED, comment),
            Answer::DenyInSession { comment } => {
                self.remember(facts, Standing::Never);
                Ruling::deny_by_person(facts, RuleId::SessionNever.name(), comment)
            }
            Answer::Nobody { reason } => {
                let ruling = Ruling::deny_unasked(facts, decision, &reason);
                done.nobody_asked = done.nobody_asked.take().or_else(|| ruling.refusal.clone());
                ruling
            }
        }
    }

    fn remember(&self, facts: &Call<'_>, answer: Standing) {
        let mut rules = self.rules.lock();
        rules.remember(SessionRule::of(facts, answer));
    }
}

impl Ruling {
    fn allow(rule: &'static str) -> Self {
        Self { rule, comment: None, refusal: None }
    }

    fn deny(facts: &Call<'_>, decision: Decision) -> Self {
        let text = format!("the call of `{}` is denied: {}", facts.tool, decision.explain(facts));
        Self::refuse(text, decision.rule.name(), decision.hint(facts), None)
    }

    fn deny_by_person(facts: &Call<'_>, rule: &'static str, comment: Option<String>) -> Self {
        let text = match &comment {
            Some(comment) => format!("the user denied the call of `{}`: {comment}", facts.tool),
            None => format!("the user denied the call of `{}`", facts.tool),
        };
        let hint = "respect the answer: do not make the same call again";
        Self::refuse(text, rule, Some(hint.to_owned()), comment)
    }

    fn deny_unasked(facts: &Call<'_>, decision: Decision, reason: &str) -> Self {
        let text = format!(
            "the call of `{}` is denied: {}, and nobody can be asked ({reason})",
            facts.tool,
            decision.explain(facts)
        );
        let comment = Some(format!("nobody can be asked: {reason}"));
        Self::refuse(text, decision.rule.name(), decision.hint(facts), comment)
    }

    fn refuse(
        text: String,
        rule: &'static str,
        hint: Option<String>,
        comment: Option<String>,
    ) -> Self {
        let text = format!("{text} (rule `{rule}`)");
        let error = Error { hint, ..Error::new(ErrorKind::PermissionDenied, text) };
        Self { rule, comment, refusal: Some(error) }
    }
}
