//! Execution environments for embedders and users.

use jaato_environments::{EnvironmentListing, SharedEnvironment};
use jaato_session::Cancel;
use jaato_types::execution::EnvironmentFacts;
use jaato_types::process::{OutputStream, ProcessExit, Spawn};
use jaato_types::{Error, SessionId};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::runtime::Runtime;

impl Runtime {
    /// Lists the available execution environments by name.
    pub fn list_environments(&self) -> Vec<EnvironmentListing> {
        self.host().environments.list()
    }

    /// Parses environment options from the command line, each a key and a text, according to the
    /// plugin's settings.
    ///
    /// # Errors
    /// `configuration` if no plugin offers the environment, or a setting is unknown or given twice.
    pub fn environment_options(
        &self,
        name: &str,
        given: &[(String, String)],
    ) -> Result<Map<String, Value>, Error> {
        self.host().environments.parse_options(name, given)
    }

    /// Creates an environment that several sessions may share, without setting it up yet. The
    /// options override its plugin's configuration.
    ///
    /// # Errors
    /// If no plugin offers it, or it has no such option.
    pub fn create_environment(
        &self,
        name: &str,
        options: Map<String, Value>,
    ) -> Result<SharedEnvironment, Error> {
        self.host().environments.create_shared(name, options)
    }

    /// Runs a program in a session's environment without a permission check. `take` receives its
    /// output and `input` provides its input: `None` means no input, an empty piece ends it.
    ///
    /// # Errors
    /// If the program cannot run or was cancelled.
    pub async fn execute(
        &self,
        session: &SessionId,
        spawn: &Spawn,
        input: Option<mpsc::Receiver<Vec<u8>>>,
        cancel: &Cancel,
        take: impl FnMut(OutputStream, &[u8]),
    ) -> Result<ProcessExit, Error> {
        self.host().environments.run_command(session, spawn, input, cancel, take).await
    }

    /// Sets up a session's environment and returns its facts. `notice` receives progress messages.
    ///
    /// # Errors
    /// If the environment is not ready.
    pub async fn environment_facts(
        &self,
        session: &SessionId,
        notice: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<EnvironmentFacts, Error> {
        self.host().environments.environment_facts(session, notice).await
    }

    /// Enters a shared environment without a session, under an id that takes the place of one.
    ///
    /// # Errors
    /// If no plugin offers it.
    pub fn enter_environment(
        &self,
        id: &SessionId,
        environment: &SharedEnvironment,
    ) -> Result<(), Error> {
        self.host().environments.enter_environment(id, Some(environment), Map::new(), None)
    }

    /// Leaves an environment. The last one who leaves takes it down.
    pub async fn leave_environment(&self, id: &SessionId) {
        self.host().environments.close_resources(id).await;
        self.host().environments.leave_environment(id).await;
    }

    /// Sends a request `files.*` to the environment of a session, or of an id that takes the place
    /// of one, without a permission check. Returns the answer's frame.
    ///
    /// # Errors
    /// The environment's error, or `unknown_operation` for an operation that answers with a stream.
    pub async fn request_files(
        &self,
        id: &SessionId,
        operation: &str,
        frame: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        self.host().environments.send_request(id, operation, frame).await
    }
}
