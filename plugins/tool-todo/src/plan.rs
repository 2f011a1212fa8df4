//! The plan of a session: its steps, what they wait for, and what may become of them.
//!
//! It knows nothing of tools; what it refuses it says in words for the model.

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde;
use jaato_plugin_sdk::serde_json::Map;
use jaato_plugin_sdk::types::text::cut;
use jaato_plugin_sdk::types::work_plan::{
    PLAN_STEPS_MAX, PlanStatus, PlanStep, PlanStepStatus as Status, WorkPlan,
};

/// Bytes of a title, a description, a result.
pub const TEXT_BYTES_MAX: usize = 4 * 1024;
/// Bytes of JSON that a step gives to others.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A plan.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde")]
pub struct Plan {
    pub id: String,
    pub title: String,
    pub status: PlanStatus,
    pub steps: Vec<Step>,
    pub summary: Option<String>,
    /// When it was made, agreed to and ended.
    #[serde(default)]
    pub created_at: String,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub completed_at: Option<String>,
    /// Counts the steps that there were, so that no name comes twice.
    steps_made: usize,
}

/// A step of a plan.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(crate = "jaato_plugin_sdk::serde", default)]
pub struct Step {
    pub id: String,
    pub description: String,
    pub status: Status,
    pub result: Option<String>,
    pub error: Option<String>,
    /// When it was begun, and when it was over.
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
    /// Steps that must be over first.
    pub depends_on: Vec<String>,
    /// Under which name those that wait for it get its output, beside its own.
    pub provides: Option<String>,
    /// What it gives to those that wait for it.
    pub output: Option<Map<String, Value>>,
}

/// What changed with a step of itself: others were waiting for it.
pub struct Unblocked(pub Vec<String>);

impl Plan {
    /// Makes a plan that the person has not agreed to yet.
    ///
    /// # Errors
    /// Where there is nothing to do, or too much.
    pub fn new(number: usize, title: &str, steps: &[String]) -> Result<Self> {
        let mut plan = Self {
            id: format!("plan_{number}"),
            title: text("title", title)?,
            status: PlanStatus::Proposed,
            steps: Vec::new(),
            summary: None,
            created_at: now(),
            started_at: None,
            completed_at: None,
            steps_made: 0,
        };
        if steps.is_empty() {
            return Err(invalid("steps must be a non-empty array"));
        }
        for step in steps {
            plan.add(step, None)?;
        }
        Ok(plan)
    }

    /// Whether it is neither over nor only proposed.
    pub fn is_active(&self) -> bool {
        self.status == PlanStatus::Active
    }

    /// Counts the steps that stand so.
    pub fn count(&self, status: Status) -> usize {
        self.steps.iter().filter(|step| step.status == status).count()
    }

    /// Whether a step is left to do.
    pub fn has_open_steps(&self) -> bool {
        self.steps.iter().any(|step| is_open(step.status))
    }

    /// Adds a step behind another, or behind all; returns its place.
    ///
    /// # Errors
    /// Where there is no such step, or there are too many.
    pub fn add(&mut self, description: &str, after: Option<&str>) -> Result<usize> {
        if self.steps.len() >= PLAN_STEPS_MAX {
            let error = invalid(&format!("a plan has at most {PLAN_STEPS_MAX} steps"));
            return Err(error.with_hint("join small steps into one, or plan the first part now"));
        }
        let description = text("description", description)?;
        let place = match after {
            Some(after) => self.place(after)? + 1,
            None => self.steps.len(),
        };
        self.steps_made += 1;
        let id = format!("step_{}", self.steps_made);
        self.steps.insert(place, Step { id, description, ..Step::default() });
        Ok(place)
    }

    /// Returns the place of a step, by its name or its number from 1.
    ///
    /// # Errors
    /// Where there is none.
    pub fn place(&self, step: &str) -> Result<usize> {
        let by_number = || step.parse::<usize>().ok()?.checked_sub(1);
        let by_name = self.steps.iter().position(|known| known.id == step);
        by_name.or_else(by_number).filter(|place| *place < self.steps.len()).ok_or_else(|| {
            let shown = cut(step, 40);
            let error = Error::new(ErrorKind::NotFound, format!("Step not found: {shown}"));
            error.with_hint("`getPlanStatus` lists the steps")
        })
    }

