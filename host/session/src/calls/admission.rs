//! May a call run? The tool is there, the arguments match, the guards let it go on, the rules or a
//! person allow it.

use std::path::PathBuf;

use jaato_policy::{
    AlwaysScope, Answer as Standing, Call, Caller, CallingAgent, Decision, DenyRules, Outcome,
    PluginSource, RuleId, SessionRule,
};
use jaato_types::hooks::CalledBy;
use jaato_types::{Error, ErrorKind, Event, PluginName, ToolCall};

use super::{Admitted, CallRunner, CallsDone, Fate, Initiative};
use crate::hooks::{AboutCall, Guarded};
use crate::{Answer, CallPlace, KnownTool, Question, introspection};

/// The rule's name where a person allowed this one call.
const PERSON_ONCE: &str = "person.once";
/// The rule's name where a person denied this one call.
const PERSON_DENIED: &str = "person.denied";

/// The rule's name where a guard denied the call.
const GUARD_DENIED: &str = "guard.denied";
/// The rule's name where a guard wants a person to be asked.
const GUARD_ASKS: &str = "guard.asks";

/// The rule's name where the tool's own plugin says, before a person is asked, that the call cannot
/// do what it should.
const PREVIEW_REFUSES: &str = "preview.refuses";

/// Stands behind the name of a rule while rules of files that deny do not hold.
const DENY_IGNORED: &str = "(option.ignore_deny_rules)";

