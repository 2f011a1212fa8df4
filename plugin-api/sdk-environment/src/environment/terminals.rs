//! The [`Terminals`] trait, which runs programs on terminals in an execution environment.

use std::future::Future;
use std::time::Duration;

use jaato_plugin_sdk::Reporter;
use jaato_plugin_sdk::terminal::TerminalUpdate;
use jaato_types::Result;
use jaato_types::process::Signal;
use jaato_types::terminal::{TerminalResize, TerminalSpawn, TerminalState};

/// Runs programs on terminals. Each program runs until it exits, until [`Terminal::end`], or until
/// both halves of the terminal are dropped, which ends it and its child processes.
pub trait Terminals: Send + Sync + 'static {
    /// A terminal.
    type Terminal: Terminal;
    /// The events of a terminal.
    type Events: TerminalEvents;

    /// Starts a program on a new terminal. Rows and columns are at least 1.
    ///
    /// # Errors
    /// `not_found` if the program or its directory does not exist, `limit_reached` if too many
    /// programs run.
    fn spawn(
        &self,
        host: &Reporter,
        spawn: TerminalSpawn,
    ) -> impl Future<Output = Result<(Self::Terminal, Self::Events)>> + Send;
}

/// The events of a terminal.
pub trait TerminalEvents: Send + 'static {
    /// Waits for the next event. Returns `None` after the exit. Dropping the future loses no event.
    ///
    /// # Errors
    /// If the terminal was lost.
    fn next(&mut self) -> impl Future<Output = Result<Option<TerminalUpdate>>> + Send;
}

/// A terminal with its program.
pub trait Terminal: Send + Sync + 'static {
    /// Returns the program's process id, if it is known.
    fn pid(&self) -> Option<u32>;

    /// Writes input to the terminal. Waits while the program does not read.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn write(&self, bytes: Vec<u8>) -> impl Future<Output = Result<()>> + Send;

    /// Writes input for at most `longest` and returns how many bytes the terminal took. The rest is
    /// discarded. Callers need an answer whatever the program does, so override this if the system
    /// reports how many bytes it took. The default waits for the whole write.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn write_within(
        &self,
        bytes: Vec<u8>,
        longest: Duration,
    ) -> impl Future<Output = Result<usize>> + Send {
        // An abandoned write does not report how much the terminal took, so the default cannot stop
        // early.
        let _ = longest;
        async move {
            let length = bytes.len();
            self.write(bytes).await?;
            Ok(length)
        }
    }

    /// Sets the size of the terminal.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn resize(&self, size: TerminalResize) -> impl Future<Output = Result<()>> + Send;

    /// Sends a signal to the terminal's foreground processes.
    ///
    /// # Errors
    /// If the signal could not be sent.
    fn signal(&self, signal: Signal) -> impl Future<Output = Result<()>> + Send;

    /// Returns what the system knows about the terminal at this moment.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    fn state(&self) -> impl Future<Output = Result<TerminalState>> + Send;

    /// Ends the program and its child processes. The exit then arrives as an event. After the exit,
    /// ends the processes that the program left running.
    ///
    /// # Errors
    /// If the program could not be ended.
    fn end(&self) -> impl Future<Output = Result<()>> + Send;
}

/// The terminals of an environment without terminals. It has no values.
pub enum NoTerminals {}

impl Terminals for NoTerminals {
    type Terminal = Self;
    type Events = Self;

    async fn spawn(&self, _: &Reporter, _: TerminalSpawn) -> Result<(Self, Self)> {
        match *self {}
    }
}

impl TerminalEvents for NoTerminals {
    async fn next(&mut self) -> Result<Option<TerminalUpdate>> {
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