    /// Lets a step stand otherwise; those that waited for it go on.
    ///
    /// # Errors
    /// Where it waits for others itself.
    pub fn set(
        &mut self,
        place: usize,
        status: Status,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<Unblocked> {
        let waits_for = self.waits_for(place);
        let step = &mut self.steps[place];
        let is_begun = matches!(status, Status::InProgress | Status::Completed);
        if is_begun && !waits_for.is_empty() {
            let text = format!("Step is blocked: {} waits for {}", step.id, waits_for.join(", "));
            let hint = "complete, fail or skip those first, or skip this one";
            return Err(Error::new(ErrorKind::Unavailable, text).with_hint(hint));
        }
        step.status = status;
        if status == Status::InProgress {
            step.started_at = Some(now());
        }
        step.completed_at = (!is_open(status)).then(now);
        step.result = result.map(|result| text("result", &result)).transpose()?;
        step.error = error.map(|error| text("error", &error)).transpose()?;
        Ok(self.unblock())
    }

    /// Lets a step wait for others.
    ///
    /// # Errors
    /// Where it is done already, or would wait for itself.
    pub fn depend(&mut self, place: usize, on: &[String]) -> Result<()> {
        if !is_open(self.steps[place].status) {
            return Err(invalid(&format!("{} is over already", self.steps[place].id)));
        }
        for other in on {
            let other = self.place(other)?;
            if self.leads_to(other, place) {
                let (step, other) = (&self.steps[place].id, &self.steps[other].id);
                return Err(invalid(&format!("{step} would wait for itself, by {other}")));
            }
            let id = self.steps[other].id.clone();
            let step = &mut self.steps[place];
            if !step.depends_on.contains(&id) {
                step.depends_on.push(id);
            }
        }
        if !self.waits_for(place).is_empty() {
            self.steps[place].status = Status::Blocked;
        }
        Ok(())
    }

    /// The steps that must be over before this one is begun. One that failed or is skipped is over:
    /// what waited for it would wait for ever.
    pub fn waits_for(&self, place: usize) -> Vec<String> {
        self.depends_on(place, is_open)
    }

    /// The steps that this one waited for and that were not completed.
    pub fn goes_without(&self, place: usize) -> Vec<String> {
        self.depends_on(place, |status| matches!(status, Status::Failed | Status::Skipped))
    }

    fn depends_on(&self, place: usize, is_so: impl Fn(Status) -> bool) -> Vec<String> {
        let is_it =
            |id: &&String| self.steps.iter().any(|step| step.id == **id && is_so(step.status));
        self.steps[place].depends_on.iter().filter(is_it).cloned().collect()
    }

    /// What the steps that this one depends on have given.
    pub fn received(&self, place: usize) -> Map<String, Value> {
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

    /// How people and other programs are shown it.
    pub fn shown(&self) -> WorkPlan {
        let step = |step: &Step| PlanStep {
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

    fn unblock(&mut self) -> Unblocked {
        let mut unblocked = Vec::new();
        for place in 0..self.steps.len() {
            if self.steps[place].status == Status::Blocked && self.waits_for(place).is_empty() {
                self.steps[place].status = Status::Pending;
                unblocked.push(self.steps[place].id.clone());
            }
        }
        Unblocked(unblocked)
    }

    /// Whether a step is another, or waits for it over any number of others.
    fn leads_to(&self, from: usize, to: usize) -> bool {
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

/// This moment, as the model is told it.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// Whether something is left to do with such a step.
pub fn is_open(status: Status) -> bool {
    !matches!(status, Status::Completed | Status::Failed | Status::Skipped)
}

/// Checks a text that the model wrote.
pub fn text(name: &str, text: &str) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(invalid(&format!("{name} is required")));
    }
    if text.len() > TEXT_BYTES_MAX {
        let error = format!("{name} has {} bytes, at most {TEXT_BYTES_MAX} go", text.len());
        return Err(invalid(&error).with_hint("say it shorter, or write it to a file"));
    }
    Ok(text.to_owned())
}

/// The error for arguments that make no sense.
pub fn invalid(text: &str) -> Error {
    Error::new(ErrorKind::InvalidArguments, text)
}
