//! What a model works through, step by step: for the person who watches.

use serde::{Deserialize, Serialize};

/// Steps of a [`WorkPlan`] that front ends are shown; a plugin refuses a longer one.
pub const PLAN_STEPS_MAX: usize = 500;

/// What a model works through in a session. The plugin that keeps it tells the whole with each
/// change; who shows it compares.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkPlan {
    /// Its name, unique in its session.
    pub id: String,
    /// What it is for, in a line.
    pub title: String,
    /// How far it is.
    pub status: PlanStatus,
    /// Its steps in order, at most [`PLAN_STEPS_MAX`].
    pub steps: Vec<PlanStep>,
    /// What came of it, once it is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// How far a plan is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// The person has not agreed to it yet.
    #[default]
    Proposed,
    /// It is worked through.
    Active,
    /// All was done.
    Completed,
    /// It was given up.
    Failed,
    /// It is no longer wanted.
    Cancelled,
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}

/// A step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    /// Its name, unique in its plan.
    pub id: String,
    /// What is to be done, in a line.
    pub description: String,
    /// How far it is.
    pub status: PlanStepStatus,
    /// What came of it, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStepStatus {
    /// Nobody has begun.
    #[default]
    Pending,
    /// It waits for another step.
    Blocked,
    /// It is worked on.
    InProgress,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
    /// It was left out.
    Skipped,
    /// Something that this side does not know.
    #[serde(other)]
    Unknown,
}

impl WorkPlan {
    /// Returns about how many bytes its texts have.
    pub fn text_bytes(&self) -> usize {
        let step = |step: &PlanStep| {
            step.id.len() + step.description.len() + step.result.as_ref().map_or(0, String::len)
        };
        let steps: usize = self.steps.iter().map(step).sum();
        self.title.len() + self.summary.as_ref().map_or(0, String::len) + steps
    }
}
