//! What an approval of a person remembers, and for how long.

use crate::{ArgumentsDigest, Call};

/// How long an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// For this call.
    Once,
    /// Until the turn ends.
    Turn,
    /// Until the session ends.
    Session,
    /// For good: it is written into the person's file.
    Always,
}

/// The calls that an answer holds for, beside the tool and its plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// Calls with exactly these arguments.
    Exact(ArgumentsDigest),
    /// Every call of the tool.
    Tool,
}

impl Pattern {
    /// The pattern that holds for exactly this call.
    pub fn exactly(call: &Call<'_>) -> Self {
        Self::Exact(call.arguments)
    }

    /// Says in words which calls it is for.
    pub fn text(&self, call: &Call<'_>) -> String {
        let tool = call.tool;
        match self {
            Self::Exact(_) => format!("exactly this call of `{tool}`"),
            Self::Tool => format!("every call of `{tool}`"),
        }
    }

    /// Tells whether it is for a call.
    pub fn covers(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Exact(digest) => *digest == call.arguments,
            Self::Tool => true,
        }
    }
}

/// Returns what a person may be offered to allow, from narrow to wide.
pub fn proposals(call: &Call<'_>) -> Vec<Pattern> {
    vec![Pattern::exactly(call), Pattern::Tool]
}
