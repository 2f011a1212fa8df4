//! Every kind of rule, and its outcome.

use std::fmt;

use crate::RuleLayer;

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleOutcome {
    /// It may run.
    Allow,
    /// The user decides. If no user can be asked, it must not run.
    Ask,
    /// It must not run.
    Deny,
}

/// Every kind of rule, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleId {
    /// The configuration disables the tool.
    Disabled,
    /// A file with rules cannot be parsed, so it may contain a rule that denies the call.
    FileBroken,
    /// A rule in a file denies the call.
    FileDeny,
    /// The user denied such calls for this session.
    SessionNever,
    /// The session's mode denies everything except reading.
    ModeReadOnly,
    /// The session's mode allows only reading and planning.
    ModePlan,
    /// The user typed the call.
    OwnCall,
    /// A rule that denies may match, because the call is unclear.
    FileUnclear,
    /// The call would end the session's mode `plan`.
    ModeStartPlan,
    /// `--allow` names the tool.
    AllowOption,
    /// `--yes` was given.
    YesOption,
    /// The user allowed such calls for this session.
    SessionAlways,
    /// A rule in a file asks about the call.
    FileAsk,
    /// Rules in files allow the call.
    FileAllow,
    /// The session's mode allows changes of files inside the workspace.
    ModeAcceptEdits,
    /// The call reads from the web without a check that usually protects it.
    UncheckedRead,
    /// The call reads from a host for which the user has not been asked in this session.
    NewHost,
    /// The tool is read-only and of a shipped plugin.
    ReadOnly,
    /// The tool asks to run without a prompt and is of a shipped plugin.
    AutoApproval,
    /// A file denies calls that no rule matches.
    FileDefaultDeny,
    /// A file asks about calls that no rule matches.
    FileDefaultAsk,
    /// A file allows calls that no rule matches.
    FileDefaultAllow,
    /// The tool claims to need no prompt, but its plugin is not a shipped one.
    UnprovenPromise,
    /// No rule allows the call, and silence is not consent.
    Silence,
}

impl RuleOutcome {
    /// Returns the outcome's name in files, events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Returns a number that orders outcomes from the strictest.
    pub(crate) fn permissiveness(self) -> u8 {
        match self {
            Self::Deny => 0,
            Self::Ask => 1,
            Self::Allow => 2,
        }
    }
}

impl RuleId {
    /// Returns the rule's name in events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disabled => "tools.disabled",
            Self::FileBroken => "file.broken",
            Self::FileDeny => "file.deny",
            Self::SessionNever => "session.never",
            Self::ModeReadOnly => "mode.read_only",
            Self::ModePlan => "mode.plan",
            Self::OwnCall => "own_call",
            Self::FileUnclear => "file.unclear",
            Self::ModeStartPlan => "mode.start_plan",
            Self::AllowOption => "option.allow",
            Self::YesOption => "option.yes",
            Self::SessionAlways => "session.always",
            Self::FileAsk => "file.ask",
            Self::FileAllow => "file.allow",
            Self::ModeAcceptEdits => "mode.accept_edits",
            Self::UncheckedRead => "ask.unchecked_read",
            Self::NewHost => "ask.new_host",
            Self::ReadOnly => "shipped.read_only",
            Self::AutoApproval => "shipped.auto_approval",
            Self::FileDefaultDeny => "file.default_deny",
            Self::FileDefaultAsk => "file.default_ask",
            Self::FileDefaultAllow => "file.default_allow",
            Self::UnprovenPromise => "ask.unproven_promise",
            Self::Silence => "ask.silence",
        }
    }

    /// Returns the rule's outcome.
    pub fn outcome(self) -> RuleOutcome {
        match self {
            Self::Disabled
            | Self::FileBroken
            | Self::FileDeny
            | Self::SessionNever
            | Self::ModeReadOnly
            | Self::ModePlan
            | Self::FileDefaultDeny => RuleOutcome::Deny,
            Self::OwnCall
            | Self::AllowOption
            | Self::YesOption
            | Self::SessionAlways
            | Self::FileAllow
            | Self::ModeAcceptEdits
            | Self::ReadOnly
            | Self::AutoApproval
            | Self::FileDefaultAllow => RuleOutcome::Allow,
            Self::FileUnclear
            | Self::ModeStartPlan
            | Self::FileAsk
            | Self::UncheckedRead
            | Self::NewHost
            | Self::FileDefaultAsk
            | Self::UnprovenPromise
            | Self::Silence => RuleOutcome::Ask,
        }
    }

    /// Returns the source of a rule that is not from a file.
    pub(crate) fn layer(self) -> RuleLayer {
        match self {
            Self::Disabled | Self::AllowOption | Self::YesOption => RuleLayer::CommandLine,
            Self::SessionNever
            | Self::SessionAlways
            | Self::ModeReadOnly
            | Self::ModePlan
            | Self::ModeStartPlan
            | Self::ModeAcceptEdits => RuleLayer::Session,
            Self::FileBroken
            | Self::FileDeny
            | Self::FileUnclear
            | Self::FileAsk
            | Self::FileAllow
            | Self::FileDefaultDeny
            | Self::FileDefaultAsk
            | Self::FileDefaultAllow
            | Self::OwnCall
            | Self::UncheckedRead
            | Self::NewHost
            | Self::ReadOnly
            | Self::AutoApproval
            | Self::UnprovenPromise
            | Self::Silence => RuleLayer::BuiltIn,
        }
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
