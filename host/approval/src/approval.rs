//! The steps from a call to its verdict.

use jaato_policy::{Caller, CallingAgent, DenyRuleHandling, PluginSource};
use jaato_types::{Event, PluginName, Result, SessionId, ToolCall, ToolSpec};
use serde_json::Value;

use crate::attempt::{ApprovalAttempt, AttemptOutcome};
use crate::{
    CallContext, CallGate, CallVerdict, ChangedCall, EqualCallAnswers, GuardOutcome,
    PermissionAsker, SharedRules,
};

/// How often the user may change one call's arguments.
const EDITS_MAX: usize = 8;

/// The author of changed arguments, if it was the user. No plugin can have this name.
const USER: &str = "the user";

/// A suffix for rule names while deny rules in files are disabled.
const DENY_IGNORED: &str = "(option.ignore_deny_rules)";

/// Decides about the calls of one session.
pub struct SessionApproval<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// Rules and remembered answers.
    pub rules: &'a SharedRules,
    /// Applies the rules.
    pub gate: &'a dyn CallGate,
    /// Shows prompts to the user.
    pub asker: &'a dyn PermissionAsker,
    /// How long to wait for an answer. `None` leaves that to the asker.
    pub patience_ms: Option<u64>,
    /// Whether a model or the user makes the calls.
    pub caller: Caller,
    /// The plugin that makes the calls, if one does.
    pub called_by: Option<&'a PluginName>,
    /// The agent of the session.
    pub agent: CallingAgent<'a>,
}

/// A call to decide about. Its arguments match the tool's schema.
#[derive(Clone, Copy)]
pub struct CandidateCall<'a> {
    /// The call as it was made.
    pub call: &'a ToolCall,
    /// The tool.
    pub spec: &'a ToolSpec,
    /// The schema of its arguments, with the declarations of what they touch.
    pub schema: &'a Value,
    /// The plugin that offers the tool.
    pub plugin: &'a PluginName,
    /// The source of that plugin.
    pub source: PluginSource,
    /// How many calls of the model's answer are equal to this one, including itself.
    pub times: usize,
}

impl SessionApproval<'_> {
    /// Decides about a call: asks the guards, applies the rules, and prompts the user if they must
    /// decide. If the user changes the arguments, all of this is repeated with the new ones.
    ///
    /// Dropping the future withdraws the call. No event follows then.
    pub async fn decide_call(
        &self,
        candidate: &CandidateCall<'_>,
        context: &dyn CallContext,
        equal: &mut EqualCallAnswers,
    ) -> CallVerdict {
        let mut changed: Option<ChangedCall> = None;
        let mut was_edited = false;
        for _ in 0..=EDITS_MAX {
            let call = current_call(candidate, changed.as_ref());
            let GuardOutcome { changed: by_guards, asks, denied } = context.ask_guards(call).await;
            if let Some(by_guards) = by_guards {
                ChangedCall::add_change(&mut changed, by_guards);
            }
            if let Some((plugin, error)) = denied {
                let verdict = CallVerdict::denied_by_guard(&plugin, error);
                return self.emit_decision(candidate, verdict, changed, context);
            }
            // A changed call differs from the equal calls in the model's answer.
            let times = if changed.is_some() { 1 } else { candidate.times.max(1) };
            let call = current_call(candidate, changed.as_ref());
            let attempt =
                ApprovalAttempt { approval: self, candidate, context, call, times, was_edited };
            match attempt.run(asks, equal).await {
                AttemptOutcome::Decided(verdict) => {
                    return self.emit_decision(candidate, *verdict, changed, context);
                }
                AttemptOutcome::Edited(arguments) => {
                    was_edited = true;
                    if let Err(error) =
                        replace_arguments(candidate.call, arguments, &mut changed, context)
                    {
                        let text = format!("the arguments are invalid: {}", error.message);
                        emit_notice(context, text);
                    }
                }
            }
        }
        let verdict = CallVerdict::denied_after_edits(&candidate.call.name, EDITS_MAX);
        self.emit_decision(candidate, verdict, changed, context)
    }

    /// Emits the decision as an event.
    fn emit_decision(
        &self,
        candidate: &CandidateCall<'_>,
        verdict: CallVerdict,
        changed: Option<ChangedCall>,
        context: &dyn CallContext,
    ) -> CallVerdict {
        let call = current_call(candidate, changed.as_ref());
        context.emit(Event::PermissionDecided {
            call_id: call.id.clone(),
            name: call.name.clone(),
            allowed: verdict.refusal.is_none(),
            rule: self.recorded_rule(verdict.rule),
            place: verdict.place.clone(),
            comment: verdict.comment.clone(),
            answered_by: verdict.answered_by.clone(),
            scope: verdict.scope.to_owned(),
            remembered: verdict.remembered.clone(),
            pattern: verdict.pattern.to_owned(),
            agent_type: self.agent.agent_type.to_owned(),
            agent_name: self.agent.agent_name.to_owned(),
        });
        CallVerdict { changed, ..verdict }
    }

    /// Returns a rule's name for events and the ledger, with a suffix while deny rules in files are
    /// disabled.
    fn recorded_rule(&self, rule: &str) -> String {
        match self.rules.lock().deny_rules {
            DenyRuleHandling::Hold => rule.to_owned(),
            DenyRuleHandling::Ignored => format!("{rule} {DENY_IGNORED}"),
        }
    }
}

/// Emits a notice of the host.
pub(crate) fn emit_notice(context: &dyn CallContext, text: impl Into<String>) {
    context.emit(Event::Notice { source: "host".to_owned(), text: text.into() });
}

fn current_call<'a>(
    candidate: &CandidateCall<'a>,
    changed: Option<&'a ChangedCall>,
) -> &'a ToolCall {
    changed.map_or(candidate.call, |changed| &changed.call)
}

/// Replaces a call's arguments with the user's.
fn replace_arguments(
    call: &ToolCall,
    arguments: Value,
    changed: &mut Option<ChangedCall>,
    context: &dyn CallContext,
) -> Result<()> {
    context.check_arguments(&arguments)?;
    context.emit(Event::ToolCallChanged {
        call_id: call.id.clone(),
        name: call.name.clone(),
        source: USER.to_owned(),
        arguments: arguments.clone(),
    });
    let call = ToolCall { arguments, ..call.clone() };
    ChangedCall::add_change(changed, ChangedCall { call, by: vec![USER.to_owned()] });
    Ok(())
}
