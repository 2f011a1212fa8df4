//! The aspects of an environment report, by the names that a model gives.

use jaato_plugin_sdk::prelude::*;

/// Which part of the report is asked for.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aspect {
    Os,
    Shell,
    Arch,
    Cwd,
    Terminal,
    Context,
    Session,
    Datetime,
    Network,
    #[default]
    All,
}

impl Aspect {
    /// Whether it tells of where commands run.
    pub(crate) fn needs_place(self) -> bool {
        match self {
            Self::Os | Self::Shell | Self::Arch | Self::Cwd | Self::All => true,
            Self::Terminal | Self::Context | Self::Session | Self::Datetime | Self::Network => {
                false
            }
        }
    }

    /// Whether it can only be told with the host's facts of the session.
    pub(crate) fn needs_session(self) -> bool {
        match self {
            Self::Os | Self::Arch | Self::Datetime | Self::Network => false,
            Self::Shell | Self::Cwd | Self::Terminal => true,
            Self::Context | Self::Session | Self::All => true,
        }
    }
}

#[cfg(test)]
impl Aspect {
    /// Every aspect but `all`.
    pub(crate) const EACH: [Self; 9] = [
        Self::Os,
        Self::Shell,
        Self::Arch,
        Self::Cwd,
        Self::Terminal,
        Self::Context,
        Self::Session,
        Self::Datetime,
        Self::Network,
    ];
}
