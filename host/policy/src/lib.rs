//! Decides whether a tool call may run.
//!
//! Pure: no I/O, no clock, no waiting. This crate only says *that* the user must be asked, and why.
//! `host/approval` asks. The configuration reads the files with rules.
//!
//! Invariants: each decision names its rule, so that every refusal can be explained. A call that
//! jaato cannot understand asks, and no rule allows it.

mod call;
mod can_allow;
mod conditions;
mod coverage;
mod decide;
mod decision;
mod definition;
mod digest;
mod edits;
mod expansion;
mod explain;
mod facts;
mod layer;
mod limits;
mod matching;
mod mode;
mod pattern;
mod reached_targets;
mod resolved;
mod rule;
mod rule_files;
mod rules;
pub mod shell;
mod shipped;
mod touched_targets;

pub use call::{Caller, CallingAgent, PluginSource, PolicyCall, TypingTarget, WorkspaceTrust};
pub use conditions::{
    AnnotationKind, CommandPattern, ExactCall, PathPattern, RestOfCommand, RuleConditions,
};
pub use decide::decide;
pub use decision::Decision;
pub use definition::ToolDefinition;
pub use digest::JsonDigest;
pub use edits::protected_files;
pub use expansion::{is_shell_pattern, may_match_name};
pub use explain::{Evaluation, RuleEvaluation, TouchedTarget, evaluate_call};
pub use jaato_types::Glob;
pub use layer::RuleLayer;
pub use limits::{file_limits, file_limits_outside_calls, folder_of_pattern};
pub use mode::PolicyMode;
pub use pattern::{CallPattern, propose_patterns};
pub use resolved::{CallPaths, ResolvedCallPaths};
pub use rule::{RuleId, RuleOutcome};
pub use rule_files::{Rule, RuleFile, RuleRef, WrittenRule};
pub use rules::{
    AllowedTool, AnswerOrigin, DenyRuleHandling, Rules, SessionRule, changes_since_allowed,
};
pub use shell::CommandLine;
pub use shipped::{SHIPPED_RULES, SHIPPED_RULES_TEXT, shipped_rules};
