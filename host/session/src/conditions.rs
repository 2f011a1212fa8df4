//! Conditions of tools: which are offered with the next request, and which run by themselves before
//! it.
//!
//! Looked at right before a request and nowhere else, and only of tools whose spec declares one:
//! what requests begin with changes only there. Most conditions follow from the session's objects;
//! a plugin is asked only where the spec says so, and one that fails or is slow holds nothing up:
//! its condition does not hold.
//!
//! A tool that runs by itself passes the same gate as a call of the model, and events tell of it in
//! the same way. It is no act of the model, so the history has no call for it: the model is told in
//! data, as of a task.

use std::collections::{HashMap, HashSet};

use jaato_types::{
    Condition, ConditionAnswer, ConditionRequest, Deciding, Error, ErrorKind, Offer, Part, Result,
    ToolCall, ToolName,
};
use serde_json::{Value, json};

use crate::calls::{CallsDone, Initiative};
use crate::{CallScope, Cancel, HistoryError, Hold, OutputSink, Session};

/// Most calls that tools make by themselves within one turn: two that wait for each other's objects
/// would go on for ever.
pub const RUNS_BY_THEMSELVES_MAX: u32 = 8;

/// Longest wait for a plugin that is asked whether a condition holds. Its worker may have to be
/// started.
pub const CONDITION_MS_MAX: u64 = 5_000;

/// What a session remembers of conditions.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// The revision of the objects that a tool left behind when it ran by itself last.
    ran: HashMap<ToolName, u64>,
    /// Runs of this turn.
    runs: u32,
    /// Failures of plugins that were told; each is told once.
    told: HashSet<(ToolName, Deciding)>,
}

impl Conditions {
    /// Counts the runs of another turn.
    pub(crate) fn begin_turn(&mut self) {
        self.runs = 0;
    }
}

/// What came of tools that ran by themselves.
#[derive(Default)]
struct Ran {
    /// What the model is told.
    parts: Vec<Part>,
    /// The first refusal for want of somebody to ask.
    without_user: Option<Error>,
}

impl Session {
    /// Lets tools run by themselves whose condition holds, then offers those whose condition holds.
    /// Gives the first refusal for want of somebody to ask.
    pub(crate) async fn before_request(
        &mut self,
        cancel: &Cancel,
    ) -> Result<Option<Error>, HistoryError> {
        let mode = self.shared.rules.lock().mode;
        self.prefix.system = self.system.text_in(mode);
        // Of plugins that were opened after the prompt was taken: what they said belongs to it.
        let late = self.take_late_instructions();
        if !late.is_empty() {
            self.history.add_news(late)?;
        }
        let Ran { mut parts, without_user } = self.run_by_themselves(cancel).await;
        if !parts.is_empty() {
            self.offer_view();
            parts.extend(self.shared.objects.news(self.shared.limits.objects_tokens_max));
            self.history.add_news(parts)?;
        }
        self.settle_offers(cancel).await;
        if let Some(change) = self.tools_news() {
            self.history.add_news(vec![change])?;
        }
        Ok(without_user)
    }

    /// Offers tools whose condition follows from the objects, the environment or the model, where
    /// it holds. Nothing is told: the session has not begun. What the environment or the model
    /// decides stands where it would without a condition: in most sessions that never changes.
    pub(crate) fn offer_declared(&mut self) {
        let is_fixed = |offer: &Offer| {
            let fixed = &offer.condition;
            matches!(fixed, Condition::EnvironmentHas { .. } | Condition::ModelSees { .. })
        };
        let (first, rest): (Vec<_>, Vec<_>) =
            self.shared.tools().offers().into_iter().partition(|(_, offer)| is_fixed(offer));
        self.offer_where_it_holds(first);
        self.shared.change_tools(|toolbox| toolbox.active.sort_unstable());
        self.offer_where_it_holds(rest);
        self.send_tools();
    }

    fn offer_where_it_holds(&mut self, offers: Vec<(ToolName, Offer)>) {
        for (name, offer) in offers {
            if self.declared(&offer.condition) == Some(true) {
                self.shared.change_tools(|toolbox| toolbox.offer(&name));
            }
        }
    }

