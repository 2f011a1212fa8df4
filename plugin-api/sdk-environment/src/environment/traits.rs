//! The [`ExecutionEnvironment`] trait, which authors implement.

use std::future::{Future, ready};

use jaato_plugin_sdk::{Cx, State};
use jaato_types::execution::{EnvironmentFacts, EnvironmentSetup, EnvironmentSpec};
use jaato_types::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::files::Files;
use super::shell::Shell;
use super::terminals::Terminals;

/// An execution environment that is ready. Dropping it cleans up like [`teardown`], as far as that
/// is possible without waiting.
///
/// The host calls all methods on its plugin executor, so they must not block.
///
/// [`teardown`]: ExecutionEnvironment::teardown
pub trait ExecutionEnvironment: Sized + Send + Sync + 'static {
    /// The plugin's state type, as in `export_plugin!`.
    type State: State;
    /// Its files, or [`NoFiles`](crate::NoFiles).
    type Files: Files;
    /// The part that runs commands, or [`NoShell`](crate::NoShell).
    type Shell: Shell;
    /// The part that runs programs on terminals, or [`NoTerminals`](crate::NoTerminals).
    type Terminals: Terminals;

    /// Returns the environment's name and description. Runs without an instance.
    fn spec() -> EnvironmentSpec;

    /// Sets up the environment, once for each environment that the host needs. If this fails or the
    /// future is dropped, everything created so far is removed.
    ///
    /// # Errors
    /// If the setup fails. The error explains why and what to do about it.
    fn setup(
        cx: &Cx<Self::State>,
        setup: EnvironmentSetup,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Takes the environment down. Its streams and programs have ended by then.
    ///
    /// # Errors
    /// A description of the resources that remain.
    fn teardown(&self, _cx: &Cx<Self::State>) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Returns the facts of the environment.
    ///
    /// # Errors
    /// If the facts are unknown, for example because the environment is gone.
    fn facts(&self, cx: &Cx<Self::State>) -> impl Future<Output = Result<EnvironmentFacts>> + Send;

    /// Returns the files, if the environment has any.
    fn files(&self) -> Option<&Self::Files> {
        None
    }

    /// Returns the part that runs commands, if the environment has one.
    fn shell(&self) -> Option<&Self::Shell> {
        None
    }

    /// Returns the part that runs programs on terminals, if the environment has one.
    fn terminals(&self) -> Option<&Self::Terminals> {
        None
    }
}

/// Reads an environment's settings: its configuration, overridden by the options that the user
/// chose for this environment. The host has checked both against the plugin's schema.
///
/// # Errors
/// `configuration` for an unknown option or an invalid value.
pub fn settings<T: DeserializeOwned>(config: &Value, options: &Map<String, Value>) -> Result<T> {
    let mut all = config.as_object().cloned().unwrap_or_default();
    all.extend(options.clone());
    serde_json::from_value(Value::Object(all)).map_err(|error| {
        let text = format!("the settings of the execution environment are invalid: {error}");
        Error::new(ErrorKind::Configuration, text)
    })
}
