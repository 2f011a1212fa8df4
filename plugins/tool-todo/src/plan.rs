//! The plan of a session: its steps, their dependencies, and the allowed changes.
//!
//! It is independent of the tools. Its errors are texts for the model.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::text::truncate_chars;
use jaato_plugin_sdk::types::work_plan::{
    PLAN_STEPS_MAX, PlanStatus, PlanStep, PlanStepStatus as Status, WorkPlan,
};

/// The maximum size of a title, description or result, in bytes.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The maximum size of a step's output, in bytes of JSON.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A plan.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct TodoPlan {
    pub id: String,
    pub title: String,
    pub status: PlanStatus,
    pub steps: Vec<TodoStep>,
    pub summary: Option<String>,
    /// The times at which the plan was created, started and ended.
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub completed_at: Option<String>,
    /// The number of steps created, so that no ID is used twice.
    steps_made: usize,
}

/// A step of a plan.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct TodoStep {
    pub id: String,
    pub description: String,
    pub status: Status,
    pub result: Option<String>,
    pub error: Option<String>,
    /// The times at which the step was started and ended.
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    /// Steps that must end first.
    pub depends_on: Vec<String>,
    /// An additional name under which dependent steps get the output.
    pub provides: Option<String>,
    /// The output for dependent steps.
    pub output: Option<Map<String, Value>>,
}

/// The steps that a change has unblocked.
pub struct UnblockedSteps(pub Vec<String>);

impl TodoPlan {
    /// Creates a plan that awaits the user's agreement.
    ///
    /// # Errors
    /// An error if `steps` is empty, or has too many entries.
    pub fn new(number: usize, title: &str, steps: &[String]) -> Result<Self> {
        let mut plan = Self {
            id: format!("plan_{number}"),
            title: validate_text("title", title)?,
            status: PlanStatus::Proposed,
            steps: Vec::new(),
            summary: None,
            created_at: current_time(),
            started_at: None,
            completed_at: None,
            steps_made: 0,
        };
        if steps.is_empty() {
            return Err(invalid_arguments("steps must be a non-empty array"));
        }
        for step in steps {
            plan.insert_step(step, None)?;
        }
        Ok(plan)
    }

    /// Returns true if the plan has started and not ended.
    pub fn is_active(&self) -> bool {
        self.status == PlanStatus::Active
    }