    async fn run_by_themselves(&mut self, cancel: &Cancel) -> Ran {
        let mut ran = Ran::default();
        for (name, condition) in self.shared.tools().self_running() {
            let revision = self.revision();
            if cancel.is_cancelled() || self.conditions.ran.get(&name) == Some(&revision) {
                continue;
            }
            let answer = self.holds(&name, &condition, Deciding::Run, cancel).await;
            if !answer.holds || cancel.is_cancelled() {
                continue;
            }
            if self.conditions.runs >= RUNS_BY_THEMSELVES_MAX {
                self.shared.emitter.notice(format!(
                    "the tool `{name}` does not run by itself: tools did so \
                     {RUNS_BY_THEMSELVES_MAX} times in this turn"
                ));
                break;
            }
            self.conditions.runs += 1;
            // Remembered before as well: a turn that is dropped meanwhile has run it.
            self.conditions.ran.insert(name.clone(), revision);
            self.shared.emitter.notice(format!("the tool `{name}` runs by itself: {condition}"));
            let arguments = answer.arguments.unwrap_or_else(|| json!({}));
            let call = ToolCall::new(self.shared.ports.ids.call(), name.clone(), arguments);
            let runner = self.shared.runner(Initiative::Tool, cancel);
            let CallsDone { results, without_user, .. } =
                runner.run(std::slice::from_ref(&call)).await;
            // What it changed itself is no reason to run again.
            self.conditions.ran.insert(name, self.revision());
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

    async fn settle_offers(&mut self, cancel: &Cancel) {
        let mut has_changed = false;
        // What is there from the first request on is no change that a person would look for.
        let is_first_request = self.history.entries().len() <= 1;
        for (name, offer) in self.shared.tools().offers() {
            if matches!(offer.condition, Condition::ModelSees { .. })
                && self.shared.tools().is_wanted(&name)
            {
                self.wait_for_sight(cancel).await;
            }
            let answer = self.holds(&name, &offer.condition, Deciding::Available, cancel).await;
            if cancel.is_cancelled() {
                // Nothing is sent any more, and the answer may be one of the cancellation.
                break;
            }
            let (changes, word) = if answer.holds {
                (self.shared.change_tools(|toolbox| toolbox.offer(&name)), "available")
            } else {
                let reason = answer.reason.unwrap_or(offer.reason);
                let changes = self.shared.change_tools(|toolbox| toolbox.withhold(&name, reason));
                (changes, "not available")
            };
            if changes {
                has_changed = true;
                if !is_first_request {
                    let text = format!("the tool `{name}` is {word} from here on");
                    self.shared.emitter.notice(text);
                }
            }
        }
        if has_changed {
            self.send_tools();
        }
    }

    async fn holds(
        &mut self,
        tool: &ToolName,
        condition: &Condition,
        deciding: Deciding,
        cancel: &Cancel,
    ) -> ConditionAnswer {
        if let Some(holds) = self.declared(condition) {
            return ConditionAnswer { holds, ..ConditionAnswer::default() };
        }
        let request = ConditionRequest::new(tool.clone(), deciding);
        match self.ask_plugin(request, cancel).await {
            Ok(answer) => answer,
            Err(error) => {
                if error.kind != ErrorKind::Cancelled
                    && self.conditions.told.insert((tool.clone(), deciding))
                {
                    self.shared.emitter.notice(format!(
                        "a condition of the tool `{tool}` counts as one that does not hold: {error}"
                    ));
                }
                ConditionAnswer::no()
            }
        }
    }

    /// Tells whether a condition holds that follows from the objects, the environment or the model;
    /// nothing of one that a plugin answers.
    fn declared(&self, condition: &Condition) -> Option<bool> {
        let is_empty = |tool: Option<&ToolName>| {
            self.shared.objects.with(|objects| objects.is_empty(tool.map(ToolName::as_str)))
        };
        match condition {
            Condition::ObjectsPresent => Some(!is_empty(None)),
            Condition::NoObjects => Some(is_empty(None)),
            Condition::ObjectsOf { tool, .. } => Some(!is_empty(Some(tool))),
            Condition::NoObjectsOf { tool, .. } => Some(is_empty(Some(tool))),
            Condition::EnvironmentHas { part, .. } => {
                Some(self.shared.ports.tools.environment_has(*part))
            }
            Condition::ModelSees { what, .. } => {
                Some(self.takes.media_types.iter().any(|media_type| what.has(media_type)))
            }
            Condition::Asked => None,
            Condition::Unknown => Some(false),
        }
    }

    async fn ask_plugin(
        &self,
        request: ConditionRequest,
        cancel: &Cancel,
    ) -> Result<ConditionAnswer> {
        let call = self.shared.ports.ids.call();
        let output =
            OutputSink::new(self.shared.emitter.clone(), call.clone(), request.tool.as_str());
        // It is no call, and what it says meanwhile has no place.
        output.close();
        let stop = cancel.child();
        let scope = CallScope {
            session: self.shared.id.clone(),
            call,
            cancel: stop.clone(),
            output,
            streamed: None,
            facts: self.shared.facts.clone(),
            objects: self.shared.objects.clone(),
            depth: 0,
            hold: Hold::default(),
            files: None,
        };
        let answer = tokio::select! {
            biased;
            answer = self.shared.ports.tools.condition(request, scope) => answer,
            () = cancel.cancelled() => Err(Error::cancelled()),
            () = self.shared.ports.clock.sleep(CONDITION_MS_MAX) => {
                let text = format!("its plugin did not answer within {CONDITION_MS_MAX} ms");
                Err(Error::new(ErrorKind::Timeout, text))
            }
        };
        stop.cancel();
        let answer = answer?;
        if answer.arguments.as_ref().is_some_and(|arguments| !arguments.is_object()) {
            let text = "its plugin answered with arguments that are no JSON object";
            return Err(Error::new(ErrorKind::PluginMisbehaved, text));
        }
        Ok(answer)
    }

    fn revision(&self) -> u64 {
        self.shared.objects.with(|objects| objects.revision())
    }
}

/// Tells the model of a tool that is not offered: two keys beside what it is told of others.
pub(crate) fn tell_withheld(told: &mut Value, reason: Option<&str>) {
    if let Some(reason) = reason {
        told["available"] = false.into();
        told["available_when"] = reason.into();
    }
}
