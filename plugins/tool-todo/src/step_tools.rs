//! The tools for dependent steps and for events. They are discoverable tools.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use jaato_plugin_sdk::types::work_plan::PlanStepStatus as Status;

use crate::board::{DependentStep, Todo};
use crate::events::{EVENT_TYPES, EventFilter, THIS_AGENT};
use crate::plan::invalid_arguments;
use crate::{non_empty_text, plan_format};

/// The interval at which a call that waits for events checks them.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A step that another step waits for.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
struct StepDependency {
    step_id: String,
    #[serde(default)]
    agent_id: String,
    #[serde(default)]
    plan_id: String,
}

/// Make a step wait for others: an existing one (`step_id`) or a new one (`description`).
#[tool_fn(
    name = "addDependentStep",
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "Step id or number." },
            "description": { "type": "string", TOUCHES: { "text": "what is to be done" }, "description": "What to do, for a new step." },
            "depends_on": { "type": "array", "minItems": 1, "description": "Steps that come first.", "items": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "Step id or number." },
                    "agent_id": { "type": "string", TOUCHES: { "text": "the name of an agent" }, "default": THIS_AGENT, "description": "Default: this agent." },
                    "plan_id": { "type": "string", TOUCHES: { "text": "the name of a plan" }, "description": "Default: this session's plan." },
                },
                "required": ["step_id"],
            } },
            "provides": { "type": "string", TOUCHES: { "text": "the name of an output" }, "description": "A name for its output." },
        },
        "required": ["depends_on"],
    })
)]
async fn add_dependent_step(
    cx: &Cx<Todo>,
    #[serde(default)] step_id: String,
    #[serde(default)] description: String,
    depends_on: Vec<StepDependency>,
    #[serde(default)] provides: String,
) -> Result<Output> {
    let mut steps = Vec::with_capacity(depends_on.len());
    for dependency in depends_on {
        check_agent_is_this(&dependency.agent_id)?;
        if let Some(plan) = non_empty_text(dependency.plan_id) {
            cx.state().lock_board().find_plan(Some(&plan))?;
        }
        steps.push(dependency.step_id);
    }
    let step = match (non_empty_text(step_id), non_empty_text(description)) {
        (Some(id), _) => DependentStep::Known(id),
        (None, Some(description)) => DependentStep::Described(description),
        (None, None) => return Err(invalid_arguments("step_id or description is required")),
    };
    Todo::change_plan(cx, |board| board.add_dependent_step(step, &steps, non_empty_text(provides)))
}

/// Complete a step and pass its output to steps that wait for it.
#[tool_fn(
    name = "completeStepWithOutput",
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "Step id or number." },
            "output": { "type": "object", TOUCHES: { "text": "a report to later steps" }, "description": "The output." },
            "result": { "type": "string", TOUCHES: { "text": "a report" }, "description": "The result." },
        },
        "required": ["step_id", "output"],
    })
)]
async fn complete_step_with_output(
    cx: &Cx<Todo>,
    step_id: String,
    output: Map<String, Value>,
    #[serde(default)] result: String,
) -> Result<Output> {
    Todo::change_plan(cx, |board| {
        board.complete_step_with_output(&step_id, output, non_empty_text(result))
    })
}

/// List the steps that wait for others.
#[tool_fn(
    name = "getBlockedSteps",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({ "type": "object", "additionalProperties": false, "properties": { "plan_id": { "type": "string", TOUCHES: { "text": "the name of a plan" }, "description": "Default: this session's plan." } } })
)]
async fn get_blocked_steps(cx: &Cx<Todo>, #[serde(default)] plan_id: String) -> Result<Output> {
    let board = cx.state().lock_board();
    let plan = board.find_plan(non_empty_text(plan_id).as_deref())?;
    let is_blocked = |place: &usize| plan.steps[*place].status == Status::Blocked;
    let blocked = (0..plan.steps.len()).filter(is_blocked);
    let blocked: Vec<Value> =
        blocked.map(|place| plan_format::blocked_step_json(plan, place)).collect();
    Ok(Output::json(match blocked.is_empty() {
        true => json!({ "blocked_steps": blocked, "message": "No blocked steps" }),
        false => json!({ "count": blocked.len(), "blocked_steps": blocked }),
    }))
}

