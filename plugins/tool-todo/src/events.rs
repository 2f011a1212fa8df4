//! The events of plans, for models that request them or subscribe to them.

use std::collections::VecDeque;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;

use crate::plan::{TodoPlan, TodoStep, invalid_arguments};

/// The name of the plan's own agent. An empty name has the same meaning.
pub const THIS_AGENT: &str = "main";

/// The maximum number of stored events. Older ones are removed.
const EVENTS_MAX: usize = 1000;
/// The maximum number of subscribed events in one result.
const TOLD_MAX: usize = 20;
/// The maximum number of subscriptions.
const SUBSCRIPTIONS_MAX: usize = 50;

/// The types of events, by their names for the model.
pub const EVENT_TYPES: [&str; 12] = [
    "plan_created",
    "plan_started",
    "plan_completed",
    "plan_failed",
    "plan_cancelled",
    "step_added",
    "step_started",
    "step_completed",
    "step_failed",
    "step_skipped",
    "step_blocked",
    "step_unblocked",
];

/// The events and subscriptions of a session.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct TodoEvents {
    happened: VecDeque<Value>,
    count: u64,
    subscriptions: Vec<EventSubscription>,
    subscribed: u64,
    /// Subscribed events that no result contains yet.
    untold: VecDeque<Value>,
}

/// A subscription of the model.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct EventSubscription {
    subscription_id: String,
    filter: EventFilter,
}

/// A filter for events.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct EventFilter {
    /// The types of events. Empty means all types.
    pub event_types: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
}

impl EventFilter {
    /// Checks that all types are known.
    ///
    /// # Errors
    /// An error if a type is unknown.
    pub fn check_event_types(&self) -> Result<()> {
        match self.event_types.iter().find(|kind| !EVENT_TYPES.contains(&kind.as_str())) {
            None => Ok(()),
            Some(kind) => {
                let hint = format!("use one of: {}", EVENT_TYPES.join(", "));
                Err(invalid_arguments(&format!("Invalid event type: {kind}")).with_hint(hint))
            }
        }
    }

    fn is_event_match(&self, event: &Value) -> bool {
        let is = |wanted: &Option<String>, key: &str| {
            wanted.as_ref().is_none_or(|wanted| event[key] == wanted.as_str())
        };
        let kind = event["event_type"].as_str().unwrap_or_default();
        (self.event_types.is_empty() || self.event_types.iter().any(|wanted| wanted == kind))
            && is(&self.plan_id, "source_plan_id")
            && is(&self.step_id, "source_step_id")
    }
}

impl TodoEvents {
    /// Records an event of a plan or of one of its steps.
    pub fn record_event(&mut self, kind: &str, plan: &TodoPlan, step: Option<&TodoStep>) {
        self.count += 1;
        let mut event = json!({
            "event_id": format!("event_{}", self.count),
            "event_type": kind,
            "timestamp": jiff::Timestamp::now().to_string(),
            "source_agent": THIS_AGENT,
            "source_plan_id": plan.id,
            "source_plan_title": plan.title,
        });
        if let Some(step) = step {
            let place = plan.steps.iter().position(|known| known.id == step.id);
            event["source_step_id"] = json!(step.id);
            event["source_step_description"] = json!(step.description);
            event["source_step_sequence"] = json!(place.map(|place| place + 1));
            let result = step.error.as_ref().or(step.result.as_ref());
            event["payload"] = json!({ "result": result, "output": step.output });
        }
        if self.subscriptions.iter().any(|wanted| wanted.filter.is_event_match(&event)) {
            self.untold.push_back(event.clone());
        }
        self.happened.push_back(event);
        for events in [&mut self.happened, &mut self.untold] {
            while events.len() > EVENTS_MAX {
                events.pop_front();
            }
        }
    }

    /// Subscribes the model to events, which the results of later calls then contain.
    ///
    /// # Errors
    /// An error if a type is unknown, or there are too many subscriptions.
    pub fn subscribe(&mut self, filter: EventFilter) -> Result<Value> {
        filter.check_event_types()?;
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let error = format!("there are already {SUBSCRIPTIONS_MAX} subscriptions");
            return Err(invalid_arguments(&error).with_hint("`unsubscribe` ends one"));
        }
        self.subscribed += 1;
        let subscription_id = format!("subscription_{}", self.subscribed);
        let count = filter.event_types.len();
        let message =
            format!("Subscribed to {count} event type(s). Events will be delivered inline.");
        let told = json!({
            "subscription_id": subscription_id,
            "filter": filter,
            "message": message,
        });
        self.subscriptions.push(EventSubscription { subscription_id, filter });
        Ok(told)
    }

    /// Lists the subscriptions.
    pub fn list_subscriptions(&self) -> Value {
        json!({ "subscriptions": self.subscriptions, "count": self.subscriptions.len() })
    }

    /// Ends a subscription. Returns false if it does not exist.
    pub fn unsubscribe(&mut self, id: &str) -> bool {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|known| known.subscription_id != id);
        self.subscriptions.len() < before
    }

    /// Takes the next subscribed events.
    pub fn take_new_events(&mut self) -> Vec<Value> {
        let count = self.untold.len().min(TOLD_MAX);
        self.untold.drain(..count).collect()
    }

    /// Returns the newest events, oldest first.
    pub fn find_events(
        &self,
        filter: &EventFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<Value> {
        let start = after.and_then(|after| {
            self.happened.iter().position(|event| event["event_id"] == after).map(|it| it + 1)
        });
        let found =
            self.happened.iter().skip(start.unwrap_or(0)).filter(|it| filter.is_event_match(it));
        let found: Vec<&Value> = found.collect();
        let skipped = if limit == 0 { 0 } else { found.len().saturating_sub(limit) };
        found[skipped..].iter().map(|&event| event.clone()).collect()
    }
}
