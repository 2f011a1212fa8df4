//! Rules in files, each with its place.

use std::sync::Arc;

use crate::{RuleConditions, RuleId, RuleLayer, RuleOutcome};

/// One file with rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// The source of the file.
    pub layer: RuleLayer,
    /// The path, as shown to the user.
    pub path: Arc<str>,
    /// The decision about calls that no rule matches, and its line.
    pub default: Option<(RuleOutcome, usize)>,
    /// Its rules, in the order of the file.
    pub rules: Vec<Rule>,
    /// The line and the error if the file is broken. Every call is then denied.
    pub broken: Option<(usize, String)>,
}

/// One rule of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its outcome.
    pub outcome: RuleOutcome,
    /// When it matches.
    pub when: RuleConditions,
    /// The line of the file at which it begins, from 1.
    pub line: usize,
    /// The user's reason, shown with a refusal.
    pub why: Option<String>,
}

/// The rule that made a decision: its kind, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// The kind.
    pub id: RuleId,
    /// The source.
    pub layer: RuleLayer,
    /// The rule in a file. `None` for options, answers and built-in rules.
    pub written: Option<WrittenRule>,
}

/// A rule in a file, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRule {
    /// The rule in one line: `deny command "rm"`.
    pub rule: String,
    /// The file.
    pub file: Arc<str>,
    /// The line of the file.
    pub line: usize,
    /// The user's reason.
    pub why: Option<String>,
    /// The part of the call that it matched: a command, a path, a host.
    pub about: Option<String>,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.outcome.name(), self.when)
    }
}

impl RuleRef {
    /// Creates a reference to a rule that is not from a file.
    pub(crate) fn without_file(id: RuleId) -> Self {
        Self { id, layer: id.layer(), written: None }
    }

    /// Returns the rule's name in events and records. Never changes.
    pub fn name(&self) -> &'static str {
        self.id.name()
    }

    /// Returns its place, as `FILE:LINE`.
    pub fn file_and_line(&self) -> Option<String> {
        self.written.as_ref().map(|written| format!("{}:{}", written.file, written.line))
    }
}

impl std::fmt::Display for RuleRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
