//! Turns the user's answer into a verdict, and remembers it for equal and later calls.

use std::mem;

use jaato_policy::{
    CallPattern, JsonDigest, PolicyCall, PolicyMode, ResolvedCallPaths, SessionRule,
};
use jaato_types::permission_prompt::{PermissionAnswer, PermissionDecision};
use jaato_types::{Event, PluginName, ToolName};

use crate::approval::emit_notice;
use crate::offer::OfferedAnswers;
use crate::verdict::RememberedScope;
use crate::{CallContext, CallVerdict, SessionApproval};

/// The user's answers to the calls of one model answer, so that equal calls are asked about once.
#[derive(Debug, Default)]
pub struct EqualCallAnswers {
    answered: Vec<AnsweredCall>,
}

#[derive(Debug)]
struct AnsweredCall {
    tool: ToolName,
    plugin: PluginName,
    arguments: JsonDigest,
    resolved: Option<ResolvedCallPaths>,
    answer: PermissionAnswer,
}

impl EqualCallAnswers {
    /// Returns the user's answer to an equal call.
    pub(crate) fn answer_to(&self, call: &PolicyCall<'_>) -> Option<PermissionAnswer> {
        let arguments = JsonDigest::from_json(call.arguments);
        let is_equal = |it: &&AnsweredCall| {
            (&it.tool, &it.plugin) == (call.tool, call.plugin)
                && it.arguments == arguments
                && has_same_targets(it.resolved.as_ref(), call.resolved)
        };
        self.answered.iter().find(is_equal).map(|it| it.answer.clone())
    }

    /// Remembers an answer for equal calls. The rules remember it for later ones.
    pub(crate) fn record_answer(&mut self, call: &PolicyCall<'_>, answer: &PermissionAnswer) {
        let decision = match answer.decision.can_run() {
            true => PermissionDecision::AllowOnce,
            false => PermissionDecision::Deny,
        };
        self.answered.push(AnsweredCall {
            tool: call.tool.clone(),
            plugin: call.plugin.clone(),
            arguments: JsonDigest::from_json(call.arguments),
            resolved: call.resolved.cloned(),
            answer: PermissionAnswer {
                comment: answer.comment.clone(),
                ..PermissionAnswer::once(decision)
            },
        });
    }
}

/// Returns true if the paths of two calls lead to the same places. The files may differ, because
/// the first call may have written them.
fn has_same_targets(one: Option<&ResolvedCallPaths>, other: Option<&ResolvedCallPaths>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.changed_targets(other).is_empty(),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Adds answers to the rules of a session.
pub(crate) struct AnswerRecorder<'a> {
    pub(crate) approval: &'a SessionApproval<'a>,
    pub(crate) context: &'a dyn CallContext,
}

impl AnswerRecorder<'_> {
    /// Turns the user's answer into the verdict, and remembers it for the calls that it covers.
    pub(crate) fn apply_answer(
        &self,
        answer: PermissionAnswer,
        facts: &PolicyCall<'_>,
        offer: &OfferedAnswers,
    ) -> CallVerdict {
        let channel = self.approval.asker.channel();
        if let Some(mode) = answer.mode.as_deref().and_then(PolicyMode::from_name) {
            let before =
                self.approval.rules.change_rules(|rules| mem::replace(&mut rules.mode, mode));
            if before != mode {
                self.context.emit(Event::ModeChanged { mode: mode.name().to_owned() });
            }
        }
        let remembered = self.remember_answer(&answer, facts, offer);
        match answer.decision.can_run() {
            true => CallVerdict::allowed_by_user(channel, remembered),
            false => CallVerdict::denied_by_user(facts, channel, answer.comment, remembered),
        }
    }

    /// Remembers an answer for later calls. Returns `None` if it holds only for this call.
    fn remember_answer(
        &self,
        answer: &PermissionAnswer,
        facts: &PolicyCall<'_>,
        offer: &OfferedAnswers,
    ) -> Option<RememberedScope> {
        if answer.decision.is_for_one_call() {
            return None;
        }
        let pattern = match (answer.pattern, answer.decision.can_run()) {
            (None, false) => CallPattern::Tool,
            (index, _) => offer.patterns.get(index.unwrap_or(0))?.clone(),
        };
        let (text, kind) = (pattern.describe_calls(facts.tool), pattern.name());
        let rule = SessionRule::new(facts, answer.decision, pattern);
        let decision = self.save_kept_answer(&rule);
        self.approval
            .rules
            .change_rules(|rules| rules.remember_answer(rule.with_decision(decision)));
        Some(RememberedScope { scope: decision.duration_name(), text, kind })
    }

    /// Saves an answer that the user wants to keep. Returns the decision with the time for which it
    /// then holds.
    fn save_kept_answer(&self, rule: &SessionRule) -> PermissionDecision {
        let decision = rule.decision();
        let in_session = match decision {
            PermissionDecision::AllowAlways => PermissionDecision::AllowInSession,
            PermissionDecision::DenyAlways => PermissionDecision::DenyInSession,
            shorter => return shorter,
        };
        match self.approval.rules.answer_store().map(|keeper| keeper.save_answer(rule)) {
            Some(Ok(written)) => {
                emit_notice(self.context, written);
                decision
            }
            Some(Err(error)) => {
                let text =
                    format!("cannot save the answer, so it applies only to this session: {error}");
                emit_notice(self.context, text);
                in_session
            }
            None => {
                let why = "this program saves no answers";
                let text =
                    format!("cannot save the answer, so it applies only to this session: {why}");
                emit_notice(self.context, text);
                in_session
            }
        }
    }
}
