//! The answer: what to do with a call, the rule that says so, and how to explain it.

use std::fmt;

use crate::{Call, Layer, PluginSource, RuleRef, Written};

/// What to do with a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub outcome: Outcome,
    /// The rule that decided.
    pub rule: RuleRef,
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

/// Every kind of rule, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleId {
    /// The configuration disables the tool.
    Disabled,
    /// A file with rules cannot be understood: nobody knows what it would forbid.
    FileBroken,
    /// A rule of a file forbids the call.
    FileDeny,
    /// A person said "never" in this session.
    SessionNever,
    /// The session's mode forbids what changes anything.
    ModeReadOnly,
    /// A person typed the call.
    OwnCall,
    /// Nobody can tell whether a rule that forbids matches: the command line is not clear.
    FileUnclear,
    /// `--allow` names the tool.
    AllowOption,
    /// `--yes` was given.
    YesOption,
    /// A person said "always" in this session.
    SessionAlways,
    /// A rule of a file wants the call to be asked.
    FileAsk,
    /// Rules of files allow the call.
    FileAllow,
    /// The session's mode allows changes of files inside the workspace.
    ModeAcceptEdits,
    /// The tool is read-only and of a shipped plugin.
    ReadOnly,
    /// The tool asks to be run without a question and is of a shipped plugin.
    AutoApproval,
    /// A file denies what no rule speaks of.
    FileDefaultDeny,
    /// A file asks about what no rule speaks of.
    FileDefaultAsk,
    /// A file allows what no rule speaks of.
    FileDefaultAllow,
    /// The tool says that it needs no question, but its plugin is not a shipped one.
    UnprovenPromise,
    /// No rule speaks for the call, and silence is not consent.
    Silence,
}

impl Outcome {
    /// The outcome's name in files, events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Orders outcomes from the strictest.
    pub(crate) fn looseness(self) -> u8 {
        match self {
            Self::Deny => 0,
            Self::Ask => 1,
            Self::Allow => 2,
        }
    }
}

impl Decision {
    /// The decision that a rule makes.
    pub(crate) fn by(rule: RuleRef) -> Self {
        Self { outcome: rule.id.outcome(), rule }
    }

    /// Says in one line what was decided and by which rule.
    pub fn explain(&self, call: &Call<'_>) -> String {
        let (tool, plugin) = (call.tool, call.plugin);
        match self.rule.id {
            RuleId::Disabled => format!("tool `{tool}` is disabled by `[tools] disabled`"),
            RuleId::SessionNever => {
                format!("the person said that tool `{tool}` must not run in this session")
            }
            RuleId::ModeReadOnly => format!(
                "this session only reads (mode `read-only`), and tool `{tool}` may change something"
            ),
            RuleId::OwnCall => "the person typed this call".to_owned(),
            RuleId::AllowOption => format!("`--allow {}` was given", allow_word(call)),
            RuleId::YesOption => "`--yes` was given".to_owned(),
            RuleId::SessionAlways => format!("the person allowed tool `{tool}` for this session"),
            RuleId::ModeAcceptEdits => {
                "this session may change files in the workspace (mode `accept-edits`)".to_owned()
            }
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
            RuleId::FileBroken
            | RuleId::FileDeny
            | RuleId::FileUnclear
            | RuleId::FileAsk
            | RuleId::FileAllow
            | RuleId::FileDefaultDeny
            | RuleId::FileDefaultAsk
            | RuleId::FileDefaultAllow => self
                .rule
                .written
                .as_ref()
                .map_or_else(String::new, |written| explain_written(self.rule.id, written)),
        }
    }

