//! How much a person wants to be asked, for the whole session.

use crate::facts::Facts;
use crate::{Call, edits};

/// What the session may do without a question, beside what rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each call that no rule allows is asked.
    #[default]
    Ask,
    /// As [`Mode::Ask`], but changes of files inside the workspace by shipped tools are not asked.
    AcceptEdits,
    /// What changes anything is denied, whatever allows it.
    ReadOnly,
}

impl Mode {
    /// Tells whether the mode alone allows a call: `accept-edits` does, of changes of files inside
    /// the workspace.
    pub fn allows(self, call: &Call<'_>) -> bool {
        match self {
            Self::AcceptEdits => edits::is_inside_edit(&Facts::of(call)),
            Self::Ask | Self::ReadOnly => false,
        }
    }

    /// Every mode, in the order in which people see them.
    pub const ALL: [Self; 3] = [Self::Ask, Self::AcceptEdits, Self::ReadOnly];

    /// Finds a mode by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The mode's name in options, events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::ReadOnly => "read-only",
        }
    }
}
