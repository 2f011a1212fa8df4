//! The answer: what to do with a call, the rule that says so, and how to explain it.

use std::fmt;

use crate::{Call, PluginSource};

/// What to do with a call, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub outcome: Outcome,
    /// The rule that decided.
    pub rule: RuleId,
}

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It may run.
    Allow,
    /// A person must say so; where nobody can be asked, it must not run.
    Ask,
    /// It must not run.
    Deny,
}

/// Every rule there is, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleId {
    /// The configuration disables the tool.
    Disabled,
    /// A person said "never" in this session.
    SessionNever,
    /// A person typed the call.
    OwnCall,
    /// `--allow` names the tool.
    AllowOption,
    /// `--yes` was given.
    YesOption,
    /// A person said "always" in this session.
    SessionAlways,
    /// The tool is read-only and of a shipped plugin.
    ReadOnly,
    /// The tool asks to be run without a question and is of a shipped plugin.
    AutoApproval,
    /// The tool says that it needs no question, but its plugin is not a shipped one.
    UnprovenPromise,
    /// No rule speaks for the call, and silence is not consent.
    Silence,
}

impl Decision {
    /// Says in one line what was decided and by which rule.
    pub fn explain(&self, call: &Call<'_>) -> String {
        let (tool, plugin) = (call.tool, call.plugin);
        match self.rule {
            RuleId::Disabled => format!("tool `{tool}` is disabled by `[tools] disabled`"),
            RuleId::SessionNever => {
                format!("the person said that tool `{tool}` must not run in this session")
            }
            RuleId::OwnCall => "the person typed this call".to_owned(),
            RuleId::AllowOption => format!("`--allow {}` was given", allow_word(call)),
            RuleId::YesOption => "`--yes` was given".to_owned(),
            RuleId::SessionAlways => format!("the person allowed tool `{tool}` for this session"),
            RuleId::ReadOnly => {
                format!(
                    "tool `{tool}` changes nothing, and plugin `{plugin}` is shipped with jaato"
                )
            }
            RuleId::AutoApproval => format!(
                "tool `{tool}` asks for no permission, and plugin `{plugin}` is shipped with jaato"
            ),
            RuleId::UnprovenPromise => format!(
                "tool `{tool}` needs a permission: it says that it needs none, but plugin \
                 `{plugin}` is not shipped with jaato"
            ),
            RuleId::Silence => format!("tool `{tool}` needs a permission"),
        }
    }

    /// What a person can do about a refusal; nothing for what is allowed.
    pub fn hint(&self, call: &Call<'_>) -> Option<String> {
        match (self.outcome, self.rule) {
            (Outcome::Allow, _) | (_, RuleId::SessionNever) => None,
            (_, RuleId::Disabled) => Some(format!(
                "take `{}` out of `[tools] disabled`; `jaato config show` says where it stands",
                call.tool
            )),
            (Outcome::Ask | Outcome::Deny, _) => {
                let word = allow_word(call);
                Some(format!("allow it with `--allow {word}`, or everything with `--yes`"))
            }
        }
    }
}

/// Writes a tool as `--allow` takes it.
fn allow_word(call: &Call<'_>) -> String {
    match call.source {
        PluginSource::Shipped => call.tool.to_string(),
        PluginSource::Elsewhere => format!("{}:{}", call.plugin, call.tool),
    }
}

impl RuleId {
    /// The rule's name in events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "tools.disabled",
            Self::SessionNever => "session.never",
            Self::OwnCall => "own_call",
            Self::AllowOption => "option.allow",
            Self::YesOption => "option.yes",
            Self::SessionAlways => "session.always",
            Self::ReadOnly => "shipped.read_only",
            Self::AutoApproval => "shipped.auto_approval",
            Self::UnprovenPromise => "ask.unproven_promise",
            Self::Silence => "ask.silence",
        }
    }

    /// What the rule says to do.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Disabled | Self::SessionNever => Outcome::Deny,
            Self::OwnCall
            | Self::AllowOption
            | Self::YesOption
            | Self::SessionAlways
            | Self::ReadOnly
            | Self::AutoApproval => Outcome::Allow,
            Self::UnprovenPromise | Self::Silence => Outcome::Ask,
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
