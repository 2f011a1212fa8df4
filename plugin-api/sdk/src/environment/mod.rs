//! Execution environments: what authors implement, and what answers the host for them.
//!
//! An environment is where a session's files lie and its commands run. Authors implement
//! [`ExecutionEnvironment`] and, for what it has, [`Files`], [`Shell`] and [`Terminals`]; numbers
//! of streams and programs, programs that outlive a call, and frames are the sdk's.

mod background;
mod derived;
mod desk;
mod dispatch;
mod file_calls;
mod files;
mod held;
mod pages;
mod program_calls;
mod searched;
mod served;
mod shell;
mod terminal_calls;
mod terminals;
mod watched;

use std::any::{Any, TypeId};
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use jaato_types::execution::{
    EnvironmentFacts, EnvironmentPart, EnvironmentSetup, EnvironmentSpec,
};
use jaato_types::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::{Cx, Home};
use crate::state::State;
use desk::Desk;

pub use files::{ByDefault, FilePieces, FileWriter, Files, NoFiles, TreePages};
pub use pages::{PageStream, Pages};
pub use searched::{PageFiller, matches_in, searched_line, wrong_regex};
#[doc(hidden)]
pub use served::Served;
pub use shell::{NoShell, Program, ProgramEvents, Shell};
pub use terminals::{NoTerminals, Terminal, TerminalEvents, TerminalHappened, Terminals};

/// An execution environment that is ready. Dropping it leaves nothing behind that [`teardown`]
/// would have taken away, as far as that can be done without waiting.
///
/// All methods are called on the host's plugin executor and must not block.
///
/// [`teardown`]: ExecutionEnvironment::teardown
pub trait ExecutionEnvironment: Sized + Send + Sync + 'static {
    /// The plugin's state, as `export_plugin!` names it.
    type State: State;
    /// Its files; [`NoFiles`] for none.
    type Files: Files;
    /// What runs commands; [`NoShell`] for nothing.
    type Shell: Shell;
    /// What runs programs on terminals; [`NoTerminals`] for nothing.
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

/// A desk, whatever it is of.
pub(crate) type AnyDesk = Arc<dyn Any + Send + Sync>;

type Running<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>>> + Send + 'a>>;

/// How the sdk reaches the environment.
pub struct EnvironmentEntry<S: State> {
    pub(crate) spec: fn() -> EnvironmentSpec,
    pub(crate) lacks: fn() -> Vec<EnvironmentPart>,
    pub(crate) desk: fn(Home) -> AnyDesk,
    pub(crate) call: for<'a> fn(&'a Cx<S>, &'a AnyDesk, &'a str, &'a [u8]) -> Running<'a>,
}

impl<S: State> EnvironmentEntry<S> {
    /// Makes the entry.
    pub const fn of<E: ExecutionEnvironment<State = S>>() -> Self {
        Self {
            spec: E::spec,
            lacks: lacks::<E>,
            desk: |home| Arc::new(Desk::<E>::new(home)),
            call: |cx, desk, operation, frame| {
                let Some(desk) = desk.downcast_ref::<Desk<E>>() else {
                    unreachable!("made by the same entry")
                };
                Box::pin(dispatch::answer(cx, desk, operation, frame))
            },
        }
    }
}

/// Lists what an environment says by its types that it has not.
fn lacks<E: ExecutionEnvironment>() -> Vec<EnvironmentPart> {
    let parts = [
        (TypeId::of::<E::Files>() == TypeId::of::<NoFiles>(), EnvironmentPart::Files),
        (TypeId::of::<E::Shell>() == TypeId::of::<NoShell>(), EnvironmentPart::Shell),
        (TypeId::of::<E::Terminals>() == TypeId::of::<NoTerminals>(), EnvironmentPart::Terminals),
    ];
    parts.into_iter().filter_map(|(is_none, part)| is_none.then_some(part)).collect()
}
