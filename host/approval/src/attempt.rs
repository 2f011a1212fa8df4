//! One attempt to decide about a call with these arguments: the rules, then the user.

use std::path::PathBuf;

use jaato_policy::{Call, Decision, Outcome, TypedInto};
use jaato_types::hooks::{Preview, SHELL_PROMPT};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision, PermissionPrompt};
use jaato_types::{Error, Event, PluginName, ToolCall};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer::Remembering;
use crate::offer::Offer;
use crate::prompt::{PromptParts, permission_prompt};
use crate::verdict::PromptReason;
use crate::{Approval, CallContext, CallPlace, Candidate, EqualCalls, NoAnswer, Verdict};

/// A call with the arguments that it would run with.
pub(crate) struct Attempt<'a> {
    pub(crate) approval: &'a Approval<'a>,
    pub(crate) candidate: &'a Candidate<'a>,
    pub(crate) context: &'a dyn CallContext,
    pub(crate) call: &'a ToolCall,
    pub(crate) times: usize,
    pub(crate) was_edited: bool,
}

/// How an attempt ends.
pub(crate) enum Step {
    Decided(Box<Verdict>),
    /// The user wants other arguments.
    Edited(Value),
}

/// How a prompt ends.
enum PromptEnd {
    Answered(PermissionAnswer),
    /// The answer is none of those that the prompt allows.
    NotOffered,
    NoAnswer(NoAnswer),
    /// Agreement to a plan, while no user can be asked and no rule or guard wants a prompt.
    UnattendedPlan(String),
    /// The rules have changed meanwhile and decide.
    Decided(Decision),
    Late {
        patience_ms: u64,
    },
    /// The preview says that the call cannot do what it should.
    Refused(Error),
}

