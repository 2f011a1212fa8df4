//! The sources of rules.

/// The source of a rule, from the highest precedence to the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleLayer {
    /// The file of this machine's administrator.
    Enterprise,
    /// The user's own file.
    User,
    /// The file of a trusted workspace.
    Workspace,
    /// Command-line options, and the user's configuration.
    CommandLine,
    /// The user's answers in this session.
    Session,
    /// The rules that jaato ships.
    Shipped,
    /// The built-in behaviour without any rule.
    BuiltIn,
}

impl RuleLayer {
    /// Returns the layer's name in events and records. Never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enterprise => "enterprise",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::CommandLine => "command_line",
            Self::Session => "session",
            Self::Shipped => "shipped",
            Self::BuiltIn => "built_in",
        }
    }
}