    /// What a person can do about a refusal; nothing for what is allowed.
    pub fn hint(&self, call: &Call<'_>) -> Option<String> {
        match (self.outcome, self.rule.id) {
            (Outcome::Allow, _) | (_, RuleId::SessionNever) => None,
            (_, RuleId::Disabled) => Some(format!(
                "take `{}` out of `[tools] disabled`; `jaato config show` says where it stands",
                call.tool
            )),
            (_, RuleId::ModeReadOnly) => Some("choose another mode for the session".to_owned()),
            (_, RuleId::FileBroken) => Some(
                "put the file right: `jaato permission list` reads it and says what is wrong"
                    .to_owned(),
            ),
            (Outcome::Deny, _) => Some(
                "`jaato permission explain` shows every rule that was tried; respect the rule: do \
                 not try the same in another way"
                    .to_owned(),
            ),
            (Outcome::Ask, RuleId::FileUnclear) => Some(
                "write the command plainly: one simple command without variables and substitutions"
                    .to_owned(),
            ),
            (Outcome::Ask, _) if self.rule.layer == Layer::Enterprise => None,
            (Outcome::Ask, _) => {
                let word = allow_word(call);
                Some(format!("allow it with `--allow {word}`, or everything with `--yes`"))
            }
        }
    }
}

/// Says which rule of a file decided: the rule, where it stands, what it is about.
fn explain_written(id: RuleId, written: &Written) -> String {
    let Written { rule, file, line, why, about } = written;
    let about = about.as_ref().map(|about| format!(" for {about}")).unwrap_or_default();
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let perhaps = match id {
        RuleId::FileUnclear => "nobody can tell whether this rule matches: ",
        _ => "",
    };
    format!("{perhaps}`{rule}` at `{file}:{line}`{about}{why}")
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
            Self::FileBroken => "file.broken",
            Self::FileDeny => "file.deny",
            Self::SessionNever => "session.never",
            Self::ModeReadOnly => "mode.read_only",
            Self::OwnCall => "own_call",
            Self::FileUnclear => "file.unclear",
            Self::AllowOption => "option.allow",
            Self::YesOption => "option.yes",
            Self::SessionAlways => "session.always",
            Self::FileAsk => "file.ask",
            Self::FileAllow => "file.allow",
            Self::ModeAcceptEdits => "mode.accept_edits",
            Self::ReadOnly => "shipped.read_only",
            Self::AutoApproval => "shipped.auto_approval",
            Self::FileDefaultDeny => "file.default_deny",
            Self::FileDefaultAsk => "file.default_ask",
            Self::FileDefaultAllow => "file.default_allow",
            Self::UnprovenPromise => "ask.unproven_promise",
            Self::Silence => "ask.silence",
        }
    }

    /// What the rule says to do.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Disabled
            | Self::FileBroken
            | Self::FileDeny
            | Self::SessionNever
            | Self::ModeReadOnly
            | Self::FileDefaultDeny => Outcome::Deny,
            Self::OwnCall
            | Self::AllowOption
            | Self::YesOption
            | Self::SessionAlways
            | Self::FileAllow
            | Self::ModeAcceptEdits
            | Self::ReadOnly
            | Self::AutoApproval
            | Self::FileDefaultAllow => Outcome::Allow,
            Self::FileUnclear
            | Self::FileAsk
            | Self::FileDefaultAsk
            | Self::UnprovenPromise
            | Self::Silence => Outcome::Ask,
        }
    }

    /// Who says so, for a rule that stands in no file.
    pub(crate) fn layer(self) -> Layer {
        match self {
            Self::Disabled | Self::AllowOption | Self::YesOption => Layer::CommandLine,
            Self::SessionNever
            | Self::SessionAlways
            | Self::ModeReadOnly
            | Self::ModeAcceptEdits => Layer::Session,
            Self::FileBroken
            | Self::FileDeny
            | Self::FileUnclear
            | Self::FileAsk
            | Self::FileAllow
            | Self::FileDefaultDeny
            | Self::FileDefaultAsk
            | Self::FileDefaultAllow
            | Self::OwnCall
            | Self::ReadOnly
            | Self::AutoApproval
            | Self::UnprovenPromise
            | Self::Silence => Layer::BuiltIn,
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
