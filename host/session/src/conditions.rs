//! Conditions of tools: which tools are offered with the next request, and which run automatically
//! before it.
//!
//! Conditions are checked right before a request and nowhere else, and only for tools whose spec
//! declares one, because only there may the beginning of requests change. Most conditions follow
//! from the session's objects. The session asks a plugin only if the spec says so. A plugin that
//! fails or is slow does not delay the request: its condition does not hold.
//!
//! A tool that runs automatically goes through the same permission check as a model's call, with
//! the same events. It is not the model's act, so the history has no call for it, and the model
//! gets the result as data, like a task's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jaato_types::{
    Condition, ConditionAnswer, ConditionDecision, ConditionRequest, Error, ErrorKind, Offer, Part,
    Result, ToolCall, ToolName, ToolSpec,
};
use serde_json::{Value, json};

use crate::calls::{CallInitiator, CallsOutcome};
use crate::{AnswerDeadline, CallScope, Cancel, HistoryError, OutputSink, Session};

/// The maximum number of calls that tools make by themselves within one turn. Two tools that wait
/// for each other's objects would otherwise run forever.
pub const RUNS_BY_THEMSELVES_MAX: u32 = 8;

/// The longest wait for a plugin's answer about a condition. Its worker may have to start first.
pub const CONDITION_MS_MAX: u64 = 5_000;

/// The session's state of conditions.
#[derive(Debug, Default)]
pub(crate) struct ConditionsState {
    /// The revision of the objects after each tool last ran on its own.
    ran: HashMap<ToolName, u64>,
    /// How many tools ran by themselves in this turn.
    runs: u32,
    /// Plugin failures that were already reported. Each is reported once.
    told: HashSet<(ToolName, ConditionDecision)>,
}

impl ConditionsState {
    /// Resets the count for a new turn.
    pub(crate) fn begin_turn(&mut self) {
        self.runs = 0;
    }
}

/// The outcome of tools that ran by themselves.
#[derive(Default)]
struct AutomaticToolsOutcome {
    /// The parts for the model.
    parts: Vec<Part>,
    /// The first refusal because no user could be asked.
    without_user: Option<Error>,
}

impl Session {
    /// Runs the tools that run automatically and whose condition holds, then offers the tools whose
    /// condition holds. Returns the first refusal because no user could be asked.
    pub(crate) async fn update_conditional_tools(
        &mut self,
        cancel: &Cancel,
    ) -> Result<Option<Error>, HistoryError> {
        let mode = self.shared.rules.lock().mode;
        self.prefix.system = self.system.text_for_mode(mode);
        // The instructions of plugins that were opened after the prompt was taken belong to it,
        // too.
        let late = self.take_late_instructions();
        if !late.is_empty() {
            self.history.add_news(late)?;
        }
        let AutomaticToolsOutcome { mut parts, without_user } =
            self.run_automatic_tools(cancel).await;
        if !parts.is_empty() {
            self.offer_view_tool();
            parts.extend(self.shared.objects.unseen_objects(self.shared.limits.objects_tokens_max));
            self.history.add_news(parts)?;
        }
        self.update_offers(cancel).await;
        if let Some(change) = self.tool_changes_part() {
            self.history.add_news(vec![change])?;
        }
        Ok(without_user)
    }

    /// Offers tools whose condition on the objects, the environment or the model holds. Nothing is
    /// reported, because the session has not begun. Tools that depend on the environment or the
    /// model are listed where they would be without a condition, because in most sessions that
    /// never changes.
    pub(crate) fn offer_declared_tools(&mut self) {
        let is_fixed = |offer: &Offer| {
            let fixed = &offer.condition;
            matches!(fixed, Condition::EnvironmentHas { .. } | Condition::ModelSees { .. })
        };
        let (first, rest): (Vec<_>, Vec<_>) = self
            .shared
            .current_tools()
            .conditional_tools()
            .into_iter()
            .partition(|(_, offer)| is_fixed(offer));
        self.apply_declared_offers(first);
        self.shared.change_tools(|toolbox| toolbox.active.sort_unstable());
        self.apply_declared_offers(rest);
        self.add_active_tools();
    }

