//! The aspects of an environment report, with the names that a model uses.

use jaato_plugin_sdk::prelude::*;

/// Which part of the report is asked for.
#[tool_type]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportAspect {
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

impl ReportAspect {
    /// Returns true if the aspect describes the place where commands run.
    pub(crate) fn needs_place(self) -> bool {
        match self {
            Self::Os | Self::Shell | Self::Arch | Self::Cwd | Self::All => true,
            Self::Terminal | Self::Context | Self::Session | Self::Datetime | Self::Network => {
                false
            }
        }
    }

    /// Returns true if the aspect needs the host's facts about the session.
    pub(crate) fn needs_session(self) -> bool {
        match self {
            Self::Os | Self::Arch | Self::Datetime | Self::Network => false,
            Self::Shell | Self::Cwd | Self::Terminal => true,
            Self::Context | Self::Session | Self::All => true,
        }
    }
}

#[cfg(test)]
impl ReportAspect {
    /// Every aspect except `all`.
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
