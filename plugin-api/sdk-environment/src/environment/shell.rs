//! What runs commands in an execution environment: what authors implement.

use std::future::{Future, ready};

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::process::{Happened, Process, ProcessControl, ProcessEvents};
use jaato_types::Result;
use jaato_types::process::{Signal, Spawn};

/// Runs programs. Each lives until its exit, until [`Program::end`], or until both halves of it are
/// dropped, which ends it and all that it started.
pub trait Shell: Send + Sync + 'static {
    /// A running program.
    type Program: Program;
    /// What it does.
    type Events: ProgramEvents;

    /// Says how the host itself shall run a program on this machine: with what folder, variables,
    /// words before it. The host then runs it, holds its deadline and gives its output straight to
    /// the tool that asked, so that no piece of it comes through the plugin.
    ///
    /// An environment whose programs run elsewhere always returns `None`, which is the default, and
    /// [`Shell::start`] runs them. Programs that outlive their call are started there too.
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
    /// As [`Shell::start`]: what is refused here is not run.
    fn prepare(
        &self,
        _host: &Reporter,
        _spawn: Spawn,
    ) -> impl Future<Output = Result<Option<Spawn>>> + Send {
        ready(Ok(None))
    }

    /// Starts a program. Its deadline is the shell's to hold; where a call's program had none, it
    /// is the `shell_timeout_ms` that the environment's facts told at its setup.
    ///
    /// # Errors
    /// `not_found` for a program or a directory that is not there, `limit_reached` when too many
    /// run.
    fn start(
        &self,
        host: &Reporter,
        spawn: Spawn,
    ) -> impl Future<Output = Result<(Self::Program, Self::Events)>> + Send;
}

/// What a program does.
pub trait ProgramEvents: Send + 'static {
    /// Waits for what it does next; nothing after its exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the program was lost by.
    fn next(&mut self) -> impl Future<Output = Result<Option<Happened>>> + Send;
}

/// A running program.
pub trait Program: Send + Sync + 'static {
    /// Returns its process id, where that can be known.
    fn pid(&self) -> Option<u32>;

    /// Writes to its standard input; waits while that is full.
    ///
    /// # Errors
    /// `io` when it reads no more; `invalid_arguments` when its input is no pipe.
    fn write(&self, bytes: Vec<u8>) -> impl Future<Output = Result<()>> + Send;

    /// Ends its standard input.
    ///
    /// # Errors
    /// As [`Program::write`].
    fn close_input(&self) -> impl Future<Output = Result<()>> + Send;

    /// Sends a signal to its process group; nothing happens when nothing of it is left.
    ///
    /// # Errors
    /// What keeps it from being sent.
    fn signal(&self, signal: Signal) -> impl Future<Output = Result<()>> + Send;

    /// Ends it and all that it started, with a moment to tidy up; its events then tell the exit.
    ///
    /// # Errors
    /// What keeps it from being ended.
    fn end(&self) -> impl Future<Output = Result<()>> + Send;
}

/// Programs that the host runs on this machine.
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
    async fn next(&mut self) -> Result<Option<Happened>> {
        self.next().await
    }
}

impl ProgramEvents for Process {
    async fn next(&mut self) -> Result<Option<Happened>> {
        self.next().await
    }
}

/// What runs commands in an environment without any. It cannot be made.
pub enum NoShell {}

impl Shell for NoShell {
    type Program = ProcessControl;
    type Events = ProcessEvents;

    async fn start(&self, _: &Reporter, _: Spawn) -> Result<(Self::Program, Self::Events)> {
        match *self {}
    }
}