    /// Counts the steps with this status.
    pub fn count_steps(&self, status: Status) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }

    /// Returns true if a step is still open.
    pub fn has_open_steps(&self) -> bool {
        self.steps.iter().any(|step| is_open_status(step.status))
    }

    /// Adds a step after another one, or at the end. Returns its index.
    ///
    /// # Errors
    /// An error if the other step does not exist, or there are too many steps.
    pub fn insert_step(&mut self, description: &str, after: Option<&str>) -> Result<usize> {
        if self.steps.len() >= PLAN_STEPS_MAX {
            let error = invalid_arguments(&format!("a plan has at most {PLAN_STEPS_MAX} steps"));
            return Err(error.with_hint("join small steps into one, or plan the first part now"));
        }
        let description = validate_text("description", description)?;
        let place = match after {
            Some(after) => self.step_index(after)? + 1,
            None => self.steps.len(),
        };
        self.steps_made += 1;
        let id = format!("step_{}", self.steps_made);
        self.steps.insert(place, TodoStep { id, description, ..TodoStep::default() });
        Ok(place)
    }

    /// Returns the index of a step, by its ID or its number from 1.
    ///
    /// # Errors
    /// An error if the step does not exist.
    pub fn step_index(&self, step: &str) -> Result<usize> {
        let by_number = || step.parse::<usize>().ok()?.checked_sub(1);
        let by_name = self.steps.iter().position(|known| known.id == step);
        by_name.or_else(by_number).filter(|place| *place < self.steps.len()).ok_or_else(|| {
            let shown = truncate_chars(step, 40);
            let error = Error::new(ErrorKind::NotFound, format!("Step not found: {shown}"));
            error.with_hint("`getPlanStatus` lists the steps")
        })
    }

    /// Changes the status of a step. Steps that waited for it may continue.
    ///
    /// # Errors
    /// An error if the step waits for others.
    pub fn set_step_status(
        &mut self,
        place: usize,
        status: Status,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<UnblockedSteps> {
        let waits_for = self.open_dependencies(place);
        let step = &mut self.steps[place];
        let is_begun = matches!(status, Status::InProgress | Status::Completed);
        if is_begun && !waits_for.is_empty() {
            let text = format!("Step is blocked: {} waits for {}", step.id, waits_for.join(", "));
            let hint = "complete, fail or skip those first, or skip this one";
            return Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint));
        }
        step.status = status;
        if status == Status::InProgress {
            step.started_at = Some(current_time());
        }
        step.completed_at = (!is_open_status(status)).then(current_time);
        step.result = result.map(|result| validate_text("result", &result)).transpose()?;
        step.error = error.map(|error| validate_text("error", &error)).transpose()?;
        Ok(self.unblock_ready_steps())
    }

    /// Makes a step wait for others.
    ///
    /// # Errors
    /// An error if the step has ended, or would wait for itself.
    pub fn add_dependencies(&mut self, place: usize, on: &[String]) -> Result<()> {
        if !is_open_status(self.steps[place].status) {
            return Err(invalid_arguments(&format!("{} has already ended", self.steps[place].id)));
        }
        for other in on {
            let other = self.step_index(other)?;
            if self.is_dependent_on(other, place) {
                let (step, other) = (&self.steps[place].id, &self.steps[other].id);
                return Err(invalid_arguments(&format!(
                    "{step} would wait for itself through {other}"
                )));
            }
            let id = self.steps[other].id.clone();
            let step = &mut self.steps[place];
            if !step.depends_on.contains(&id) {
                step.depends_on.push(id);
            }
        }
        if !self.open_dependencies(place).is_empty() {
            self.steps[place].status = Status::Blocked;
        }
        Ok(())
    }

    /// Returns the steps that must end before this one can start. Failed and skipped steps count as
    /// ended, because otherwise dependent steps would wait forever.
    pub fn open_dependencies(&self, place: usize) -> Vec<String> {
        self.dependencies_with_status(place, is_open_status)
    }

    /// Returns the failed and skipped steps that this one depends on.
    pub fn failed_dependencies(&self, place: usize) -> Vec<String> {
        self.dependencies_with_status(place, |status| {
            matches!(status, Status::Failed | Status::Skipped)
        })
    }

    fn dependencies_with_status(
        &self,
        place: usize,
        is_so: impl Fn(Status) -> bool,
    ) -> Vec<String> {
        let is_it =
            |id: &&String| self.steps.iter().any(|step| step.id == **id && is_so(step.status));
        self.steps[place].depends_on.iter().filter(is_it).cloned().collect()
    }

    /// Returns the outputs of the steps that this one depends on.
    pub fn dependency_outputs(&self, place: usize) -> Map<String, Value> {
        let mut received = Map::new();
        for id in &self.steps[place].depends_on {
            let Some(step) = self.steps.iter().find(|step| step.id == *id) else { continue };
            let Some(output) = &step.output else { continue };
            received.insert(step.id.clone(), Value::Object(output.clone()));
            if let Some(name) = &step.provides {
                received.insert(name.clone(), Value::Object(output.clone()));
            }
        }
        received
    }

    /// Returns the plan for users and other programs.
    pub fn to_public_plan(&self) -> WorkPlan {
        let step = |step: &TodoStep| PlanStep {
            id: step.id.clone(),
            description: step.description.clone(),
            status: step.status,
            result: step.error.clone().or_else(|| step.result.clone()),
        };
        WorkPlan {
            id: self.id.clone(),
            title: self.title.clone(),
            status: self.status,
            steps: self.steps.iter().map(step).collect(),
            summary: self.summary.clone(),
        }
    }

    fn unblock_ready_steps(&mut self) -> UnblockedSteps {
        let mut unblocked = Vec::new();
        for place in 0..self.steps.len() {
            if self.steps[place].status == Status::Blocked
                && self.open_dependencies(place).is_empty()
            {
                self.steps[place].status = Status::Pending;
                unblocked.push(self.steps[place].id.clone());
            }
        }
        UnblockedSteps(unblocked)
    }

    /// Returns true if a step is `to`, or depends on it directly or indirectly.
    fn is_dependent_on(&self, from: usize, to: usize) -> bool {
        let mut left = vec![from];
        let mut seen = vec![false; self.steps.len()];
        while let Some(place) = left.pop() {
            if place == to {
                return true;
            }
            if !std::mem::replace(&mut seen[place], true) {
                let of = |id: &String| self.steps.iter().position(|step| step.id == *id);
                left.extend(self.steps[place].depends_on.iter().filter_map(of));
            }
        }
        false
    }
}

/// Returns the current time in the format for the model.
pub fn current_time() -> String {
    jiff::Timestamp::now().to_string()
}

/// Returns true if a step with this status is still open.
pub fn is_open_status(status: Status) -> bool {
    !matches!(status, Status::Completed | Status::Failed | Status::Skipped)
}

/// Validates a text from the model.
pub fn validate_text(name: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(invalid_arguments(&format!("{name} is required")));
    }
    if text.len() > TEXT_BYTES_MAX {
        let error = format!("{name} has {} bytes, but the maximum is {TEXT_BYTES_MAX}", text.len());
        return Err(invalid_arguments(&error).with_hint("shorten it, or write it to a file"));
    }
    Ok(text.to_owned())
}

/// Returns the error for invalid arguments.
pub fn invalid_arguments(text: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, text)
}
