//! The work plan of a session: the current plan, its events, and the result for the model after
//! each change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::serde_json::{Map, from_value, to_value};
use jaato_plugin_sdk::types::CommandSpec;
use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_plugin_sdk::types::work_plan::{PlanStatus, PlanStepStatus as Status};

use crate::events::TodoEvents;
use crate::plan::{
    OUTPUT_BYTES_MAX, TodoPlan, TodoStep, UnblockedSteps, current_time, invalid_arguments,
    is_open_status, validate_text,
};
use crate::plan_format;

/// Instructions for the model while one of the tools is active.
const INSTRUCTIONS: &str = "For work with several steps, make a plan with `createPlan`, get the user's approval with `startPlan`, and update it with `setStepStatus`.";

/// The plan of one session.
pub struct Todo(Mutex<PlanBoard>);

/// The saved state of a session.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct PlanBoard {
    pub plan: Option<TodoPlan>,
    pub events: TodoEvents,
    plans_made: usize,
}

/// The step that waits for others.
pub enum DependentStep {
    /// An existing step, by its ID or number.
    Known(String),
    /// A step with this description, which is added if it does not exist.
    Described(String),
}

impl Todo {
    /// Locks the board. Hold the lock only during a change.
    pub fn lock_board(&self) -> MutexGuard<'_, PlanBoard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the plan, shows it to the user, and adds subscribed events to the result.
    ///
    /// # Errors
    /// The error of `change`.
    pub fn change_plan(
        cx: &Cx<Self>,
        change: impl FnOnce(&mut PlanBoard) -> Result<Value>,
    ) -> Result<Output> {
        let (mut answer, shown) = {
            let mut board = cx.state().lock_board();
            let answer = change(&mut board)?;
            (board.add_subscribed_events(answer), board.plan.as_ref().map(TodoPlan::to_public_plan))
        };
        if let Some(shown) = shown {
            cx.plan_changed(shown);
        }
        Ok(Output::json(answer.take()))
    }
}

impl PlanBoard {
    /// Creates a plan. It replaces a finished plan, or one to which the user has not agreed.
    ///
    /// # Errors
    /// An error if another plan is active.
    pub fn create_plan(&mut self, title: &str, steps: &[String]) -> Result<Value> {
        if let Some(plan) = &self.plan
            && plan.is_active()
            && plan.has_open_steps()
        {
            let open = plan.count_steps(Status::Pending) + plan.count_steps(Status::Blocked);
            let text = format!(
                "An active plan already exists: '{}' ({open} pending, {} in progress). Do NOT recreate it.",
                plan.title,
                plan.count_steps(Status::InProgress)
            );
            return Err(Error::new(ErrorKind::Unavailable, text).with_hint(
                "continue it: `addStep` adds a step, `setStepStatus` skips one, `completePlan` ends it",
            ));
        }
        let plan = TodoPlan::new(self.plans_made + 1, title, steps)?;
        self.plans_made += 1;
        self.events.record_event("plan_created", &plan, None);
        let answer = plan_format::plan_json(&plan);
        self.plan = Some(plan);
        Ok(answer)
    }

    /// Returns the plan that waits for the user's agreement.
    ///
    /// # Errors
    /// An error if no plan exists, or it has started.
    pub fn proposed_plan(&self) -> Result<&TodoPlan> {
        let plan = self.plan.as_ref().ok_or_else(no_plan_error)?;
        match plan.status {
            PlanStatus::Proposed => Ok(plan),
            PlanStatus::Active => {
                Err(unavailable_error("Plan already started. Proceed with setStepStatus."))
            }
            _ => Err(no_plan_error()),
        }
    }

    /// Starts the plan after the user's agreement.
    ///
    /// # Errors
    /// An error if no plan exists, or it has started.
    pub fn start_plan(&mut self, message: Option<String>) -> Result<Value> {
        self.proposed_plan()?;
        let plan = self.plan.as_mut().ok_or_else(no_plan_error)?;
        plan.status = PlanStatus::Active;
        plan.started_at = Some(current_time());
        self.events.record_event("plan_started", plan, None);
        let message = message.filter(|message| !message.trim().is_empty());
        let message =
            message.unwrap_or_else(|| "Plan confirmed. You may proceed with execution.".to_owned());
        let step = |(index, step): (usize, &TodoStep)| json!({ "sequence": index + 1, "step_id": step.id, "description": step.description });
        let steps: Vec<Value> = plan.steps.iter().enumerate().map(step).collect();
        Ok(json!({
            "confirmed": true,
            "plan_id": plan.id,
            "title": plan.title,
            "message": message,
            "steps": steps,
        }))
    }

