//! The [`Shell`] trait, which runs commands in an execution environment.

use std::future::{Future, ready};

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::process::{Process, ProcessControl, ProcessEvents, ProcessUpdate};
use jaato_types::Result;
use jaato_types::process::{Signal, Spawn};

/// Runs programs. Each program runs until it exits, until [`Program::end`], or until both of its
/// halves are dropped, which ends it and its child processes.
pub trait Shell: Send + Sync + 'static {
    /// A running program.
    type Program: Program;
    /// The events of a program.
    type Events: ProgramEvents;

    /// Returns how the host itself can run a program on this machine, with which folder, variables
    /// and wrapper command. The host then runs the program, enforces its deadline, and passes its
    /// output directly to the tool, so the output does not go through the plugin.
    ///
    /// If an environment runs its programs elsewhere, it returns `None`, which is the default, and
    /// the programs start with [`Shell::start`]. Background programs always start there.
    ///
    /// ```
    /// # use jaato_plugin_sdk::prelude::*;
    /// # use jaato_plugin_sdk::process::{ProcessControl, ProcessEvents, Spawn};
    /// # use jaato_plugin_sdk_environment::Shell;
    /// /// Runs commands with little share of the processor.
    /// struct NiceShell(Home);
    ///
    /// impl NiceShell {
    ///     fn nice(spawn: Spawn) -> Spawn {
    ///         let words = ["-n", "19", &spawn.program].map(str::to_owned);
    ///         let args = words.into_iter().chain(spawn.args).collect();
    ///         Spawn { program: "nice".to_owned(), args, ..spawn }
    ///     }
    /// }
    ///
    /// impl Shell for NiceShell {
    ///     type Program = ProcessControl;
    ///     type Events = ProcessEvents;
    ///
    ///     async fn prepare(&self, _host: &Reporter, spawn: Spawn) -> Result<Option<Spawn>> {
    ///         Ok(Some(Self::nice(spawn)))
    ///     }
    ///
    ///     async fn start(
    ///         &self,
    ///         _host: &Reporter,
    ///         spawn: Spawn,
    ///     ) -> Result<(ProcessControl, ProcessEvents)> {
    ///         Ok(self.0.process(&Self::nice(spawn)).await?.split())
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Shell::start`]. A refused program does not run.
    fn prepare(
        &self,
        _host: &Reporter,
        _spawn: Spawn,
    ) -> impl Future<Output = Result<Option<Spawn>>> + Send {
        ready(Ok(None))
    }

    /// Starts a program. The shell enforces its deadline. If the program of a call has no deadline,
    /// the deadline is the `shell_timeout_ms` from the environment's facts.
    ///
    /// # Errors
    /// `not_found` if the program or its directory does not exist, `limit_reached` if too many
    /// programs run.
    fn start(
        &self,
        host: &Reporter,
        spawn: Spawn,
    ) -> impl Future<Output = Result<(Self::Program, Self::Events)>> + Send;
}

/// The events of a program.
pub trait ProgramEvents: Send + 'static {
    /// Waits for the next event. Returns `None` after the exit. Dropping the future loses no event.
    ///
    /// # Errors
    /// If the program was lost.
    fn next(&mut self) -> impl Future<Output = Result<Option<ProcessUpdate>>> + Send;
}

/// A running program.
pub trait Program: Send + Sync + 'static {
    /// Returns the process id, if it is known.
    fn pid(&self) -> Option<u32>;

    /// Writes to the program's standard input. Waits while the pipe is full.
    ///
    /// # Errors
    /// `io` if the program no longer reads, `invalid_arguments` if its input is not a pipe.
    fn write(&self, bytes: Vec<u8>) -> impl Future<Output = Result<()>> + Send;

    /// Closes the program's standard input.
    ///
    /// # Errors
    /// As [`Program::write`].
    fn close_input(&self) -> impl Future<Output = Result<()>> + Send;

    /// Sends a signal to the program's process group. Does nothing if all its processes have ended.
    ///
    /// # Errors
    /// If the signal could not be sent.
    fn signal(&self, signal: Signal) -> impl Future<Output = Result<()>> + Send;

    /// Ends the program and its child processes, with a moment to clean up. The exit then arrives
    /// as an event.
    ///
    /// # Errors
    /// If the program could not be ended.
    fn end(&self) -> impl Future<Output = Result<()>> + Send;
}

/// The programs that the host runs on this machine.
impl Program for ProcessControl {
    fn pid(&self) -> Option<u32> {
        Some(self.pid())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        self.write(&bytes).await
    }

    async fn close_input(&self) -> Result<()> {
        self.close_input().await
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.signal(signal).await
    }

    async fn end(&self) -> Result<()> {
        self.end().await
    }
}

impl ProgramEvents for ProcessEvents {
    async fn next(&mut self) -> Result<Option<ProcessUpdate>> {
        self.next().await
    }
}

impl ProgramEvents for Process {
    async fn next(&mut self) -> Result<Option<ProcessUpdate>> {
        self.next().await
    }
}

/// The shell of an environment that runs no commands. It has no values.
pub enum NoShell {}

impl Shell for NoShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    async fn start(&self, _: &Reporter, _: Spawn) -> Result<(Self::Program, Self::Events)> {
        match *self {}
    }
}
