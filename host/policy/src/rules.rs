//! The rules of a session: from the command line, the configuration, files, and the user's answers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jaato_types::permission_prompt::PermissionDecision;
use jaato_types::{PluginName, ToolName};
use serde::{Deserialize, Serialize};

use crate::coverage::{covers_whole_call, needs_trust};
use crate::facts::PolicyFacts;
use crate::{
    CallPattern, PluginSource, PolicyCall, PolicyMode, RuleConditions, RuleFile, RuleOutcome,
    ToolDefinition,
};

/// Rules as data. Created once for each session. [`Rules::remember_answer`] adds the user's
/// answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// `[tools] disabled`.
    pub disabled: BTreeSet<ToolName>,
    /// `--allow TOOL` and `--allow PLUGIN:TOOL`.
    pub allowed: BTreeSet<AllowedTool>,
    /// `--yes`: calls run without a prompt.
    pub allow_all: bool,
    /// Files with rules, in order of precedence.
    pub files: Vec<RuleFile>,
    /// Whether deny rules in files count.
    pub deny_rules: DenyRuleHandling,
    /// The approval mode.
    pub mode: PolicyMode,
    session: Vec<SessionRule>,
}

/// Whether deny rules in files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DenyRuleHandling {
    /// They count.
    #[default]
    Hold,
    /// `--ignore-deny-rules` disables them.
    Ignored,
}

/// The minimum number of letters before the `*` of an allowed tool.
const BEGINNING_BYTES_MIN: usize = 3;

/// A tool that the user allows at the start, with any arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedTool {
    /// The plugin. Without one, the tool must be a shipped one.
    pub plugin: Option<PluginName>,
    /// The tool. A `*` at the end, after three letters or more, matches any rest.
    pub tool: ToolName,
}

impl AllowedTool {
    /// Parses `TOOL` or `PLUGIN:TOOL`, each with an optional `*` at its end.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((plugin, tool)) => Self { plugin: Some(plugin.into()), tool: tool.into() },
            None => Self { plugin: None, tool: text.into() },
        }
    }

    /// Returns true if it allows a tool. The name alone allows only tools that jaato ships or
    /// passes on, because another plugin could take the name.
    pub fn allows_tool(&self, tool: &ToolName, plugin: &PluginName, source: PluginSource) -> bool {
        let is_this_plugin = match (&self.plugin, source) {
            (Some(named), _) => named == plugin,
            // The name of a tool that is passed on contains the server's.
            (None, PluginSource::Shipped | PluginSource::Relayed) => true,
            (None, PluginSource::Elsewhere) => false,
        };
        is_this_plugin && self.names_tool(tool.as_str())
    }

    /// Returns true if it names a tool, of any plugin.
    pub fn names_tool(&self, tool: &str) -> bool {
        match self.tool.as_str().strip_suffix('*') {
            // A shorter beginning would allow more than the user probably means.
            Some(beginning) if beginning.len() >= BEGINNING_BYTES_MIN => {
                tool.starts_with(beginning)
            }
            Some(_) | None => self.tool.as_str() == tool,
        }
    }
}

/// A user's answer that applies to later calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRule {
    tool: ToolName,
    /// A tool's name can move to another plugin, but an answer does not.
    plugin: PluginName,
    /// The definition of another program's tool when the user answered.
    definition: Option<ToolDefinition>,
    decision: PermissionDecision,
    pattern: CallPattern,
    place: AnswerOrigin,
}

/// The place in which a user answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerOrigin {
    /// The workspace's root. `None` if the call does not run on this machine.
    pub root: Option<PathBuf>,
    /// Whether a kept answer needs the workspace's trust.
    pub waits_for_trust: bool,
}

impl AnswerOrigin {
    fn from_call(call: &PolicyCall<'_>) -> Self {
        Self {
            root: call.root.filter(|_| call.directory.is_some()).map(Path::to_owned),
            waits_for_trust: needs_trust(&PolicyFacts::from_call(call)),
        }
    }
}

impl SessionRule {
    /// Creates the rule of an answer to this call, for later calls that the pattern covers.
    pub fn new(call: &PolicyCall<'_>, decision: PermissionDecision, pattern: CallPattern) -> Self {
        let (tool, plugin) = (call.tool.clone(), call.plugin.clone());
        let (definition, place) = (call.definition, AnswerOrigin::from_call(call));
        Self { tool, plugin, definition, decision, pattern, place }
    }

    /// Returns the user's decision, with how long it holds.
    pub fn decision(&self) -> PermissionDecision {
        self.decision
    }

    /// Returns the tool of the calls.
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Returns the tool's plugin.
    pub fn plugin(&self) -> &PluginName {
        &self.plugin
    }

    /// Returns the definition that the tool must have for the answer to allow calls. A denial holds
    /// even if the tool changes.
    pub fn definition(&self) -> Option<ToolDefinition> {
        self.definition.filter(|_| self.decision.can_run())
    }

    /// Returns which of the tool's calls it covers.
    pub fn pattern(&self) -> &CallPattern {
        &self.pattern
    }