    /// Changes the status of a step.
    ///
    /// # Errors
    /// An error if the plan has not started, the step does not exist, or it waits for others.
    pub fn set_step_status(
        &mut self,
        step: &str,
        status: Status,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<Value> {
        let (plan, events) = self.started_plan()?;
        let place = plan.step_index(step)?;
        let UnblockedSteps(unblocked) = plan.set_step_status(place, status, result, error)?;
        let kind = match status {
            Status::InProgress => "step_started",
            Status::Completed => "step_completed",
            Status::Failed => "step_failed",
            _ => "step_skipped",
        };
        events.record_event(kind, plan, Some(&plan.steps[place]));
        for id in &unblocked {
            let step = plan.steps.iter().find(|step| step.id == *id);
            events.record_event("step_unblocked", plan, step);
        }
        Ok(plan_format::step_json(plan, place))
    }

    /// Completes a step and stores its output for dependent steps.
    ///
    /// # Errors
    /// The errors of [`PlanBoard::set_step_status`].
    pub fn complete_step_with_output(
        &mut self,
        step: &str,
        output: Map<String, Value>,
        result: Option<String>,
    ) -> Result<Value> {
        let bytes = json!(output).to_string().len();
        if bytes > OUTPUT_BYTES_MAX {
            let text =
                format!("output has {bytes} bytes of JSON, but the maximum is {OUTPUT_BYTES_MAX}");
            return Err(invalid_arguments(&text).with_hint("write it to a file and give its path"));
        }
        let (plan, _) = self.started_plan()?;
        let place = plan.step_index(step)?;
        let before = plan.steps[place].output.replace(output.clone());
        let mut answer = self.set_step_status(step, Status::Completed, result, None);
        match &mut answer {
            Ok(answer) => answer["output"] = Value::Object(output),
            Err(_) => {
                let (plan, _) = self.started_plan()?;
                plan.steps[place].output = before;
            }
        }
        answer
    }

    /// Adds a step.
    ///
    /// # Errors
    /// An error if the plan has not started, or has the maximum number of steps.
    pub fn add_step(&mut self, description: &str, after: Option<&str>) -> Result<Value> {
        let (plan, events) = self.started_plan()?;
        let place = plan.insert_step(description, after)?;
        events.record_event("step_added", plan, Some(&plan.steps[place]));
        let mut answer = plan_format::step_json(plan, place);
        answer["total_steps"] = json!(plan.steps.len());
        Ok(answer)
    }

    /// Makes an existing step wait for others, or adds a step that does.
    ///
    /// # Errors
    /// The errors of [`PlanBoard::add_step`], or an error if a step would wait for itself.
    pub fn add_dependent_step(
        &mut self,
        step: DependentStep,
        depends_on: &[String],
        provides: Option<String>,
    ) -> Result<Value> {
        let (plan, events) = self.started_plan()?;
        let changed = plan.clone();
        let (place, known) = match step {
            DependentStep::Known(id) => {
                let place = plan.step_index(&id)?;
                (place, Some(place))
            }
            DependentStep::Described(description) => {
                let wanted = validate_text("description", &description)?;
                let is_it = |it: &TodoStep| it.description == wanted && is_open_status(it.status);
                let known = plan.steps.iter().position(is_it);
                (known.map_or_else(|| plan.insert_step(&wanted, None), Ok)?, known)
            }
        };
        if let Err(error) = plan.add_dependencies(place, depends_on) {
            *plan = changed;
            return Err(error);
        }
        if provides.is_some() {
            plan.steps[place].provides = provides;
        }
        let step = &plan.steps[place];
        if known.is_none() {
            events.record_event("step_added", plan, Some(step));
        }
        let is_blocked = step.status == Status::Blocked;
        if is_blocked {
            events.record_event("step_blocked", plan, Some(step));
        }
        let to = if known.is_some() { "existing step" } else { "new step" };
        let state = if is_blocked { " (BLOCKED)" } else { "" };
        let mut answer = plan_format::step_json(plan, place);
        answer["blocked_by"] = json!(plan.open_dependencies(place));
        answer["total_steps"] = json!(plan.steps.len());
        answer["message"] =
            json!(format!("Added {} dependencies to {to}{state}", depends_on.len()));
        Ok(answer)
    }

    /// Ends the plan.
    ///
    /// # Errors
    /// An error if no plan exists, or if a plan to which the user has not agreed should become
    /// completed.
    pub fn complete_plan(&mut self, status: PlanStatus, summary: Option<String>) -> Result<Value> {
        let plan = self.plan.as_mut().ok_or_else(no_plan_error)?;
        match plan.status {
            PlanStatus::Active => {}
            PlanStatus::Proposed if status == PlanStatus::Cancelled => {}
            PlanStatus::Proposed => {
                let name = plan_format::plan_status_name(status);
                let text = format!("Cannot mark plan as '{name}' - plan was never started.");
                return Err(
                    unavailable_error(&text).with_hint("Use 'cancelled' if the plan was rejected.")
                );
            }
            _ => return Err(no_plan_error()),
        }
        plan.summary = summary.map(|summary| validate_text("summary", &summary)).transpose()?;
        plan.status = status;
        plan.completed_at = Some(current_time());
        let kind = format!("plan_{}", plan_format::plan_status_name(status));
        self.events.record_event(&kind, plan, None);
        Ok(json!({
            "plan_id": plan.id,
            "title": plan.title,
            "status": plan_format::plan_status_name(status),
            "completed_at": plan.completed_at,
            "summary": plan.summary,
            "progress": plan_format::progress_json(plan),
        }))
    }

    /// Returns the plan. If an ID is given, it must match.
    ///
    /// # Errors
    /// An error if no plan exists, or it has another ID.
    pub fn find_plan(&self, plan_id: Option<&str>) -> Result<&TodoPlan> {
        let plan = self.plan.as_ref().ok_or_else(no_plan_error)?;
        match plan_id {
            Some(id) if id != plan.id => {
                let shown = truncate_chars(id, 40);
                let error = Error::new(ErrorKind::NotFound, format!("Plan not found: {shown}"));
                Err(error.with_hint(format!("the plan of this session is {}", plan.id)))
            }
            _ => Ok(plan),
        }
    }

    /// Adds subscribed events to a result.
    fn add_subscribed_events(&mut self, mut answer: Value) -> Value {
        let untold = self.events.take_new_events();
        if let (Some(answer), false) = (answer.as_object_mut(), untold.is_empty()) {
            answer.insert("task_events".to_owned(), json!(untold));
        }
        answer
    }

    fn started_plan(&mut self) -> Result<(&mut TodoPlan, &mut TodoEvents)> {
        let plan = self.plan.as_mut().ok_or_else(no_plan_error)?;
        match plan.status {
            PlanStatus::Active => Ok((plan, &mut self.events)),
            PlanStatus::Proposed => Err(unavailable_error(
                "Plan not started. Call startPlan first to confirm the plan.",
            )),
            _ => Err(no_plan_error()),
        }
    }
}

impl State for Todo {
    async fn create(_home: &Home, saved: Option<Value>) -> Result<Self> {
        let board = saved.map(from_value).transpose();
        let board = board.map_err(|error| Error::failed(format!("the saved plan: {error}")))?;
        Ok(Self(Mutex::new(board.unwrap_or_default())))
    }

    async fn save(&self) -> Result<Option<Value>> {
        Ok(to_value(&*self.lock_board()).ok())
    }

    fn describe(description: &mut Description) {
        description.instructions = Some(INSTRUCTIONS.to_owned());
        description.commands = vec![CommandSpec {
            name: "plan".to_owned(),
            description: "Shows the plan of this conversation".to_owned(),
            ..CommandSpec::default()
        }];
    }

    async fn command(cx: &Cx<Self>, name: &str, _arguments: Value) -> Result<Output> {
        if name != "plan" {
            let text = format!("unknown command `{name}`");
            return Err(Error::new(ErrorKind::UnknownOperation, text));
        }
        let text = cx.state().lock_board().plan.as_ref().map(plan_format::format_for_user);
        Ok(Output::text(text.unwrap_or_else(|| "there is no plan".to_owned())))
    }
}

fn no_plan_error() -> Error {
    unavailable_error("No active plan. Create a plan first with createPlan.")
}

fn unavailable_error(text: &str) -> Error {
    Error::new(ErrorKind::Unavailable, text)
}
