//! Who says what the rules say.

/// Who said something, from the one that binds most to the one that binds least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The file of whoever administers this machine.
    Enterprise,
    /// The person's own file.
    User,
    /// The file of a trusted workspace.
    Workspace,
    /// Options of the command line, and the person's configuration.
    CommandLine,
    /// What the person answered in this session.
    Session,
    /// The rules that jaato ships.
    Shipped,
    /// What holds where nobody says anything.
    BuiltIn,
}

impl Layer {
    /// The layer's name in events and records. Never changes.
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