    /// Offers and withholds the tools that depend on collected messages. Called at a cut, so that
    /// the beginning of requests changes only once.
    pub(crate) fn update_collection_tools(&mut self) {
        let holds = self.history.has_collected();
        for (name, offer) in self.shared.current_tools().conditional_tools() {
            if offer.condition == Condition::MessagesCollected {
                self.shared.change_tools(|toolbox| match holds {
                    true => toolbox.offer_tool(&name),
                    false => toolbox.withhold_tool(&name, offer.reason),
                });
            }
        }
    }

    /// Returns a tool that reads collected messages, if the model is offered one.
    pub(crate) fn collected_messages_tool(&self) -> Option<ToolName> {
        let tools = self.shared.current_tools();
        let reads = |spec: &&ToolSpec| {
            let offer = spec.available_if.as_ref();
            offer.is_some_and(|offer| offer.condition == Condition::MessagesCollected)
        };
        tools.active_tools().find(reads).map(|spec| spec.name.clone())
    }

    fn apply_declared_offers(&mut self, offers: Vec<(ToolName, Offer)>) {
        for (name, offer) in offers {
            if self.evaluate_declared_condition(&offer.condition) == Some(true) {
                self.shared.change_tools(|toolbox| toolbox.offer_tool(&name));
            }
        }
    }

    async fn run_automatic_tools(&mut self, cancel: &Cancel) -> AutomaticToolsOutcome {
        let mut ran = AutomaticToolsOutcome::default();
        for (name, condition) in self.shared.current_tools().automatic_tools() {
            let revision = self.environment_revision();
            if cancel.is_cancelled() || self.conditions.ran.get(&name) == Some(&revision) {
                continue;
            }
            let answer =
                self.evaluate_condition(&name, &condition, ConditionDecision::Run, cancel).await;
            if !answer.holds || cancel.is_cancelled() {
                continue;
            }
            if self.conditions.runs >= RUNS_BY_THEMSELVES_MAX {
                self.shared.emitter.emit_notice(format!(
                    "the tool `{name}` does not run by itself: tools did so \
                     {RUNS_BY_THEMSELVES_MAX} times in this turn"
                ));
                break;
            }
            self.conditions.runs += 1;
            // Also recorded before the call, because a turn that is dropped during it has run the
            // tool.
            self.conditions.ran.insert(name.clone(), revision);
            self.shared
                .emitter
                .emit_notice(format!("the tool `{name}` runs automatically: {condition}"));
            let arguments = answer.arguments.unwrap_or_else(|| json!({}));
            let call =
                ToolCall::new(self.shared.ports.ids.create_call_id(), name.clone(), arguments);
            let runner = self.shared.call_runner(CallInitiator::Tool, cancel);
            let CallsOutcome { results, without_user, .. } =
                runner.run_calls(std::slice::from_ref(&call)).await;
            // Changes that the tool made itself do not make it run again.
            self.conditions.ran.insert(name, self.environment_revision());
            ran.without_user = ran.without_user.or(without_user);
            ran.parts.extend(results.into_iter().map(|result| {
                Part::json(json!({
                    "tool_ran_by_itself": call.name,
                    "because": condition.to_string(),
                    "arguments": call.arguments,
                    "result": result.content,
                }))
            }));
        }
        ran
    }

    async fn update_offers(&mut self, cancel: &Cancel) {
        let mut has_changed = false;
        // Tools that are offered from the first request on are not a change that a user would look
        // for.
        let is_first_request = self.history.entries().len() <= 1;
        for (name, offer) in self.shared.current_tools().conditional_tools() {
            // These tools join and leave with the cut that a collection makes.
            if offer.condition == Condition::MessagesCollected {
                continue;
            }
            if matches!(offer.condition, Condition::ModelSees { .. })
                && self.shared.current_tools().is_requested_tool(&name)
            {
                self.wait_for_accepted_media(cancel).await;
            }
            let answer = self
                .evaluate_condition(&name, &offer.condition, ConditionDecision::Available, cancel)
                .await;
            if cancel.is_cancelled() {
                // No request will be sent, and the answer may be a result of the cancellation.
                break;
            }
            let (changes, word) = if answer.holds {
                (self.shared.change_tools(|toolbox| toolbox.offer_tool(&name)), "available")
            } else {
                let reason = answer.reason.unwrap_or(offer.reason);
                let changes =
                    self.shared.change_tools(|toolbox| toolbox.withhold_tool(&name, reason));
                (changes, "unavailable")
            };
            if changes {
                has_changed = true;
                if !is_first_request {
                    let text = format!("the tool `{name}` is now {word}");
                    self.shared.emitter.emit_notice(text);
                }
            }
        }
        if has_changed {
            self.add_active_tools();
        }
    }