/// Subscribe to plan and step events. Later results of plan tools report them.
#[tool_fn(
    name = "subscribeToTasks",
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "event_types": { "type": "array", "minItems": 1, "items": { "enum": EVENT_TYPES }, "description": "Event types." },
            "agent_id": { "type": "string", TOUCHES: { "text": "the name of an agent" }, "description": "Default: this agent." },
            "plan_id": { "type": "string", TOUCHES: { "text": "the name of a plan" }, "description": "Default: this session's plan." },
            "step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "Step id or number." },
        },
        "required": ["event_types"],
    })
)]
async fn subscribe_to_tasks(
    cx: &Cx<Todo>,
    event_types: Vec<String>,
    #[serde(default)] agent_id: String,
    #[serde(default)] plan_id: String,
    #[serde(default)] step_id: String,
) -> Result<Output> {
    check_agent_is_this(&agent_id)?;
    let filter = EventFilter {
        event_types,
        plan_id: non_empty_text(plan_id),
        step_id: non_empty_text(step_id),
    };
    Ok(Output::json(cx.state().lock_board().events.subscribe(filter)?))
}

/// List event subscriptions.
#[tool_fn(
    name = "listSubscriptions",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval
)]
async fn list_subscriptions(cx: &Cx<Todo>) -> Result<Output> {
    Ok(Output::json(cx.state().lock_board().events.list_subscriptions()))
}

/// End an event subscription.
#[tool_fn(
    name = "unsubscribe",
    category = "coordination",
    destructive = false,
    idempotent,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "subscription_id": { "type": "string", TOUCHES: { "text": "the name of a subscription" }, "description": "Its id." } },
        "required": ["subscription_id"],
    })
)]
async fn unsubscribe(cx: &Cx<Todo>, subscription_id: String) -> Result<Output> {
    let ended = cx.state().lock_board().events.unsubscribe(&subscription_id);
    Ok(Output::json(json!({ "subscription_id": subscription_id, "unsubscribed": ended })))
}

/// List plan and step events.
#[tool_fn(
    name = "getTaskEvents",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "agent_id": { "type": "string", TOUCHES: { "text": "the name of an agent" }, "description": "Default: this agent." },
            "event_types": { "type": "array", "items": { "enum": EVENT_TYPES }, "description": "Only these." },
            "limit": { "type": "integer", "minimum": 0, "default": 20, "description": "0: all" },
            "timeout": {
                "type": "number", "minimum": 0, "maximum": 30, "default": 0,
                "description": "Seconds to wait if there are none.",
            },
            "after_event": { "type": "string", TOUCHES: { "text": "the name of an event" }, "description": "Only events after this event_id." },
        },
    })
)]
async fn get_task_events(
    cx: &Cx<Todo>,
    #[serde(default)] agent_id: String,
    #[serde(default)] event_types: Vec<String>,
    #[serde(default = "default_event_limit")] limit: usize,
    #[serde(default)] timeout: f64,
    #[serde(default)] after_event: String,
) -> Result<Output> {
    check_agent_is_this(&agent_id)?;
    let (wait, after_event) = (timeout.clamp(0.0, 30.0), non_empty_text(after_event));
    if wait > 0.0 && event_types.is_empty() && after_event.is_none() && agent_id.is_empty() {
        let error = invalid_arguments(
            "timeout requires at least one of: agent_id, event_types, or after_event.",
        );
        return Err(error.with_hint("without one, old events would be returned immediately"));
    }
    let filter = EventFilter { event_types, ..EventFilter::default() };
    let find =
        || cx.state().lock_board().events.find_events(&filter, after_event.as_deref(), limit);
    let mut events = find();
    let mut left = Duration::from_secs_f64(wait);
    while events.is_empty() && !left.is_zero() {
        let step = left.min(LOOK_AGAIN);
        cx.sleep(step).await?;
        left -= step;
        events = find();
    }
    let mut told = json!({ "count": events.len(), "events": events });
    if let Some(last) = events.last() {
        told["last_event_id"] = last["event_id"].clone();
    }
    Ok(Output::json(told))
}

fn default_event_limit() -> usize {
    20
}

/// Returns an error for another agent, because plans of other sessions are not visible here.
fn check_agent_is_this(agent_id: &str) -> Result<()> {
    match agent_id {
        "" | THIS_AGENT => Ok(()),
        other => {
            let shown = truncate_chars(other, 40);
            let text = format!("agent `{shown}` does not exist in this session");
            let hint = format!("leave `agent_id` out, or set it to `{THIS_AGENT}`");
            Err(Error::new(ErrorKind::NotFound, text).with_hint(hint))
        }
    }
}
