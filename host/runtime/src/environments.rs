//! What embedders and people reach of execution environments.

use jaato_environments::{EnvironmentListed, SharedEnvironment};
use jaato_session::Cancel;
use jaato_types::execution::EnvironmentFacts;
use jaato_types::process::{OutputStream, ProcessExit, Spawn};
use jaato_types::{Error, SessionId};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::runtime::Runtime;

impl Runtime {
    /// Lists the execution environments that can be used, by name.
    pub fn environments(&self) -> Vec<EnvironmentListed> {
        self.host().environments.list()
    }

    /// Reads options of an environment as a command line gives them, each a key and a text: by what
    /// the plugin says of its settings.
    ///
    /// # Errors
    /// `configuration` when no plugin offers the environment, for a setting that it has not, and
    /// for one that is given twice.
    pub fn environment_options(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<Map<String, Value>, Error> {
        self.host().environments.options(name, given)
    }

    /// Makes an environment that several sessions may share. Nothing is set up yet. The options win
    /// over its plugin's configuration.
    ///
    /// # Errors
    /// When no plugin offers it, or it has no such option.
    pub fn environment(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<SharedEnvironment, Error> {
        self.host().environments.shared(name, options)
    }

    /// Runs a program in a session's environment, with nobody's leave but the caller's; `take` is
    /// given what it prints, `input` gives what it reads (none: nothing; an empty piece: the end).
    ///
    /// # Errors
    /// What keeps it from being run; `cancelled`.
    pub async fn execute(
        &self,
        session: &SessionId,
        spawn: &Spawn,
        input: Option<mpsc::Receiver<Vec<u8>>>,
        cancel: &Cancel,
        take: impl FnMut(OutputStream, &[u8]),
    ) -> Result<ProcessExit, Error> {
        self.host().environments.execute(session, spawn, input, cancel, take).await
    }

    /// Tells what a session's environment is; sets it up. `notice` is told what goes on meanwhile.
    ///
    /// # Errors
    /// What keeps it from being ready.
    pub async fn environment_of(
        &self,
        session: &SessionId,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<EnvironmentFacts, Error> {
        self.host().environments.facts(session, notice).await
    }
}
