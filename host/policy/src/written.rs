//! Rules that people write in files, and where each one stands.

use std::sync::Arc;

use crate::{Conditions, Layer, Outcome, RuleId};

/// One file with rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// Whose file it is.
    pub layer: Layer,
    /// Where it is, as people see it.
    pub path: Arc<str>,
    /// What it says about calls that no rule matches, and the line that says so.
    pub default: Option<(Outcome, usize)>,
    /// Its rules, in the order of the file.
    pub rules: Vec<Rule>,
    /// What is wrong with it, and the line: every call is denied then.
    pub broken: Option<(usize, String)>,
}

/// One rule of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says to do.
    pub outcome: Outcome,
    /// When it matches.
    pub when: Conditions,
    /// The line of the file at which it begins, from 1.
    pub line: usize,
    /// What the person wrote about it, for whoever is refused.
    pub why: Option<String>,
}

/// The rule that made a decision: what kind it is, and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    /// The kind.
    pub id: RuleId,
    /// Who said so.
    pub layer: Layer,
    /// The rule of a file; `None` for options, answers and what is built in.
    pub written: Option<Written>,
}

/// A rule of a file, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The rule in one line: `deny command "rm"`.
    pub rule: String,
    /// The file.
    pub file: Arc<str>,
    /// The line of the file.
    pub line: usize,
    /// What the person wrote about it.
    pub why: Option<String>,
    /// What of the call it matched: the part of the command line, the path, the host.
    pub about: Option<String>,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.outcome.name(), self.when)
    }
}

impl RuleRef {
    /// Names a rule that stands in no file.
    pub(crate) fn unwritten(id: RuleId) -> Self {
        Self { id, layer: id.layer(), written: None }
    }

    /// The rule's name in events and records. Never changes.
    pub fn name(&self) -> &'static str {
        self.id.name()
    }

    /// Where it was written, as `FILE:LINE`.
    pub fn place(&self) -> Option<String> {
        self.written.as_ref().map(|written| format!("{}:{}", written.file, written.line))
    }
}

impl std::fmt::Display for RuleRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
