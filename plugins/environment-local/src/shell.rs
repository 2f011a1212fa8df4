//! Commands on this machine, run by the host.

use std::path::PathBuf;

use jaato_plugin_sdk::environment::Shell;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};

/// Runs commands.
pub struct LocalShell {
    home: Home,
    /// Where a relative folder begins.
    default_path: PathBuf,
}

impl LocalShell {
    /// Lets the instance, which outlives every call, run them.
    pub fn new(home: Home, default_path: PathBuf) -> Self {
        Self { home, default_path }
    }
}

impl Shell for LocalShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    async fn start(&self, _host: &Reporter, spawn: Spawn) -> Result<(Self::Program, Self::Events)> {
        let directory = match &spawn.directory {
            Some(directory) => self.default_path.join(directory),
            None => self.default_path.clone(),
        };
        let directory = Some(directory.to_string_lossy().into_owned());
        Ok(self.home.process(&Spawn { directory, ..spawn }).await?.split())
    }
}
