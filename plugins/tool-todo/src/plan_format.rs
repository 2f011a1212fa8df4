//! Formats a plan for the model and the user.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::types::work_plan::{PlanStatus, PlanStepStatus as Status};

use crate::plan::{TodoPlan, TodoStep, is_open_status};

/// Returns the whole plan.
pub fn plan_json(plan: &TodoPlan) -> Value {
    let steps: Vec<Value> =
        (0..plan.steps.len()).map(|place| step_facts_json(plan, place)).collect();
    json!({
        "plan_id": plan.id,
        "title": plan.title,
        "status": plan_status_name(plan.status),
        "steps": steps,
        "progress": progress_json(plan),
    })
}

/// Returns the whole plan, with its times, the current step and the summary.
pub fn plan_status_json(plan: &TodoPlan) -> Value {
    let mut told = plan_json(plan);
    let current = plan.steps.iter().position(|step| step.status == Status::InProgress);
    let current = current.map(|place| {
        let step = &plan.steps[place];
        json!({ "step_id": step.id, "sequence": place + 1, "description": step.description })
    });
    told["created_at"] = json!(plan.created_at);
    told["started_at"] = json!(plan.started_at);
    told["completed_at"] = json!(plan.completed_at);
    told["current_step"] = json!(current);
    told["summary"] = json!(plan.summary);
    told
}

/// Returns a changed step, with the instruction for the next one.
pub fn step_json(plan: &TodoPlan, place: usize) -> Value {
    let mut told = step_facts_json(plan, place);
    told["progress"] = progress_json(plan);
    if let Some(next) = next_step_instruction(plan, &plan.steps[place]) {
        told["instruction"] = json!(next);
    }
    told
}

/// Returns a step for `getBlockedSteps`.
pub fn blocked_step_json(plan: &TodoPlan, place: usize) -> Value {
    let step = &plan.steps[place];
    json!({
        "step_id": step.id,
        "sequence": place + 1,
        "description": step.description,
        "blocked_by": plan.open_dependencies(place),
        "depends_on": step.depends_on,
        "received_outputs": plan.dependency_outputs(place),
    })
}

/// Returns the progress of a plan.
pub fn progress_json(plan: &TodoPlan) -> Value {
    let (total, completed) = (plan.steps.len(), plan.count_steps(Status::Completed));
    let percent = completed as f64 * 100.0 / total.max(1) as f64;
    json!({
        "total": total,
        "completed": completed,
        "failed": plan.count_steps(Status::Failed),
        "skipped": plan.count_steps(Status::Skipped),
        "in_progress": plan.count_steps(Status::InProgress),
        "pending": plan.count_steps(Status::Pending),
        "blocked": plan.count_steps(Status::Blocked),
        "percent": (percent * 10.0).round() / 10.0,
    })
}

/// Returns the text for the command `plan_json` and for the question about `startPlan`.
pub fn format_for_user(plan: &TodoPlan) -> String {
    let line = |(index, step): (usize, &TodoStep)| {
        let result = step.error.as_ref().or(step.result.as_ref());
        let result = result.map(|result| format!(" ({result})")).unwrap_or_default();
        format!("{:>3}. {}: {}{result}", index + 1, step_status_name(step.status), step.description)
    };
    let steps: Vec<String> = plan.steps.iter().enumerate().map(line).collect();
    format!("{} ({})\n{}", plan.title, plan_status_name(plan.status), steps.join("\n"))
}

/// Returns the name of a plan's status.
pub fn plan_status_name(status: PlanStatus) -> &'static str {
    match status {
        PlanStatus::Proposed => "proposed",
        PlanStatus::Active | PlanStatus::Unknown => "active",
        PlanStatus::Completed => "completed",
        PlanStatus::Failed => "failed",
        PlanStatus::Cancelled => "cancelled",
    }
}

fn step_facts_json(plan: &TodoPlan, place: usize) -> Value {
    let step = &plan.steps[place];
    let mut told = json!({
        "step_id": step.id,
        "sequence": place + 1,
        "description": step.description,
        "status": step_status_name(step.status),
    });
    if let Some(result) = &step.result {
        told["result"] = json!(result);
    }
    if let Some(error) = &step.error {
        told["error"] = json!(error);
    }
    for (key, at) in [("started_at", &step.started_at), ("completed_at", &step.completed_at)] {
        if let Some(at) = at {
            told[key] = json!(at);
        }
    }
    let missing = plan.failed_dependencies(place);
    if !missing.is_empty() && is_open_status(step.status) {
        told["not_completed"] = json!(missing);
    }
    let waits_for = plan.open_dependencies(place);
    if !waits_for.is_empty() {
        told["blocked_by"] = json!(waits_for);
    }
    let received = plan.dependency_outputs(place);
    if step.status == Status::InProgress && !received.is_empty() {
        told["received_outputs"] = Value::Object(received);
    }
    told
}

fn next_step_instruction(plan: &TodoPlan, step: &TodoStep) -> Option<String> {
    let next = plan.steps.iter().find(|step| step.status == Status::Pending);
    match step.status {
        Status::InProgress => Some(format!(
            "Step is now in progress. Proceed immediately with: {}",
            step.description
        )),
        Status::Completed | Status::Skipped | Status::Failed if !plan.has_open_steps() => {
            Some("All steps are done. Call completePlan.".to_owned())
        }
        Status::Completed | Status::Skipped => next.map(|next| {
            let status = step_status_name(step.status);
            format!("Step {status}. Proceed immediately to next step: {}", next.description)
        }),
        Status::Failed => Some(
            "Add an alternative with addStep, skip the steps that depend on this one, or continue with the next. Do not recreate the plan."
                .to_owned(),
        ),
        _ => None,
    }
}

fn step_status_name(status: Status) -> &'static str {
    match status {
        Status::Pending | Status::Unknown => "pending",
        Status::Blocked => "blocked",
        Status::InProgress => "in_progress",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Skipped => "skipped",
    }
}