    /// Returns the same rule with another decision.
    #[must_use]
    pub fn with_decision(self, decision: PermissionDecision) -> Self {
        Self { decision, ..self }
    }

    fn covers_call(&self, facts: &PolicyFacts<'_>) -> bool {
        self.is_for_tool(facts.call) && self.pattern.covers_call(facts)
    }

    /// Returns true if it allows a call, whose tool must have the same definition as when the user
    /// answered.
    fn allows_call(&self, facts: &PolicyFacts<'_>) -> bool {
        self.decision.can_run()
            && self.definition == facts.call.definition
            && self.covers_call(facts)
    }

    /// Returns the place in which the user answered.
    pub fn answer_origin(&self) -> &AnswerOrigin {
        &self.place
    }

    fn is_for_tool(&self, call: &PolicyCall<'_>) -> bool {
        self.tool == *call.tool && self.plugin == *call.plugin
    }

    /// Returns true if it covers exactly one call.
    fn is_exact_call(&self) -> bool {
        matches!(self.pattern, CallPattern::Exact { .. })
    }
}

impl Rules {
    /// Creates rules of files only, in order of precedence.
    pub fn from_files(files: Vec<RuleFile>) -> Self {
        Self { files, ..Self::default() }
    }

    /// Adds an answer. The latest answer about the same calls counts. An answer for a single call
    /// is not kept.
    pub fn remember_answer(&mut self, rule: SessionRule) {
        if rule.decision.is_for_one_call() {
            return;
        }
        self.session.retain(|known| {
            (&known.tool, &known.plugin, &known.pattern)
                != (&rule.tool, &rule.plugin, &rule.pattern)
        });
        self.session.push(rule);
    }

    /// Forgets the answers that held for the turn.
    pub fn forget_turn_answers(&mut self) {
        self.session.retain(|rule| rule.decision.duration_name() != "turn");
    }

    /// Lists the current answers, oldest first.
    pub fn answers(&self) -> &[SessionRule] {
        &self.session
    }

    /// Lists the answers that hold until the session ends, oldest first. Those that hold longer are
    /// in files.
    pub fn answers_of_session(&self) -> impl Iterator<Item = &SessionRule> {
        self.session.iter().filter(|rule| rule.decision.duration_name() == "session")
    }

    /// Removes an answer, by its index in [`Rules::answers`].
    pub fn remove_answer(&mut self, index: usize) -> Option<SessionRule> {
        (index < self.session.len()).then(|| self.session.remove(index))
    }

    /// Forgets every answer of the session.
    pub fn forget_answers(&mut self) {
        self.session.clear();
    }

    pub(crate) fn is_allowed_by_option(&self, call: &PolicyCall<'_>) -> bool {
        self.allowed.iter().any(|allowed| allowed.allows_tool(call.tool, call.plugin, call.source))
    }

    /// Returns true if the user has allowed calls like this one.
    pub(crate) fn is_granted_call(&self, facts: &PolicyFacts<'_>) -> bool {
        self.session.iter().any(|rule| rule.allows_call(facts))
    }

    /// Lists the command patterns that the user has allowed for calls to this tool.
    pub(crate) fn granted_patterns(
        &self,
        call: &PolicyCall<'_>,
    ) -> impl Iterator<Item = &CallPattern> {
        let granted =
            self.session.iter().filter(|rule| rule.decision.can_run() && rule.is_for_tool(call));
        granted.map(|rule| &rule.pattern)
    }

    /// Returns true if the user has denied calls like this one.
    pub(crate) fn is_refused_call(&self, facts: &PolicyFacts<'_>) -> bool {
        self.session.iter().any(|rule| !rule.decision.can_run() && rule.covers_call(facts))
    }

    /// Returns true if the user allowed exactly this call, and therefore saw all of it.
    pub(crate) fn is_allowed_exactly(&self, facts: &PolicyFacts<'_>) -> bool {
        self.session.iter().any(|rule| rule.is_exact_call() && rule.allows_call(facts))
    }
}

/// Names the parts of another program's tool that changed since the user allowed such a call, so
/// that the answer no longer holds. Empty if no answer allows the call.
pub fn changes_since_allowed(rules: &Rules, call: &PolicyCall<'_>) -> Vec<&'static str> {
    let Some(now) = call.definition else { return Vec::new() };
    let facts = PolicyFacts::from_call(call);
    let answers =
        rules.session.iter().filter(|rule| rule.decision.can_run() && rule.covers_call(&facts));
    let kept = rules.files.iter().flat_map(|file| &file.rules).filter_map(|rule| {
        let before = rule.when.definition.filter(|_| rule.outcome == RuleOutcome::Allow)?;
        let when = RuleConditions { definition: Some(now), ..rule.when.clone() };
        covers_whole_call(&when, &facts).then_some(before)
    });
    let before = kept.chain(answers.filter_map(|rule| rule.definition)).last();
    before.map(|before| before.changed_parts(&now)).unwrap_or_default()
}
