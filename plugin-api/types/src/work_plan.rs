//! The model's work plan, which the user sees step by step.

use serde::{Deserialize, Serialize};

/// The maximum number of steps of a [`WorkPlan`] that front ends show. A plugin refuses a longer
/// one.
pub const PLAN_STEPS_MAX: usize = 500;

/// A model's work plan in a session. Its plugin sends the complete plan with each change, and front
/// ends compare the versions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkPlan {
    /// The id, unique in its session.
    pub id: String,
    /// The goal, in one line.
    pub title: String,
    /// The state of the plan.
    pub status: PlanStatus,
    /// The steps in order, at most [`PLAN_STEPS_MAX`].
    pub steps: Vec<PlanStep>,
    /// The outcome, after the plan ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// The state of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// The user has not accepted it yet.
    #[default]
    Proposed,
    /// The model is working on it.
    Active,
    /// All steps are done.
    Completed,
    /// The model gave up.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// A state from a newer version.
    #[serde(other)]
    Unknown,
}

/// A step of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanStep {
    /// The id, unique in its plan.
    pub id: String,
    /// A description in one line.
    pub description: String,
    /// The state of the step.
    pub status: PlanStepStatus,
    /// The result, or the reason for the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStepStatus {
    /// Not started.
    #[default]
    Pending,
    /// Waiting for another step.
    Blocked,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// Skipped.
    Skipped,
    /// A state from a newer version.
    #[serde(other)]
    Unknown,
}

impl WorkPlan {
    /// Returns the approximate size of all texts, in bytes.
    pub fn text_bytes(&self) -> usize {
        let step = |step: &PlanStep| {
            step.id.len() + step.description.len() + step.result.as_ref().map_or(0, String::len)
        };
        let steps: usize = self.steps.iter().map(step).sum();
        self.title.len() + self.summary.as_ref().map_or(0, String::len) + steps
    }
}
