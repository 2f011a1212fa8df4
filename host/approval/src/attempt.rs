//! One attempt to decide about a call with these arguments: the rules, then the user.

use std::path::PathBuf;

use jaato_policy::{
    Decision, PolicyCall, RuleOutcome, ToolDefinition, TypingTarget, changes_since_allowed,
};
use jaato_types::files::FileLimits;
use jaato_types::hooks::{Preview, SHELL_PROMPT};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision, PermissionPrompt};
use jaato_types::{Error, Event, PluginName, ToolCall};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer::AnswerRecorder;
use crate::offer::OfferedAnswers;
use crate::prompt::{PromptParts, permission_prompt};
use crate::verdict::PromptReason;
use crate::{
    CallContext, CallEnvironment, CallVerdict, CandidateCall, EqualCallAnswers, NoAnswer,
    SessionApproval,
};

/// How often a call is checked if its files change while the user is asked.
const CHECKS_MAX: usize = 4;

/// A call with the arguments that it would run with.
pub(crate) struct ApprovalAttempt<'a> {
    pub(crate) approval: &'a SessionApproval<'a>,
    pub(crate) candidate: &'a CandidateCall<'a>,
    pub(crate) context: &'a dyn CallContext,
    pub(crate) call: &'a ToolCall,
    pub(crate) times: usize,
    pub(crate) was_edited: bool,
}

/// The end of an attempt.
pub(crate) enum AttemptOutcome {
    Decided(Box<CallVerdict>),
    /// The user wants other arguments.
    Edited(Value),
}

/// The end of one check of a call.
enum CheckOutcome {
    Step(AttemptOutcome),
    /// These paths changed while the user was asked.
    Changed(Vec<PathBuf>),
}

/// The end of a prompt.
enum PromptOutcome {
    Answered(PermissionAnswer),
    /// The prompt does not allow this answer.
    NotOffered,
    NoAnswer(NoAnswer),
    /// Approval of a plan without a user, if no rule or guard wants a prompt.
    UnattendedPlan(String),
    /// The rules changed while the user was asked, and they decide.
    Decided(Decision),
    Late {
        patience_ms: u64,
    },
    /// The preview shows that the call cannot do its job.
    Refused(Error),
}

