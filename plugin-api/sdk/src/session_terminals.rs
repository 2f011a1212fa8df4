//! Terminals of the session's execution environment, as a tool uses them: [`SessionTerminal`].

use std::time::Duration;

use jaato_types::Result;
use jaato_types::process::{ProcessExit, Signal};
use jaato_types::terminal::{
    ASK, END, RESIZE, SHOW, SIGNAL, SPAWN, STATE, TerminalAsk, TerminalAsked, TerminalEvent,
    TerminalNews, TerminalRef, TerminalResize, TerminalScreen, TerminalShown, TerminalSignal,
    TerminalSpawn, TerminalSpawned, TerminalState, TerminalWrite, TerminalWritten, WRITE,
};

use crate::context::Reporter;
use crate::context::stream::Stream;

/// What has happened on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalHappened {
    /// Something was shown: at most 64 KiB, cut anywhere.
    Output(Vec<u8>),
    /// The program has ended, and everything that was shown by then was told.
    Exited(ProcessExit),
}

/// A program on a terminal of the session's execution environment. Dropping it ends the program and
/// all that it started; so does the end of the call that started it, or of the instance where
/// [`Home`](crate::Home) did.
///
/// What it shows waits until it is read: a program whose output nobody reads stands still.
pub struct SessionTerminal {
    control: TerminalControl,
    events: TerminalStream,
}

/// One half of a [`SessionTerminal`]: what can be done with it.
#[derive(Clone)]
pub struct TerminalControl {
    host: Reporter,
    number: u64,
    pid: Option<u32>,
}

/// The other half of a [`SessionTerminal`]: what happens on it. Dropping it ends the program and
/// all that it started.
pub struct TerminalStream(Stream);

/// What people do with the terminals of the plugin.
pub struct TerminalWatch(Stream);

impl Reporter {
    jaato_types::terminal_operations!(methods []);

    /// Starts a program on a new terminal of the session's execution environment.
    ///
    /// # Errors
    /// `not_found` for a program or directory that is not there, `limit_reached` when too many run;
    /// `unknown_operation` when the environment has no terminals.
    pub async fn terminal(&self, spawn: &TerminalSpawn) -> Result<SessionTerminal> {
        let spawned: TerminalSpawned = self.service(SPAWN, spawn).await?;
        let TerminalSpawned { terminal: number, pid, handle, .. } = spawned;
        let events = TerminalStream(Stream::new(self.clone(), handle));
        Ok(SessionTerminal { control: TerminalControl { host: self.clone(), number, pid }, events })
    }
}

impl From<Stream> for TerminalWatch {
    fn from(stream: Stream) -> Self {
        Self(stream)
    }
}

impl TerminalWatch {
    /// Waits for what somebody does next; nothing at the end. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the stream was lost by; `cancelled` when the call or the instance ended.
    pub async fn next(&mut self) -> Result<Option<TerminalNews>> {
        Ok(self.0.next_event().await?.map(|(news, _)| news))
    }
}

impl std::ops::Deref for SessionTerminal {
    type Target = TerminalControl;

    fn deref(&self) -> &TerminalControl {
        &self.control
    }
}

impl SessionTerminal {
    /// Waits for what happens next; nothing after the exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the terminal was lost by; `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<TerminalHappened>> {
        self.events.next().await
    }

    /// Takes it apart, so that one may wait for what happens while another types.
    pub fn split(self) -> (TerminalControl, TerminalStream) {
        (self.control, self.events)
    }
}

impl TerminalStream {
    /// Waits for what happens next; nothing after the exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the terminal was lost by; `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<TerminalHappened>> {
        while let Some((event, bytes)) = self.0.next_event().await? {
            return Ok(Some(match event {
                TerminalEvent::Output => TerminalHappened::Output(bytes),
                TerminalEvent::Exited(exit) => TerminalHappened::Exited(exit),
                // A newer environment tells more than this sdk knows.
                TerminalEvent::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

impl TerminalControl {
    /// Returns the number by which the environment names it.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Shows people what is on the screen: as `screen` says, and as ANSI text for whoever looks at
    /// it live. Its terminal is this one, whatever stands there.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn show(&self, screen: TerminalScreen, ansi: &str) -> Result<TerminalShown> {
        let screen = TerminalScreen { terminal: self.number, ..screen };
        self.host.service_with_bytes(SHOW, &screen, ansi.as_bytes()).await
    }

    /// Asks the person to type something that nobody else may see, straight into this terminal, and
    /// waits for that. Its terminal is this one, whatever stands in `ask`.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    pub async fn ask(&self, ask: TerminalAsk) -> Result<TerminalAsked> {
        let ask = TerminalAsk { terminal: self.number, ..ask };
        self.host.service(ASK, &ask).await
    }

    /// Returns the program's process id, where that can be known.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Types; waits while nobody reads.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let terminal = TerminalRef { terminal: self.number, ..TerminalRef::default() };
        self.host.service_with_bytes(WRITE, &terminal, bytes).await
    }

    /// Types within that time; returns how many bytes the terminal took. The rest is never typed.
    /// An environment that cannot tell waits until all is taken.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    pub async fn write_within(&self, bytes: &[u8], longest: Duration) -> Result<usize> {
        let wait_ms = Some(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
        let terminal = TerminalWrite { terminal: self.number, wait_ms, ..TerminalWrite::default() };
        let written: TerminalWritten =
            self.host.service_with_bytes(WRITE, &terminal, bytes).await?;
        Ok(usize::try_from(written.bytes).map_or(bytes.len(), |taken| taken.min(bytes.len())))
    }

    /// Sets the size; each at least 1.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    pub async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let size =
            TerminalResize { terminal: self.number, rows, columns, ..TerminalResize::default() };
        self.host.service(RESIZE, &size).await
    }

    /// Sends a signal to the processes in the foreground.
    ///
    /// # Errors
    /// What keeps it from being sent.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = TerminalSignal { terminal: self.number, signal, ..TerminalSignal::default() };
        self.host.service(SIGNAL, &signal).await
    }

    /// Tells what the system knows of the terminal at this moment. Cheap enough to be asked every
    /// millisecond.
    ///
    /// # Errors
    /// `io` when the terminal is closed.
    pub async fn state(&self) -> Result<TerminalState> {
        self.host
            .service(STATE, &TerminalRef { terminal: self.number, ..TerminalRef::default() })
            .await
    }

    /// Ends the program and all that it started; the exit is told next. After the exit, and as long
    /// as the [`TerminalStream`] is there, ends what the program left running.
    ///
    /// # Errors
    /// What keeps it from being ended.
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(END, &TerminalRef { terminal: self.number, ..TerminalRef::default() })
            .await
    }
}
