//! Decides whether a tool call may run.
//!
//! Pure: no I/O, no clock, no waiting. Asking a person is the session's job; this crate only says
//! *that* it must ask, and why.
//!
//! Invariant: the answer names the rule that decided, so that every refusal can be explained.

mod arguments;
mod call;
mod decide;
mod pattern;
mod rule;
mod rules;

pub use arguments::ArgumentsDigest;
pub use call::{AlwaysScope, Call, Caller, PluginSource};
pub use decide::decide;
pub use pattern::{Pattern, Scope, proposals};
pub use rule::{Decision, Outcome, RuleId};
pub use rules::{Allowed, Answer, Rules, SessionRule};
