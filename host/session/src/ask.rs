//! Asking a person whether a call may run.

use futures_util::future::BoxFuture;
use jaato_policy::Decision;
use jaato_types::ToolCall;

use crate::KnownTool;

/// Asks a person, or says that nobody can be asked.
pub trait Asker: Send + Sync {
    /// Tells why nobody can be asked (`standard input is not a terminal`); nothing if somebody can.
    fn nobody(&self) -> Option<String>;

    /// Asks, one question at a time. Dropping the future withdraws the question.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;
}

/// What a person is asked.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// The call, with its arguments.
    pub call: &'a ToolCall,
    /// The tool.
    pub tool: &'a KnownTool,
    /// The decision that a person must be asked.
    pub decision: Decision,
    /// The decision in words.
    pub why: String,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This call may run.
    AllowOnce,
    /// This call may run, and those like it until the session ends.
    AllowInSession,
    /// It must not run.
    Deny {
        /// What the model is told about it.
        comment: Option<String>,
    },
    /// No call of this tool may run until the session ends.
    DenyInSession {
        /// What the model is told about it.
        comment: Option<String>,
    },
    /// There was nobody to answer after all (the terminal is gone), and why.
    Nobody {
        /// Why.
        reason: String,
    },
}
