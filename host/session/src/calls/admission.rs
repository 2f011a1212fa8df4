//! May a call run? The tool is there, the arguments match, the guards let it go on, the rules or a
//! person allow it.

use std::path::PathBuf;

use jaato_policy::{Call, Caller, CallingAgent, DenyRules, Outcome, PluginSource, TypedInto};
use jaato_types::hooks::{CalledBy, Preview, SHELL_PROMPT};
use jaato_types::{Event, PluginName, Result, ToolCall};
use serde_json::Value;

use super::asking::Asked;
use super::ruling::{Asking, Ruling};
use super::{Admitted, CallRunner, CallsDone, Fate, Initiative};
use crate::hooks::{AboutCall, Guarded, Rewritten};
use crate::{Agent, CallPlace, KnownTool, introspection};

/// How often a person may change the arguments of one call.
const EDITS_MAX: usize = 8;

/// Who changed arguments, where a person did: no plugin can have the name.
const PERSON: &str = "the user";

/// Stands behind the name of a rule while rules of files that deny do not hold.
const DENY_IGNORED: &str = "(option.ignore_deny_rules)";

/// What the gate says to a call.
enum Passed {
    To(Fate),
    /// It comes to the gate again with these arguments.
    Edited(Value),
}

impl CallRunner<'_> {
    /// Takes a call that stands in no answer of the model as far as the point where it may run.
    pub(super) async fn admit_alone<'a>(&'a self, call: &'a ToolCall) -> Admitted<'a> {
        self.admit(call, std::slice::from_ref(call), &mut CallsDone::default()).await
    }

    /// Takes a call, one of these, as far as the point where it may run.
    pub(super) async fn admit<'a>(
        &'a self,
        call: &'a ToolCall,
        all: &[ToolCall],
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
        let mut rewritten = None;
        let fate = self.pass_guards_and_gate(call, tool, all, &mut rewritten, done).await;
        let runs = rewritten.as_ref().map_or(call, |it: &Rewritten| &it.call);
        if matches!(fate, Fate::Run) && introspection::is_own(tool) {
            done.activated.extend(introspection::wanted(&self.toolbox, runs));
        }
        Admitted { call, rewritten, tool: Some(tool), fate }
    }

    /// Asks guards and gate, and both again where the person changes the arguments: what a person
    /// writes is looked at as what a model writes.
    async fn pass_guards_and_gate(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        all: &[ToolCall],
        rewritten: &mut Option<Rewritten>,
        done: &mut CallsDone,
    ) -> Fate {
        let mut was_edited = false;
        for _ in 0..=EDITS_MAX {
            let runs = rewritten.as_ref().map_or(call, |it| &it.call).clone();
            let Guarded { rewritten: by_guards, asks, denied } = self.ask_guards(&runs, tool).await;
            if let Some(by_guards) = by_guards {
                Rewritten::follow(rewritten, by_guards);
            }
            let runs = rewritten.as_ref().map_or(call, |it| &it.call).clone();
            if self.cancel.is_cancelled() {
                return Fate::Drop;
            }
            if let Some((plugin, error)) = denied {
                return self.decided(&runs, Ruling::deny_by_guard(&plugin, error));
            }
            // What was changed on the way is no call of the model's answer.
            let times = match rewritten {
                Some(_) => 1,
                None => all.iter().filter(|it| is_same(it, call)).count().max(1),
            };
            match self.pass_gate(&runs, tool, (asks, times, was_edited), done).await {
                Passed::To(fate) => return fate,
                Passed::Edited(arguments) => {
                    was_edited = true;
                    if let Err(error) = self.edit(call, tool, arguments, rewritten) {
                        let text = format!("the arguments cannot be used: {}", error.message);
                        self.emitter.notice(text);
                    }
                }
            }
        }
        let runs = rewritten.as_ref().map_or(call, |it| &it.call);
        self.decided(runs, Ruling::deny_endless_edits(&call.name, EDITS_MAX))
    }

    /// Gives a call the arguments that a person wrote.
    fn edit(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        arguments: Value,
        rewritten: &mut Option<Rewritten>,
    ) -> Result<()> {
        self.toolbox.check(tool, &arguments)?;
        self.emitter.emit(Event::ToolCallChanged {
            call_id: call.id.clone(),
            name: call.name.clone(),
            source: PERSON.to_owned(),
            arguments: arguments.clone(),
        });
        let changed = ToolCall { arguments, ..call.clone() };
        Rewritten::follow(rewritten, Rewritten::by(changed, PERSON));
        Ok(())
    }

    async fn pass_gate(
        &self,
        call: &ToolCall,
        tool: &KnownTool,
        (guard, times, was_edited): (Option<(PluginName, String)>, usize, bool),
        done: &mut CallsDone,
    ) -> Passed {
        let place = self.ports.gate.place();
        let mut facts = self.facts_of(call, tool, &place);
        let resolved = self.resolved(&facts);
        facts.resolved = &resolved;
        let decide = |facts: &Call<'_>| self.ports.gate.decide(&self.rules.lock(), facts);
        let mut decision = decide(&facts);
        let resolved_again;
        let mut preview = None;
        if decision.outcome == Outcome::Ask && facts.is_typed_unseen() {
            // Only the tool's own plugin sees the terminal.
            preview = self.preview(call, tool).await;
            facts.typed_into = Some(typed_into(preview.as_ref()));
            resolved_again = self.resolved(&facts);
            facts.resolved = &resolved_again;
            decision = decide(&facts);
        }
        let asking = match (decision.outcome, guard) {
            (Outcome::Deny, _) => {
                return Passed::To(self.decided(call, Ruling::deny(&facts, &decision)));
            }
            (Outcome::Allow, None) => {
                return Passed::To(self.decided(call, Ruling::allow(&decision)));
            }
            (Outcome::Ask, None) => Asking::by_rule(&facts, decision),
            (Outcome::Allow | Outcome::Ask, Some((plugin, reason))) => {
                Asking::by_guard(decision, &plugin, &reason)
            }
        };
        let asked = match done.answer_to(&facts) {
            Some(answer) => Asked::Answer(answer),
            None => self.ask((call, tool, preview), &facts, &asking, (times, was_edited)).await,
        };
        match asked {
            Asked::Answer(crate::Answer::Edit { arguments }) => Passed::Edited(arguments),
            Asked::Answer(answer) => {
                let ruling = self.rule_by(answer, &facts, &asking, done);
                Passed::To(self.decided(call, ruling))
            }
            Asked::Decided(decision) => {
                let ruling = match decision.outcome {
                    Outcome::Allow => Ruling::allow(&decision),
                    Outcome::Deny | Outcome::Ask => Ruling::deny(&facts, &decision),
                };
                Passed::To(self.decided(call, ruling))
            }
            Asked::Late { patience_ms } => {
                let ruling = Ruling::deny_late(&facts, patience_ms);
                done.nobody_asked = done.nobody_asked.take().or_else(|| ruling.refusal.clone());
                Passed::To(self.decided(call, ruling))
            }
            Asked::Refused(ruling) => Passed::To(self.decided(call, ruling)),
            Asked::Dropped => Passed::To(Fate::Drop),
        }
    }

    fn decided(&self, call: &ToolCall, ruling: Ruling) -> Fate {
        let (agent_type, agent_name) = self.agent_names();
        self.emitter.emit(Event::PermissionDecided {
            call_id: call.id.clone(),
            name: call.name.clone(),
            allowed: ruling.refusal.is_none(),
            rule: self.recorded_rule(ruling.rule),
            place: ruling.place,
            comment: ruling.comment,
            answered_by: ruling.answered_by,
            scope: ruling.scope.to_owned(),
            remembered: ruling.remembered,
            pattern: ruling.pattern.to_owned(),
            agent_type: agent_type.to_owned(),
            agent_name: agent_name.to_owned(),
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

    /// Names the agent whose session it is, by kind and by what people see it called.
    pub(super) fn agent_names(&self) -> (&str, &str) {
        let agent = self.agent.map_or(CallingAgent::MAIN, called);
        (agent.agent_type, agent.agent_name)
    }

    fn facts_of<'a>(
        &'a self,
        call: &'a ToolCall,
        tool: &'a KnownTool,
        place: &'a CallPlace,
    ) -> Call<'a> {
        Call {
            source: PluginSource::of(tool.shipped, tool.spec.foreign),
            schema: tool.schema(),
            annotations: tool.spec.annotations,
            auto_approval: tool.spec.auto_approval,
            caller: match self.initiative {
                Initiative::Model | Initiative::Tool | Initiative::Plugin => Caller::Model,
                Initiative::Person => Caller::Person,
            },
            agent: self.agent.map_or(CallingAgent::MAIN, called),
            directory: place.directory.as_deref(),
            home: place.home.as_deref(),
            workspace: place.workspace,
            ..Call::new(&call.name, &tool.plugin, &call.arguments)
        }
    }

    /// Returns where links on the paths of a call lead: rules, modes and answers look at paths.
    fn resolved(&self, facts: &Call<'_>) -> Vec<PathBuf> {
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
}

fn is_same(one: &ToolCall, other: &ToolCall) -> bool {
    one.name == other.name && one.arguments == other.arguments
}

fn called(agent: &Agent) -> CallingAgent<'_> {
    CallingAgent { agent_type: "subagent", agent_name: &agent.name }
}

/// Reads what a plugin says of who reads what is typed.
fn typed_into(preview: Option<&Preview>) -> TypedInto {
    match preview {
        Some(preview) if preview.typed_into == SHELL_PROMPT => TypedInto::ShellPrompt,
        Some(_) | None => TypedInto::Unknown,
    }
}