impl Attempt<'_> {
    pub(crate) async fn run(
        &self,
        guard: Option<(PluginName, String)>,
        equal: &mut EqualCalls,
    ) -> Step {
        let place = self.approval.gate.place();
        let mut facts = self.facts(&place);
        let resolved = self.resolved(&facts);
        facts.resolved = &resolved;
        let mut decision = self.decision(&facts);
        let resolved_again;
        let mut preview = None;
        if decision.outcome == Outcome::Ask && facts.is_typed_unseen() {
            // Only the tool's own plugin sees the terminal.
            preview = self.context.preview(self.call).await;
            facts.typed_into = Some(typed_into(preview.as_ref()));
            resolved_again = self.resolved(&facts);
            facts.resolved = &resolved_again;
            decision = self.decision(&facts);
        }
        let reason = match (decision.outcome, guard) {
            (Outcome::Deny, _) => return decided(Verdict::denied(&facts, &decision)),
            (Outcome::Allow, None) => return decided(Verdict::allowed(&decision)),
            (Outcome::Ask, None) => PromptReason::rule(&facts, &decision),
            (Outcome::Allow | Outcome::Ask, Some((plugin, reason))) => {
                PromptReason::guard(&plugin, &reason)
            }
        };
        let offer = Offer::of(&self.approval.rules.lock(), &facts, reason.is_each);
        let end = match equal.answer_to(&facts) {
            Some(answer) => PromptEnd::Answered(answer),
            None => self.ask(preview, (&facts, &place), &reason, &offer).await,
        };
        let remembering = Remembering { approval: self.approval, context: self.context };
        decided(match end {
            PromptEnd::Answered(answer) if answer.decision == PermissionDecision::Edit => {
                return Step::Edited(answer.arguments.unwrap_or_default());
            }
            PromptEnd::Answered(answer) => {
                equal.note(&facts, &answer);
                remembering.verdict(answer, &facts, &offer)
            }
            PromptEnd::NotOffered => {
                Verdict::denied_not_offered(&facts, self.approval.asker.channel())
            }
            PromptEnd::Decided(decision) if decision.outcome == Outcome::Allow => {
                Verdict::allowed(&decision)
            }
            PromptEnd::Decided(decision) => Verdict::denied(&facts, &decision),
            PromptEnd::Late { patience_ms } => Verdict::denied_late(&facts, patience_ms),
            PromptEnd::NoAnswer(NoAnswer { reason: why }) => {
                Verdict::denied_without_user(&facts, &reason, &why)
            }
            PromptEnd::UnattendedPlan(why) => Verdict::unattended_plan(&why),
            PromptEnd::Refused(error) => Verdict::refused_by_preview(error),
        })
    }

    /// Shows a prompt and waits for its answer.
    async fn ask(
        &self,
        preview: Option<Preview>,
        (facts, place): (&Call<'_>, &CallPlace),
        reason: &PromptReason,
        offer: &Offer,
    ) -> PromptEnd {
        let Approval { asker, rules, .. } = self.approval;
        if let Some(why) = asker.unavailable() {
            return match facts.starts_plan() && reason.is_silence {
                true => PromptEnd::UnattendedPlan(why),
                false => PromptEnd::NoAnswer(NoAnswer { reason: why }),
            };
        }
        let preview = match preview {
            Some(made) => Some(made),
            None => self.context.preview(self.call).await,
        };
        if let Some(error) = preview.as_ref().and_then(|preview| preview.refusal.clone()) {
            return PromptEnd::Refused(error);
        }
        let changes = rules.changes();
        // The rules may have changed while the plugin made the preview.
        if let Some(decision) = self.decided_meanwhile(facts, reason) {
            return PromptEnd::Decided(decision);
        }
        let prompt = permission_prompt(PromptParts {
            attempt: self,
            facts,
            environment: place.environment.clone(),
            reason,
            offer,
            preview,
            patience_ms: self.approval.patience_ms.or_else(|| asker.patience_ms()),
        });
        self.context.emit(Event::PermissionAsked(Box::new(prompt.clone())));
        let _held = self.context.hold();
        self.answer(&prompt, facts, reason, changes).await
    }

    /// Waits for the answer, or for what makes it unnecessary.
    async fn answer(
        &self,
        prompt: &PermissionPrompt,
        facts: &Call<'_>,
        reason: &PromptReason,
        mut changes: watch::Receiver<u64>,
    ) -> PromptEnd {
        let patience_ms = prompt.patience_ms;
        let late = async {
            match patience_ms {
                Some(ms) => self.context.sleep(ms).await,
                None => std::future::pending().await,
            }
        };
        let answer = self.approval.asker.ask(self.approval.session, prompt);
        tokio::pin!(answer, late);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(answer) if prompt.allows(&answer) => PromptEnd::Answered(answer),
                    Ok(_) => PromptEnd::NotOffered,
                    Err(no_answer) => PromptEnd::NoAnswer(no_answer),
                },
                // An answer to another prompt may be one to this: the user is not asked twice.
                // Its sender is here: it cannot fail.
                _ = changes.changed() => {
                    if let Some(decision) = self.decided_meanwhile(facts, reason) {
                        return PromptEnd::Decided(decision);
                    }
                }
                () = &mut late => {
                    return PromptEnd::Late { patience_ms: patience_ms.unwrap_or_default() };
                }
            }
        }
    }

    /// Returns the decision of the rules if they leave nothing to ask by now.
    fn decided_meanwhile(&self, facts: &Call<'_>, reason: &PromptReason) -> Option<Decision> {
        let decision = self.decision(facts);
        let is_decided = match decision.outcome {
            Outcome::Ask => false,
            Outcome::Allow => !reason.is_each,
            Outcome::Deny => true,
        };
        is_decided.then_some(decision)
    }

    fn decision(&self, facts: &Call<'_>) -> Decision {
        self.approval.gate.decide(&self.approval.rules.lock(), facts)
    }

    fn facts<'b>(&'b self, place: &'b CallPlace) -> Call<'b> {
        let Candidate { spec, schema, plugin, source, .. } = self.candidate;
        Call {
            source: *source,
            schema,
            annotations: spec.annotations,
            auto_approval: spec.auto_approval,
            caller: self.approval.caller,
            agent: self.approval.agent,
            directory: place.directory.as_deref(),
            home: place.home.as_deref(),
            workspace: place.workspace,
            root: place.root.as_deref(),
            own_folders: &place.own_folders,
            ..Call::new(&self.call.name, plugin, &self.call.arguments)
        }
    }

    /// Returns where links on the paths of a call lead: rules, modes and answers look at paths.
    fn resolved(&self, facts: &Call<'_>) -> Vec<PathBuf> {
        let paths = facts.named_paths();
        paths.iter().filter_map(|path| self.approval.gate.resolve(path)).collect()
    }
}

fn decided(verdict: Verdict) -> Step {
    Step::Decided(Box::new(verdict))
}

/// Reads what a plugin says of who reads what is typed.
fn typed_into(preview: Option<&Preview>) -> TypedInto {
    match preview {
        Some(preview) if preview.typed_into == SHELL_PROMPT => TypedInto::ShellPrompt,
        Some(_) | None => TypedInto::Unknown,
    }
}
