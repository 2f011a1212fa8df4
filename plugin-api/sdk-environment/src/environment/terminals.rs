//! What runs programs on terminals in an execution environment: what authors implement.

use std::future::Future;
use std::time::Duration;

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::terminal::TerminalHappened;
use jaato_types::Result;
use jaato_types::process::Signal;
use jaato_types::terminal::{TerminalResize, TerminalSpawn, TerminalState};

/// Runs programs on terminals. Each lives until its exit, until [`Terminal::end`], or until both
/// halves of it are dropped, which ends it and all that it started.
pub trait Terminals: Send + Sync + 'static {
    /// A terminal.
    type Terminal: Terminal;
    /// What happens there.
    type Events: TerminalEvents;

    /// Starts a program on a new terminal. Rows and columns are at least 1.
    ///
    /// # Errors
    /// `not_found` for a program or a directory that is not there, `limit_reached` when too many
    /// run.
    fn spawn(
        &self,
        host: &Reporter,
        spawn: TerminalSpawn,
    ) -> impl Future<Output = Result<(Self::Terminal, Self::Events)>> + Send;
}

/// What happens on a terminal.
pub trait TerminalEvents: Send + 'static {
    /// Waits for what happens next; nothing after the exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the terminal was lost by.
    fn next(&mut self) -> impl Future<Output = Result<Option<TerminalHappened>>> + Send;
}

/// A terminal.
pub trait Terminal: Send + Sync + 'static {
    /// Returns the program's process id, where that can be known.
    fn pid(&self) -> Option<u32>;

    /// Types; waits while nobody reads.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn write(&self, bytes: Vec<u8>) -> impl Future<Output = Result<()>> + Send;

    /// Types within that time; returns how many bytes the terminal took, the rest is never typed.
    /// Who asks so must have an answer whatever the program does, so implement it wherever the
    /// system tells how much it took: without it all is waited for.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn write_within(
        &self,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> impl Future<Output = Result<usize>> + Send {
        // Nothing tells how much was taken of a write that is given up.
        let _ = longest;
        async move {
            let length = bytes.len();
            self.write(bytes).await?;
            Ok(length)
        }
    }

    /// Sets the size.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn resize(&self, size: TerminalResize) -> impl Future<Output = Result<()>> + Send;

    /// Sends a signal to the terminal's foreground processes.
    ///
    /// # Errors
    /// What keeps it from being sent.
    fn signal(&self, signal: Signal) -> impl Future<Output = Result<()>> + Send;

    /// Tells what the system knows of the terminal at this moment.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn state(&self) -> impl Future<Output = Result<TerminalState>> + Send;

    /// Ends the program and all that it started; its events then tell the exit. After the exit,
    /// ends what the program left running.
    ///
    /// # Errors
    /// What keeps it from being ended.
    fn end(&self) -> impl Future<Output = Result<()>> + Send;
}

/// What an environment without terminals has. It cannot be made.
pub enum NoTerminals {}

impl Terminals for NoTerminals {
    type Terminal = Self;
    type Events = Self;

    async fn spawn(&self, _: &Reporter, _: TerminalSpawn) -> Result<(Self, Self)> {
        match *self {}
    }
}

impl TerminalEvents for NoTerminals {
    async fn next(&mut self) -> Result<Option<TerminalHappened>> {
        match *self {}
    }
}

impl Terminal for NoTerminals {
    fn pid(&self) -> Option<u32> {
        match *self {}
    }

    async fn write(&self, _: Vec<u8>) -> Result<()> {
        match *self {}
    }

    async fn resize(&self, _: TerminalResize) -> Result<()> {
        match *self {}
    }

    async fn signal(&self, _: Signal) -> Result<()> {
        match *self {}
    }

    async fn state(&self) -> Result<TerminalState> {
        match *self {}
    }

    async fn end(&self) -> Result<()> {
        match *self {}
    }
}
