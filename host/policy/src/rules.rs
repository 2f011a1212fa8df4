//! The rules that hold in a session: what the command line and the configuration say, and what a
//! person answered so far.

use std::collections::BTreeSet;

use jaato_types::{PluginName, ToolName};

use crate::{AlwaysScope, ArgumentsDigest, Call, PluginSource};

/// Rules as data. Made once a session; [`Rules::remember`] adds a person's answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// `[tools] disabled`.
    pub disabled: BTreeSet<ToolName>,
    /// `--allow TOOL` and `--allow PLUGIN:TOOL`.
    pub allowed: BTreeSet<Allowed>,
    /// `--yes`: nothing is asked.
    pub allow_all: bool,
    session: Vec<SessionRule>,
}

/// A tool that a person allows at the start, whatever its arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allowed {
    /// Whose tool; without a plugin only a shipped one's.
    pub plugin: Option<PluginName>,
    /// The tool.
    pub tool: ToolName,
}

impl Allowed {
    /// Reads `TOOL` or `PLUGIN:TOOL`.
    pub fn parse(text: &str) -> Self {
        match text.split_once(':') {
            Some((plugin, tool)) => Self { plugin: Some(plugin.into()), tool: tool.into() },
            None => Self { plugin: None, tool: text.into() },
        }
    }

    /// Tells whether it allows a tool. The name alone allows no stranger's tool: the person who
    /// typed it knows what jaato ships, and not who else took the name.
    pub fn covers(&self, tool: &ToolName, plugin: &PluginName, source: PluginSource) -> bool {
        let is_this_plugin = match (&self.plugin, source) {
            (Some(named), _) => named == plugin,
            (None, PluginSource::Shipped) => true,
            (None, PluginSource::Elsewhere) => false,
        };
        is_this_plugin && self.tool == *tool
    }
}

/// What a person says for the rest of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Calls like this one may run.
    Always,
    /// Calls of this tool must not run.
    Never,
}

/// A person's answer, as it holds for later calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRule {
    tool: ToolName,
    /// The name of a tool can go over to another plugin; an answer does not.
    plugin: PluginName,
    answer: Answer,
    /// Where it is for exactly these arguments.
    arguments: Option<ArgumentsDigest>,
}

impl SessionRule {
    /// What an answer to this call means for later ones: "always" as far as [`Call::always_scope`]
    /// says, "never" for the tool.
    pub fn of(call: &Call<'_>, answer: Answer) -> Self {
        let is_narrow = match answer {
            Answer::Always => call.always_scope() == AlwaysScope::ThisCall,
            Answer::Never => false,
        };
        Self {
            tool: call.tool.clone(),
            plugin: call.plugin.clone(),
            answer,
            arguments: is_narrow.then_some(call.arguments),
        }
    }

    fn covers(&self, call: &Call<'_>) -> bool {
        let is_same_tool = self.tool == *call.tool && self.plugin == *call.plugin;
        is_same_tool
            && match (self.arguments, self.answer) {
                (Some(arguments), _) => arguments == call.arguments,
                (None, Answer::Never) => true,
                // A tool that has become far-reaching since is not what was granted.
                (None, Answer::Always) => call.always_scope() == AlwaysScope::EveryCall,
            }
    }
}

impl Rules {
    /// Adds an answer. The latest one about the same calls counts.
    pub fn remember(&mut self, rule: SessionRule) {
        self.session.retain(|known| {
            (&known.tool, &known.plugin, known.arguments)
                != (&rule.tool, &rule.plugin, rule.arguments)
        });
        self.session.push(rule);
    }

    pub(crate) fn is_allowed(&self, call: &Call<'_>) -> bool {
        self.allowed.iter().any(|allowed| allowed.covers(call.tool, call.plugin, call.source))
    }

    pub(crate) fn is_answered(&self, call: &Call<'_>, answer: Answer) -> bool {
        self.session.iter().any(|rule| rule.answer == answer && rule.covers(call))
    }
}
