//! The approval mode of a session: which calls need no prompt.

use serde::{Deserialize, Serialize};

use crate::facts::PolicyFacts;
use crate::{PluginSource, PolicyCall, edits};

/// The shipped plugin for plans. Its tools change only the plan.
const PLANNING_PLUGIN: &str = "tool-todo";

/// The tool of that plugin with which the user agrees to a plan.
const START_PLAN: &str = "startPlan";

/// Which calls the session may make without a prompt, in addition to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyMode {
    /// Asks about each call that no rule allows.
    #[default]
    Ask,
    /// As [`PolicyMode::Ask`], but shipped tools change files in the workspace without a prompt.
    AcceptEdits,
    /// Denies everything except reading, even if a rule allows it.
    ReadOnly,
    /// As [`PolicyMode::ReadOnly`], but the model may write a plan. The mode ends when the user
    /// agrees to the plan.
    Plan,
}

impl PolicyMode {
    /// Returns true if the mode alone allows a call: `accept-edits` allows changes of files inside
    /// the workspace.
    pub fn allows_call(self, call: &PolicyCall<'_>) -> bool {
        match self {
            Self::AcceptEdits => {
                edits::may_change_files(call)
                    && edits::is_safe_workspace_edit(&PolicyFacts::from_call(call))
            }
            Self::Ask | Self::ReadOnly | Self::Plan => false,
        }
    }

    /// Every mode, in the order of lists and errors.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AcceptEdits, Self::Plan, Self::ReadOnly];

    /// Finds a mode by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// Returns the mode's name in options, events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::ReadOnly => "read-only",
            Self::Plan => "plan",
        }
    }
}

impl PolicyCall<'_> {
    /// Returns true if the call starts the model's plan.
    pub fn is_plan_start(&self) -> bool {
        self.is_plan_write() && self.tool.as_str() == START_PLAN
    }

    /// Returns true if the call changes only the plan of the session.
    pub(crate) fn is_plan_write(&self) -> bool {
        self.source == PluginSource::Shipped
            && self.plugin.as_str() == PLANNING_PLUGIN
            && !self.annotations.destructive
            && !self.annotations.open_world
    }
}