    async fn evaluate_condition(
        &mut self,
        tool: &ToolName,
        condition: &Condition,
        deciding: ConditionDecision,
        cancel: &Cancel,
    ) -> ConditionAnswer {
        if let Some(holds) = self.evaluate_declared_condition(condition) {
            return ConditionAnswer { holds, ..ConditionAnswer::default() };
        }
        let request = ConditionRequest::new(tool.clone(), deciding);
        match self.ask_plugin_condition(request, cancel).await {
            Ok(answer) => answer,
            Err(error) => {
                if error.kind != ErrorKind::Cancelled
                    && self.conditions.told.insert((tool.clone(), deciding))
                {
                    self.shared.emitter.emit_notice(format!(
                        "a condition of the tool `{tool}` counts as false, because it cannot be \
                         checked: {error}"
                    ));
                }
                ConditionAnswer::no()
            }
        }
    }

    /// Returns whether a condition on the objects, the environment or the model holds. Returns
    /// `None` for a condition that a plugin answers.
    fn evaluate_declared_condition(&self, condition: &Condition) -> Option<bool> {
        let is_empty = |tool: Option<&ToolName>| {
            self.shared.objects.with_objects(|objects| objects.is_empty(tool.map(ToolName::as_str)))
        };
        match condition {
            Condition::ObjectsPresent => Some(!is_empty(None)),
            Condition::NoObjects => Some(is_empty(None)),
            Condition::ObjectsOf { tool, .. } => Some(!is_empty(Some(tool))),
            Condition::NoObjectsOf { tool, .. } => Some(is_empty(Some(tool))),
            Condition::EnvironmentHas { part, .. } => {
                Some(self.shared.ports.tools.has_environment_part(*part))
            }
            Condition::ModelSees { what, .. } => Some(
                self.takes.media_types.iter().any(|media_type| what.has_media_type(media_type)),
            ),
            Condition::MessagesCollected => Some(self.history.has_collected()),
            Condition::Asked => None,
            Condition::Unknown => Some(false),
        }
    }

    async fn ask_plugin_condition(
        &self,
        request: ConditionRequest,
        cancel: &Cancel,
    ) -> Result<ConditionAnswer> {
        let call = self.shared.ports.ids.create_call_id();
        let output =
            OutputSink::new(self.shared.emitter.clone(), call.clone(), request.tool.as_str());
        // This is not a call, so output of the plugin belongs nowhere.
        output.close();
        let scope = |stop, hold| CallScope {
            session: self.shared.id.clone(),
            call: call.clone(),
            cancel: stop,
            output: output.clone(),
            streamed: None,
            facts: self.shared.facts.clone(),
            objects: self.shared.objects.clone(),
            depth: 0,
            hold,
            files: None,
        };
        let ports = &self.shared.ports;
        let deadline = AnswerDeadline {
            clock: Arc::clone(&ports.clock),
            cancel,
            ms: CONDITION_MS_MAX,
            late: format!("its plugin did not answer within {CONDITION_MS_MAX} ms"),
        };
        let ask = |stop, hold| ports.tools.check_condition(request, scope(stop, hold));
        let answer = deadline.wait_for_answer(ask).await?;
        if answer.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
            let text = "its plugin answered with arguments that are not a JSON object";
            return Err(Error::new(ErrorKind::PluginMisbehaved, text));
        }
        Ok(answer)
    }

    fn environment_revision(&self) -> u64 {
        self.shared.objects.with_objects(|objects| objects.revision())
    }
}

/// Marks a tool that is not offered, with two keys next to the usual facts.
pub(crate) fn mark_withheld(told: &mut Value, reason: Option<&str>) {
    if let Some(reason) = reason {
        told["available"] = false.into();
        told["available_when"] = reason.into();
    }
}