impl ApprovalAttempt<'_> {
    /// Decides. Asks again if the files of the call changed while the user was asked.
    pub(crate) async fn run(
        &self,
        guard: Option<(PluginName, String)>,
        equal: &mut EqualCallAnswers,
    ) -> AttemptOutcome {
        let mut changed = Vec::new();
        for _ in 0..CHECKS_MAX {
            match self.check_changed_files(guard.as_ref(), &changed, equal).await {
                CheckOutcome::Step(step) => return step,
                CheckOutcome::Changed(paths) => changed = paths,
            }
        }
        decided_outcome(CallVerdict::denied_after_changes(&self.call.name))
    }

    /// Decides by the files to which the call's paths currently lead.
    async fn check_changed_files(
        &self,
        guard: Option<&(PluginName, String)>,
        changed: &[PathBuf],
        equal: &mut EqualCallAnswers,
    ) -> CheckOutcome {
        let place = self.approval.gate.call_environment();
        let mut facts = self.policy_call(&place);
        let resolved = self.approval.resolve_call_paths(&facts).await;
        facts.resolved = resolved.as_ref();
        facts.repository_is_plain =
            facts.runs_program("git") && self.approval.gate.is_plain_repository();
        let mut decision = self.rules_decision(&facts);
        let resolved_again;
        let mut preview = None;
        if decision.outcome == RuleOutcome::Ask && facts.has_unknown_typing_target() {
            // Only the tool's own plugin sees the terminal.
            preview = self.preview_call(&facts).await;
            facts.typed_into = Some(typing_target(preview.as_ref()));
            resolved_again = self.approval.resolve_call_paths(&facts).await;
            facts.resolved = resolved_again.as_ref();
            decision = self.rules_decision(&facts);
        }
        let reason = match (decision.outcome, guard) {
            (RuleOutcome::Deny, _) => {
                return CheckOutcome::from_verdict(CallVerdict::denied_by_rule(&facts, &decision));
            }
            (RuleOutcome::Allow, None) if changed.is_empty() => {
                return CheckOutcome::from_verdict(self.allowed_verdict(&facts, &decision).await);
            }
            (RuleOutcome::Allow | RuleOutcome::Ask, None) => {
                let changes = changes_since_allowed(&self.approval.rules.lock(), &facts);
                PromptReason::from_rule(&facts, &decision).after_tool_changes(&changes)
            }
            (RuleOutcome::Allow | RuleOutcome::Ask, Some((plugin, reason))) => {
                PromptReason::from_guard(plugin, reason)
            }
        };
        let reason = if changed.is_empty() { reason } else { reason.after_path_changes(changed) };
        let offer = OfferedAnswers::for_call(&self.approval.rules.lock(), &facts, reason.is_each);
        let end = match equal.answer_to(&facts) {
            Some(answer) => PromptOutcome::Answered(answer),
            None => self.ask_user(preview, (&facts, &place), &reason, &offer).await,
        };
        let runs = match &end {
            PromptOutcome::Answered(answer) => answer.decision.can_run(),
            PromptOutcome::Decided(decision) => decision.outcome == RuleOutcome::Allow,
            PromptOutcome::NotOffered
            | PromptOutcome::NoAnswer(_)
            | PromptOutcome::UnattendedPlan(_)
            | PromptOutcome::Late { .. }
            | PromptOutcome::Refused(_) => false,
        };
        if runs {
            let changed = self.changed_paths(&facts).await;
            if !changed.is_empty() {
                return CheckOutcome::Changed(changed);
            }
        }
        self.handle_prompt_outcome(end, (&facts, &reason), &offer, equal).await
    }

    /// Turns the end of a prompt into a step.
    async fn handle_prompt_outcome(
        &self,
        end: PromptOutcome,
        (facts, reason): (&PolicyCall<'_>, &PromptReason),
        offer: &OfferedAnswers,
        equal: &mut EqualCallAnswers,
    ) -> CheckOutcome {
        let remembering = AnswerRecorder { approval: self.approval, context: self.context };
        let verdict = match end {
            PromptOutcome::Answered(answer) if answer.decision == PermissionDecision::Edit => {
                return CheckOutcome::Step(AttemptOutcome::Edited(
                    answer.arguments.unwrap_or_default(),
                ));
            }
            PromptOutcome::Answered(answer) => {
                equal.record_answer(facts, &answer);
                let runs = answer.decision.can_run();
                let verdict = remembering.apply_answer(answer, facts, offer);
                let limits = match runs {
                    true => self.approval.file_limits(facts, None).await,
                    false => FileLimits::default(),
                };
                CallVerdict { limits, ..verdict }
            }
            PromptOutcome::NotOffered => {
                CallVerdict::denied_not_offered(facts, self.approval.asker.channel())
            }
            PromptOutcome::Decided(decision) if decision.outcome == RuleOutcome::Allow => {
                self.allowed_verdict(facts, &decision).await
            }
            PromptOutcome::Decided(decision) => CallVerdict::denied_by_rule(facts, &decision),
            PromptOutcome::Late { patience_ms } => {
                CallVerdict::denied_after_timeout(facts, patience_ms)
            }
            PromptOutcome::NoAnswer(NoAnswer { reason: why }) => {
                CallVerdict::denied_without_user(facts, reason, &why)
            }
            PromptOutcome::UnattendedPlan(why) => {
                let limits = self.approval.file_limits(facts, None).await;
                CallVerdict { limits, ..CallVerdict::plan_without_user(&why) }
            }
            PromptOutcome::Refused(error) => CallVerdict::refused_by_preview(error),
        };
        CheckOutcome::from_verdict(verdict)
    }

    async fn allowed_verdict(&self, facts: &PolicyCall<'_>, decision: &Decision) -> CallVerdict {
        let limits = self.approval.file_limits(facts, Some(&decision.rule)).await;
        CallVerdict { limits, ..CallVerdict::allowed_by_rule(decision) }
    }

    /// Returns the paths of the call whose targets have changed. For a command line, changes of the
    /// files themselves do not count, because programs that run at the same time write files.
    async fn changed_paths(&self, facts: &PolicyCall<'_>) -> Vec<PathBuf> {
        let Some(before) = facts.resolved else { return Vec::new() };
        let Some(now) = self.approval.resolve_call_paths(facts).await else { return Vec::new() };
        match facts.command_line() {
            Some(_) => before.changed_targets(&now),
            None => before.changed_files(&now),
        }
    }

    async fn preview_call(&self, facts: &PolicyCall<'_>) -> Option<Preview> {
        if !self.candidate.spec.previews {
            return None;
        }
        let limits = self.approval.file_limits(facts, None).await;
        self.context.preview_call(self.call, limits).await
    }

    /// Shows a prompt and waits for its answer.
    async fn ask_user(
        &self,
        preview: Option<Preview>,
        (facts, place): (&PolicyCall<'_>, &CallEnvironment),
        reason: &PromptReason,
        offer: &OfferedAnswers,
    ) -> PromptOutcome {
        let SessionApproval { asker, rules, .. } = self.approval;
        if let Some(why) = asker.unavailable_reason() {
            return match facts.is_plan_start() && reason.is_silence {
                true => PromptOutcome::UnattendedPlan(why),
                false => PromptOutcome::NoAnswer(NoAnswer { reason: why }),
            };
        }
        let preview = match preview {
            Some(made) => Some(made),
            None => self.preview_call(facts).await,
        };
        if let Some(error) = preview.as_ref().and_then(|preview| preview.refusal.clone()) {
            return PromptOutcome::Refused(error);
        }
        let changes = rules.subscribe_changes();
        // The rules may have changed while the plugin made the preview.
        if let Some(decision) = self.updated_decision(facts, reason) {
            return PromptOutcome::Decided(decision);
        }
        let prompt = permission_prompt(PromptParts {
            attempt: self,
            facts,
            environment: place.environment.clone(),
            reason,
            offer,
            preview,
            patience_ms: self.approval.patience_ms.or_else(|| asker.answer_timeout_ms()),
        });
        self.context.emit(Event::PermissionAsked(Box::new(prompt.clone())));
        let _held = self.context.pause_deadlines();
        self.wait_for_answer(&prompt, facts, reason, changes).await
    }

    /// Waits for the answer, or for a change of the rules that makes it unnecessary.
    async fn wait_for_answer(
        &self,
        prompt: &PermissionPrompt,
        facts: &PolicyCall<'_>,
        reason: &PromptReason,
        mut changes: watch::Receiver<u64>,
    ) -> PromptOutcome {
        let patience_ms = prompt.patience_ms;
        let late = async {
            match patience_ms {
                Some(ms) => self.context.sleep(ms).await,
                None => std::future::pending().await,
            }
        };
        let answer = self.approval.asker.ask_permission(self.approval.session, prompt);
        tokio::pin!(answer, late);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return match answer {
                    Ok(answer) if prompt.is_allowed(&answer) => PromptOutcome::Answered(answer),
                    Ok(_) => PromptOutcome::NotOffered,
                    Err(no_answer) => PromptOutcome::NoAnswer(no_answer),
                },
                // An answer to another prompt may also answer this one, so the user is not asked
                // twice. This cannot fail, because the sender still exists.
                _ = changes.changed() => {
                    if let Some(decision) = self.updated_decision(facts, reason) {
                        return PromptOutcome::Decided(decision);
                    }
                }
                () = &mut late => {
                    return PromptOutcome::Late { patience_ms: patience_ms.unwrap_or_default() };
                }
            }
        }
    }

    /// Returns the decision of the rules if they no longer ask.
    fn updated_decision(&self, facts: &PolicyCall<'_>, reason: &PromptReason) -> Option<Decision> {
        let decision = self.rules_decision(facts);
        let is_decided = match decision.outcome {
            RuleOutcome::Ask => false,
            RuleOutcome::Allow => !reason.is_each,
            RuleOutcome::Deny => true,
        };
        is_decided.then_some(decision)
    }

    fn rules_decision(&self, facts: &PolicyCall<'_>) -> Decision {
        self.approval.gate.decide(&self.approval.rules.lock(), facts)
    }

    fn policy_call<'b>(&'b self, place: &'b CallEnvironment) -> PolicyCall<'b> {
        let CandidateCall { spec, schema, plugin, source, .. } = self.candidate;
        PolicyCall {
            source: *source,
            schema,
            definition: ToolDefinition::from_spec(spec, *source),
            annotations: spec.annotations,
            auto_approval: spec.auto_approval,
            caller: self.approval.caller,
            agent: self.approval.agent,
            directory: place.directory.as_deref(),
            home: place.home.as_deref(),
            workspace: place.workspace,
            root: place.root.as_deref(),
            own_folders: &place.own_folders,
            ..PolicyCall::new(&self.call.name, plugin, &self.call.arguments)
        }
    }
}

impl CheckOutcome {
    fn from_verdict(verdict: CallVerdict) -> Self {
        Self::Step(decided_outcome(verdict))
    }
}

fn decided_outcome(verdict: CallVerdict) -> AttemptOutcome {
    AttemptOutcome::Decided(Box::new(verdict))
}

/// Parses the plugin's statement about the program that reads the typed text.
fn typing_target(preview: Option<&Preview>) -> TypingTarget {
    match preview {
        Some(preview) if preview.typed_into == SHELL_PROMPT => TypingTarget::ShellPrompt,
        Some(_) | None => TypingTarget::Unknown,
    }
}
