//! The library for programs without tokio: each call waits on the calling thread.
//!
//! ```no_run
//! use jaato_library::blocking::BlockingJaato;
//! use jaato_library::types::Event;
//!
//! fn main() -> jaato_library::Result<()> {
//!     let jaato = BlockingJaato::start(jaato_library::Jaato::builder().model("ollama/qwen3"))?;
//!     let session = jaato.open(jaato.session().system("Be brief."))?;
//!     let mut turn = session.send("What is 2 + 40?");
//!     for event in &mut turn {
//!         if let Event::TextDelta { text, .. } = event {
//!             print!("{text}");
//!         }
//!     }
//!     println!("{:?}", turn.wait()?.outcome);
//!     Ok(())
//! }
//! ```

use std::sync::Arc;

use jaato_runtime::ShutdownReport;
use jaato_runtime::config::GcSettings;
use jaato_runtime::session_loop::{GcReport, HistoryEntry, TurnReport, UserPrompt};
use jaato_runtime::types::{Error, ErrorKind, Event, Result, SessionId};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::builder::JaatoBuilder;
use crate::session::{SessionBuilder, SessionHandle};

/// A host with a tokio runtime of its own, which has one thread next to the callers.
#[derive(Clone)]
pub struct BlockingJaato {
    // Dropped before the runtime, on which its sessions end.
    inner: crate::Jaato,
    runtime: Arc<OwnRuntime>,
}

/// A conversation whose calls wait.
pub struct BlockingSession {
    inner: crate::Session,
    runtime: Arc<OwnRuntime>,
}

/// A turn that runs while the caller waits: an iterator of events, and [`BlockingTurn::wait`] for
/// the report. Dropping it cancels the turn.
#[must_use = "a turn runs only while the caller waits"]
pub struct BlockingTurn {
    inner: crate::Turn,
    runtime: Arc<OwnRuntime>,
}

/// A tokio runtime that never blocks the thread on which it is dropped.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn start() -> Result<Self> {
        if Handle::try_current().is_ok() {
            let text = "the blocking library was called from a tokio task, which must not block";
            return Err(Error::new(ErrorKind::Configuration, text)
                .with_hint("use `jaato_library::Jaato` in a program with tokio"));
        }
        let made = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("jaato-library")
            .enable_all()
            .build();
        let made = made.map_err(|error| {
            Error::new(ErrorKind::Io, format!("cannot start a tokio runtime: {error}"))
        })?;
        Ok(Self(Some(made)))
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        match &self.0 {
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("only dropping takes it"),
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl BlockingJaato {
    /// Starts a host.
    ///
    /// # Errors
    /// As [`JaatoBuilder::start`], and if the caller is a tokio task.
    pub fn start(builder: JaatoBuilder) -> Result<Self> {
        let runtime = Arc::new(OwnRuntime::start()?);
        let inner = runtime.wait(builder.start())?;
        Ok(Self { inner, runtime })
    }

    /// Prepares a session, to be passed to [`BlockingJaato::open`].
    pub fn session(&self) -> SessionBuilder {
        self.inner.session()
    }

    /// Opens a session.
    ///
    /// # Errors
    /// As [`SessionBuilder::open`].
    pub fn open(&self, builder: SessionBuilder) -> Result<BlockingSession> {
        let inner = self.runtime.wait(async { builder.open() })?;
        Ok(BlockingSession { inner, runtime: Arc::clone(&self.runtime) })
    }

    /// Calls a tool for the program itself, without a model.
    ///
    /// # Errors
    /// As [`crate::Jaato::call`].
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        self.runtime.wait(self.inner.call(tool, arguments))
    }

    /// Returns the host itself, for everything that does not wait.
    pub fn inner(&self) -> &crate::Jaato {
        &self.inner
    }

    /// Ends everything that runs on the host, and returns what could not be ended cleanly.
    pub fn close(&self) -> ShutdownReport {
        self.runtime.wait(self.inner.close())
    }

    /// Waits for any future of this crate.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.wait(future)
    }
}

impl BlockingSession {
    /// Sends a prompt. The turn runs while the caller iterates or waits.
    pub fn send(&self, prompt: impl Into<UserPrompt>) -> BlockingTurn {
        BlockingTurn { inner: self.inner.send(prompt), runtime: Arc::clone(&self.runtime) }
    }

    /// Returns a handle for other threads, for example to stop the turn.
    pub fn handle(&self) -> SessionHandle {
        self.inner.handle()
    }

    /// Returns the session's id.
    pub fn id(&self) -> SessionId {
        self.inner.id()
    }

    /// Returns the conversation.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.inner.history()
    }

    /// Begins again with this conversation.
    ///
    /// # Errors
    /// As [`crate::Session::reset`].
    pub fn reset(&self, entries: impl IntoIterator<Item = HistoryEntry>) -> Result<()> {
        self.runtime.wait(self.inner.reset(entries))
    }

    /// Calls a tool of the session for the program itself.
    ///
    /// # Errors
    /// As [`crate::Session::call`].
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Map<String, Value>> {
        self.runtime.wait(self.inner.call(tool, arguments))
    }

    /// Answers with another model from the next turn on.
    ///
    /// # Errors
    /// As [`crate::Session::change_model`].
    pub fn change_model(&self, model: &str) -> Result<()> {
        self.runtime.wait(self.inner.change_model(model))
    }

    /// Replaces the gc and its settings from the next turn on. `None` removes it.
    ///
    /// # Errors
    /// As [`crate::Session::change_gc`].
    pub fn change_gc(&self, settings: Option<GcSettings>) -> Result<()> {
        self.runtime.wait(self.inner.change_gc(settings))
    }

    /// Collects now, even if the context is not full.
    ///
    /// # Errors
    /// As [`crate::Session::gc`].
    pub fn gc(&self) -> Result<GcReport> {
        self.runtime.wait(self.inner.gc())
    }

    /// Names the session in permission prompts.
    ///
    /// # Errors
    /// As [`crate::Session::set_agent`].
    pub fn set_agent(&self, agent: Option<&str>) -> Result<()> {
        self.inner.set_agent(agent)
    }

    /// Ends the session and waits for its end.
    pub fn close(self) {
        let Self { inner, runtime } = self;
        runtime.wait(inner.close());
    }
}

impl Iterator for BlockingTurn {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let Self { inner, runtime } = self;
        runtime.wait(inner.next())
    }
}

impl BlockingTurn {
    /// Waits for the report. Events that were not taken are dropped.
    ///
    /// # Errors
    /// As the report of [`crate::Turn`].
    pub fn wait(self) -> Result<TurnReport> {
        self.runtime.wait(self.inner)
    }
}
