//! Decides whether a tool call may run: guards, rules, permission prompt, remembered answers.
//!
//! [`SessionApproval::decide_call`] is the only way from a call to its [`CallVerdict`]. It asks the
//! guards, applies the rules of [`jaato_policy`], shows a [`PermissionPrompt`] if a user must
//! decide, and remembers the answer. Sessions call it. It does not know history, models, terminals
//! or plugins, which it uses through [`CallContext`], [`CallGate`] and [`PermissionAsker`].
//!
//! Invariants: a guard that fails denies the call. Without an answer, or with one that the prompt
//! does not allow, the call is denied.
//!
//! [`PermissionPrompt`]: jaato_types::permission_prompt::PermissionPrompt

mod answer;
mod approval;
mod asker;
mod attempt;
mod context;
mod gate;
mod kept_answers;
mod offer;
mod paths;
mod prompt;
mod shared_rules;
mod verdict;
mod warning;

pub use answer::EqualCallAnswers;
pub use approval::{CandidateCall, SessionApproval};
pub use asker::{NoAnswer, PermissionAsker};
pub use context::{CallContext, ChangedCall, GuardOutcome};
pub use gate::{CallEnvironment, CallGate, RulesGate};
pub use kept_answers::FileAnswerStore;
pub use shared_rules::{AnswerStore, SessionRules, SharedRules};
pub use verdict::CallVerdict;
