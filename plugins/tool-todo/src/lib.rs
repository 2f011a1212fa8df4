//! `tool-todo`: a model plans its work in steps. The user agrees to the plan and sees its progress.
//!
//! [`plan`] is the plan itself, [`events`] records its events, [`board`] is the state of a session,
//! and [`told`] formats both. The tools here and in [`others`] have the names and results of the
//! original plugin.
#![forbid(unsafe_code)]

mod board;
mod events;
mod plan;
mod plan_format;
mod step_tools;

use jaato_plugin_sdk::hooks::Preview;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::types::touches::KEYWORD as TOUCHES;
use jaato_plugin_sdk::types::work_plan::{PlanStatus, PlanStepStatus as Status};

use board::Todo;

/// Plan work with several steps. The user sees the plan; startPlan asks for approval.
#[tool_fn(
    name = "createPlan",
    core,
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    example(
        "plan how to tidy the garden",
        title = "Tidy the garden",
        steps = ["rake the leaves", "mow the lawn"]
    ),
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": "string", TOUCHES: { "text": "a title" }, "description": "The goal." },
            "steps": { "type": "array", "items": { "type": "string" }, TOUCHES: { "text": "what is to be done" }, "description": "Steps in order." },
        },
        "required": ["title", "steps"],
    })
)]
async fn create_plan(cx: &Cx<Todo>, title: String, steps: Vec<String>) -> Result<Output> {
    Todo::change_plan(cx, |board| board.create_plan(&title, &steps))
}

/// Ask the user to approve the plan, then start it.
#[derive(ToolInput)]
#[tool(
    name = "startPlan",
    core,
    category = "coordination",
    destructive = false,
    open_world = false,
    previews,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "message": { "type": "string", TOUCHES: { "text": "a message to the user" }, "description": "For the user." } },
    })
)]
struct StartPlan {
    #[serde(default)]
    message: String,
}

impl Tool for StartPlan {
    type State = Todo;

    async fn call(self, cx: &Cx<Todo>) -> Result<Output> {
        Todo::change_plan(cx, |board| board.start_plan(non_empty_text(self.message)))
    }

    async fn preview(self, cx: &Cx<Todo>) -> Result<Preview> {
        let board = cx.state().lock_board();
        // The user can agree only to a plan that the preview shows.
        Ok(board.proposed_plan().map_or_else(Preview::refused, |plan| {
            Preview::text(plan_format::format_for_user(plan))
        }))
    }
}

tool!(StartPlan);

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
enum NewStepStatus {
    InProgress,
    Completed,
    Failed,
    Skipped,
}

/// Set the status of a plan step.
#[tool_fn(
    name = "setStepStatus",
    core,
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "Step id or number." },
            "status": { "enum": ["in_progress", "completed", "failed", "skipped"], "description": "New status." },
            "result": { "type": "string", TOUCHES: { "text": "a report" }, "description": "The result." },
            "error": { "type": "string", TOUCHES: { "text": "a report" }, "description": "Why it failed." },
        },
        "required": ["step_id", "status"],
    })
)]
async fn set_step_status(
    cx: &Cx<Todo>,
    step_id: String,
    status: NewStepStatus,
    #[serde(default)] result: String,
    #[serde(default)] error: String,
) -> Result<Output> {
    let status = match status {
        NewStepStatus::InProgress => Status::InProgress,
        NewStepStatus::Completed => Status::Completed,
        NewStepStatus::Failed => Status::Failed,
        NewStepStatus::Skipped => Status::Skipped,
    };
    Todo::change_plan(cx, |board| {
        board.set_step_status(&step_id, status, non_empty_text(result), non_empty_text(error))
    })
}

#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", rename_all = "snake_case")]
enum PlanEnding {
    Completed,
    Failed,
    Cancelled,
}

/// End the plan.
#[tool_fn(
    name = "completePlan",
    core,
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "status": { "enum": ["completed", "failed", "cancelled"], "description": "The outcome." },
            "summary": { "type": "string", TOUCHES: { "text": "a report" }, "description": "The result." },
        },
        "required": ["status"],
    })
)]
async fn complete_plan(
    cx: &Cx<Todo>,
    status: PlanEnding,
    #[serde(default)] summary: String,
) -> Result<Output> {
    let status = match status {
        PlanEnding::Completed => PlanStatus::Completed,
        PlanEnding::Failed => PlanStatus::Failed,
        PlanEnding::Cancelled => PlanStatus::Cancelled,
    };
    Todo::change_plan(cx, |board| board.complete_plan(status, non_empty_text(summary)))
}

/// Add a step to the end of the plan or after another step.
#[tool_fn(
    name = "addStep",
    category = "coordination",
    destructive = false,
    open_world = false,
    auto_approval,
    schema = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "description": { "type": "string", TOUCHES: { "text": "what is to be done" }, "description": "What to do." },
            "after_step_id": { "type": "string", TOUCHES: { "text": "a step of the plan" }, "description": "The step before it." },
        },
        "required": ["description"],
    })
)]
async fn add_step(
    cx: &Cx<Todo>,
    description: String,
    #[serde(default)] after_step_id: String,
) -> Result<Output> {
    Todo::change_plan(cx, |board| {
        board.add_step(&description, non_empty_text(after_step_id).as_deref())
    })
}

/// Show the plan and its progress.
#[tool_fn(
    name = "getPlanStatus",
    category = "coordination",
    read_only,
    open_world = false,
    auto_approval,
    schema = json!({ "type": "object", "additionalProperties": false, "properties": { "plan_id": { "type": "string", TOUCHES: { "text": "the name of a plan" }, "description": "Default: this session's plan." } } })
)]
async fn get_plan_status(cx: &Cx<Todo>, #[serde(default)] plan_id: String) -> Result<Output> {
    let board = cx.state().lock_board();
    Ok(Output::json(plan_format::plan_status_json(
        board.find_plan(non_empty_text(plan_id).as_deref())?,
    )))
}

/// Returns a text unless it is empty.
fn non_empty_text(text: String) -> Option<String> {
    (!text.trim().is_empty()).then_some(text)
}

export_plugin! { state: Todo, tools }
