//! Runs commands on this machine through the host.

use std::path::PathBuf;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};
use jaato_plugin_sdk_environment::Shell;

/// Runs commands.
pub struct LocalShell {
    home: Home,
    /// The folder to which relative folders resolve.
    default_path: PathBuf,
}

impl LocalShell {
    /// Creates a shell whose commands the instance runs, because the instance outlives each call.
    pub fn new(home: Home, default_path: PathBuf) -> Self {
        Self { home, default_path }
    }

    /// Sets the folder in which a program runs.
    fn with_default_folder(&self, spawn: Spawn) -> Spawn {
        let directory = match &spawn.directory {
            Some(directory) => self.default_path.join(directory),
            None => self.default_path.clone(),
        };
        let directory = Some(directory.to_string_lossy().into_owned());
        Spawn { directory, ..spawn }
    }
}

impl Shell for LocalShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    async fn prepare(&self, _host: &Reporter, spawn: Spawn) -> Result<Option<Spawn>> {
        Ok(Some(self.with_default_folder(spawn)))
    }

    async fn start(&self, _host: &Reporter, spawn: Spawn) -> Result<(Self::Program, Self::Events)> {
        Ok(self.home.process(&self.with_default_folder(spawn)).await?.split())
    }
}