/// Why a person is asked.
struct Asking {
    decision: Decision,
    rule: &'static str,
    why: String,
    hint: Option<String>,
    /// What "always" means; none where each such call is asked.
    always: Option<AlwaysScope>,
}

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
            return Admitted::without_tool(call, Fate::Drop);
        }
        let found = match self.toolbox.find(&call.name) {
            Ok(found) => found,
            Err(error) => return Admitted::without_tool(call, Fate::Refuse(error)),
        };
        let tool = found.tool;
        if !found.active && !done.activated.contains(&call.name) {
            done.activated.push(call.name.clone());
        }
        let withheld = match self.initiative {
            // What a plugin offers to nobody it may still call itself, by the rules.
            Initiative::Plugin if self.origin.is_some_and(|by| by.plugin == tool.plugin) => None,
            Initiative::Model | Initiative::Plugin => self.toolbox.withheld_error(&call.name),
            Initiative::Person | Initiative::Tool => None,
        };
        let checked = withheld.map_or_else(|| self.toolbox.check(tool, &call.arguments), Err);
        if let Err(error) = checked {
            let tool = Some(tool);
            return Admitted { call, rewritten: None, tool, fate: Fate::Refuse(error) };
        }
        let guarded = self.ask_guards(call, tool).await;
        let Guarded { rewritten, asks, denied } = guarded;
        let runs = rewritten.as_ref().map_or(call, |rewritten| &rewritten.call);
        let fate = match denied {
            _ if self.cancel.is_cancelled() => Fate::Drop,
            Some((plugin, error)) => self.decided(runs, Ruling::deny_by_guard(&plugin, error)),
            None => self.pass_gate(runs, tool, asks, done).await,
        };
        if matches!(fate, Fate::Run) && introspection::is_own(tool) {
            done.activated.extend(introspection::wanted(&self.toolbox, runs));
        }
        Admitted { call, rewritten, tool: Some(tool), fate }
    }

    async fn pass_gate(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        guard: Option<(PluginName, String)>,
        done: &mut CallsDone,
    ) -> Fate {
        let place = self.ports.gate.place();
        let mut facts = self.facts_of(call, tool, &place);
        let resolved = self.resolved(&facts);
        facts.resolved = &resolved;
        let decision = {
            let rules = self.rules.lock();
            self.ports.gate.decide(&rules, &facts)
        };
        let asking = match (decision.outcome, guard) {
            (Outcome::Deny, _) => return self.decided(call, Ruling::deny(&facts, decision)),
            (Outcome::Allow, None) => {
                return self.decided(call, Ruling::allow(decision.rule.name()));
            }
            (Outcome::Ask, None) => Asking::by_rule(&facts, decision),
            (Outcome::Allow | Outcome::Ask, Some((plugin, reason))) => {
                Asking::by_guard(decision, &plugin, &reason)
            }
        };
        match self.ask(call, tool, &asking).await {
            Ok(answer) => {
                let ruling = self.rule_by(answer, &facts, &asking, done);
                self.decided(call, ruling)
            }
            Err(fate) => fate,
        }
    }

    fn decided(&self, call: &ToolCall, ruling: Ruling) -> Fate {
        self.emitter.emit(Event::PermissionDecided {
            call_id: call.id.clone(),
            name: call.name.clone(),
            allowed: ruling.refusal.is_none(),
            rule: self.recorded_rule(ruling.rule),
            comment: ruling.comment,
        });
        ruling.refusal.map_or(Fate::Run, Fate::Refuse)
    }

    /// Returns a rule's name for events and the ledger. Each decision says so while rules of files
    /// are lifted.
    fn recorded_rule(&self, rule: &str) -> String {
        match self.rules.lock().deny_rules {
            DenyRules::Hold => rule.to_owned(),
            DenyRules::Ignored => format!("{rule} {DENY_IGNORED}"),
        }
    }

    fn facts_of<'a>(
        &'a self,
        call: &'a ToolCall,
        tool: &'a KnownTool,
        place: &'a CallPlace,
    ) -> Call<'a> {
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
            arguments: &call.arguments,
            agent: self.agent.map_or(CallingAgent::MAIN, |agent| CallingAgent {
                agent_type: "subagent",
                agent_name: &agent.name,
            }),
            directory: place.directory.as_deref(),
            home: place.home.as_deref(),
            resolved: &[],
            workspace: place.workspace,
            typed_into: None,
        }
    }

    /// Returns where links on the paths of a call lead. Only rules of files look at paths.
    fn resolved(&self, facts: &Call<'_>) -> Vec<PathBuf> {
        if self.rules.lock().files.is_empty() {
            return Vec::new();
        }
        let paths = facts.named_paths();
        paths.iter().filter_map(|path| self.ports.gate.resolve(path)).collect()
    }

    async fn ask_guards(&self, call: &ToolCall, tool: &KnownTool) -> Guarded {
        let called_by = match self.initiative {
            Initiative::Model => CalledBy::Model,
            Initiative::Person => CalledBy::Person,
            Initiative::Tool => CalledBy::Itself,
            Initiative::Plugin => CalledBy::Plugin,
        };
        let about = AboutCall {
            owner: introspection::owner(Some(tool)),
            annotations: tool.spec.annotations,
            called_by,
            caller: self.origin.map(|origin| origin.plugin.clone()).unwrap_or_default(),
            check: &|arguments| self.toolbox.check(tool, arguments),
        };
        self.hooks.before_tool(call, about, self.cancel).await
    }

    /// Asks a person; gives what becomes of the call where that is known without: the turn was
    /// cancelled meanwhile, or the tool's own plugin says that the call cannot do what it should.
    async fn ask(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        asking: &Asking,
    ) -> Result<Answer, Fate> {
        if let Some(reason) = self.ports.asker.nobody() {
            return Ok(Answer::Nobody { reason });
        }
        let preview = self.preview(call, tool).await;
        if self.cancel.is_cancelled() {
            return Err(Fate::Drop);
        }
        if let Some(error) = preview.as_ref().and_then(|preview| preview.refusal.clone()) {
            let ruling = Ruling { rule: PREVIEW_REFUSES, refusal: Some(error), comment: None };
            return Err(self.decided(call, ruling));
        }
        self.emitter.emit(Event::PermissionAsked {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            rule: asking.rule.to_owned(),
            preview: preview.clone(),
        });
        let Asking { decision, always, why, .. } = asking;
        let (decision, always, why) = (decision.clone(), *always, why.clone());
        let by = self.origin.map(|origin| &origin.plugin);
        let agent = self.agent.map(|agent| agent.name.as_str());
        let session = self.session;
        let question = Question { session, call, tool, by, agent, decision, why, always, preview };
        let of_origin = self.origin.map(|origin| origin.hold.hold());
        let _held = (of_origin, self.agent.map(|agent| agent.hold.hold()));
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(Fate::Drop),
            answer = self.ports.asker.ask(question) => Ok(answer),
        }
    }

    fn rule_by(
        &self,
        answer: Answer,
        facts: &Call<'_>,
        asking: &Asking,
        done: &mut CallsDone,
    ) -> Ruling {
        match answer {
            Answer::AllowOnce => Ruling::allow(PERSON_ONCE),
            // It would be asked again all the same.
            Answer::AllowInSession if asking.always.is_none() => Ruling::allow(PERSON_ONCE),
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
                let ruling = Ruling::deny_unasked(facts, asking, &reason);
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

impl Asking {
    fn by_rule(facts: &Call<'_>, decision: Decision) -> Self {
        let (rule, why) = (decision.rule.name(), decision.explain(facts));
        let hint = decision.hint(facts);
        Self { decision, rule, why, hint, always: Some(facts.always_scope()) }
    }

    fn by_guard(decision: Decision, plugin: &PluginName, reason: &str) -> Self {
        let why = format!("plugin `{plugin}` wants you to decide: {reason}");
        Self { decision, rule: GUARD_ASKS, why, hint: None, always: None }
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

    fn deny_by_guard(plugin: &PluginName, error: Error) -> Self {
        let comment = Some(format!("plugin `{plugin}`"));
        let Error { message, hint, .. } = error;
        Self::refuse(message, GUARD_DENIED, hint, comment)
    }

    fn deny_unasked(facts: &Call<'_>, asking: &Asking, reason: &str) -> Self {
        let text = format!(
            "the call of `{}` is denied: {}, and nobody can be asked ({reason})",
            facts.tool, asking.why
        );
        let comment = Some(format!("nobody can be asked: {reason}"));
        Self::refuse(text, asking.rule, asking.hint.clone(), comment)
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
