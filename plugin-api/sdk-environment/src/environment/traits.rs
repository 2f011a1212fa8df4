//! Execution environments: what authors implement.

use std::future::{Future, ready};

use jaato_plugin_sdk::{Cx, State};
use jaato_types::execution::{EnvironmentFacts, EnvironmentSetup, EnvironmentSpec};
use jaato_types::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::files::Files;
use super::shell::Shell;
use super::terminals::Terminals;

/// An execution environment that is ready. Dropping it leaves nothing behind that [`teardown`]
/// would have taken away, as far as that can be done without waiting.
///
/// All methods are called on the host's plugin executor and must not block.
///
/// [`teardown`]: ExecutionEnvironment::teardown
pub trait ExecutionEnvironment: Sized + Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;
    /// Its files; [`NoFiles`](crate::NoFiles) for none.
    type Files: Files;
    /// What runs commands; [`NoShell`](crate::NoShell) for nothing.
    type Shell: Shell;
    /// What runs programs on terminals; [`NoTerminals`](crate::NoTerminals) for nothing.
    type Terminals: Terminals;

    /// Names it. Runs without an instance.
    fn spec() -> EnvironmentSpec;

    /// Makes it ready, once for each environment that the host wants. What was made by then goes
    /// away when this fails or is dropped.
    ///
    /// # Errors
    /// What keeps it from being ready, and what to do.
    fn setup(
        cx: &Cx<Self::State>,
        setup: EnvironmentSetup,
    ) -> impl Future<Output = Result<Self>> + Send;

    /// Takes it down. Resources and programs have ended by then.
    ///
    /// # Errors
    /// What is left behind.
    fn teardown(&self, _cx: &Cx<Self::State>) -> impl Future<Output = Result<()>> + Send {
        ready(Ok(()))
    }

    /// Tells what it is.
    ///
    /// # Errors
    /// What keeps it from telling: it is gone.
    fn facts(&self, cx: &Cx<Self::State>) -> impl Future<Output = Result<EnvironmentFacts>> + Send;

    /// Gives its files, where it has some.
    fn files(&self) -> Option<&Self::Files> {
        None
    }

    /// Gives what runs commands, where it has that.
    fn shell(&self) -> Option<&Self::Shell> {
        None
    }

    /// Gives what runs programs on terminals, where it has that.
    fn terminals(&self) -> Option<&Self::Terminals> {
        None
    }
}

/// Reads an environment's settings: those of its configuration, and over them the options that a
/// person chose for this environment. The host has checked both against the plugin's schema.
///
/// # Errors
/// `configuration` for an option that is none, or whose value does not fit.
pub fn settings<T: DeserializeOwned>(config: &Value, options: &Map<String, Value>) -> Result<T> {
    let mut all = config.as_object().cloned().unwrap_or_default();
    all.extend(options.clone());
    serde_json::from_value(Value::Object(all)).map_err(|error| {
        let text = format!("the settings of the execution environment are wrong: {error}");
        Error::new(ErrorKind::Configuration, text)
    })
}
