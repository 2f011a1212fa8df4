//! Access to terminals of the session's execution environment for tools: [`SessionTerminal`].

use std::time::Duration;

use jaato_types::Result;
use jaato_types::process::{ProcessExit, Signal};
use jaato_types::terminal::{
    ASK, END, RESIZE, SHOW, SIGNAL, SPAWN, STATE, TerminalAsk, TerminalAskOutcome, TerminalEvent,
    TerminalRef, TerminalResize, TerminalScreen, TerminalShowAnswer, TerminalSignal, TerminalSpawn,
    TerminalSpawnAnswer, TerminalState, TerminalUserAction, TerminalWrite, TerminalWriteAnswer,
    WRITE,
};

use crate::context::Reporter;
use crate::context::stream::ServiceStream;

/// An event of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalUpdate {
    /// The program has printed output: at most 64 KiB, split anywhere.
    Output(Vec<u8>),
    /// The program has ended, and all its output until then has been returned.
    Exited(ProcessExit),
}

/// A program on a terminal of the session's execution environment. The program and all its child
/// processes end when this is dropped, or when the call ends that started it, or the instance if
/// [`Home`](crate::Home) started it.
///
/// The output waits until it is read. If the plugin does not read it, the program blocks.
pub struct SessionTerminal {
    control: TerminalControl,
    events: TerminalStream,
}

/// The half of a [`SessionTerminal`] that controls the program.
#[derive(Clone)]
pub struct TerminalControl {
    host: Reporter,
    number: u64,
    pid: Option<u32>,
}

/// The half of a [`SessionTerminal`] that returns its events. Dropping it ends the program and all
/// its child processes.
pub struct TerminalStream(ServiceStream);

/// The users' actions on the plugin's terminals.
pub struct TerminalWatch(ServiceStream);

impl Reporter {
    jaato_types::terminal_operations!(methods []);

    /// Starts a program on a new terminal of the session's execution environment.
    ///
    /// # Errors
    /// `not_found` for a program or directory that does not exist; `limit_reached` if too many
    /// programs run; `unknown_operation` if the environment has no terminals.
    pub async fn terminal(&self, spawn: &TerminalSpawn) -> Result<SessionTerminal> {
        let spawned: TerminalSpawnAnswer = self.service(SPAWN, spawn).await?;
        let TerminalSpawnAnswer { terminal: number, pid, handle, .. } = spawned;
        let events = TerminalStream(ServiceStream::new(self.clone(), handle));
        Ok(SessionTerminal { control: TerminalControl { host: self.clone(), number, pid }, events })
    }
}

impl From<ServiceStream> for TerminalWatch {
    fn from(stream: ServiceStream) -> Self {
        Self(stream)
    }
}

impl TerminalWatch {
    /// Waits for the next action of a user. Returns `None` at the end. Dropping the wait loses
    /// nothing.
    ///
    /// # Errors
    /// The error that broke the stream; `cancelled` if the call or the instance ended.
    pub async fn next(&mut self) -> Result<Option<TerminalUserAction>> {
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
    /// Waits for the next event. Returns `None` after the exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// The error that broke the terminal; `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<TerminalUpdate>> {
        self.events.next().await
    }

    /// Splits the terminal, so that one task can wait for events while another types.
    pub fn split(self) -> (TerminalControl, TerminalStream) {
        (self.control, self.events)
    }
}

impl TerminalStream {
    /// Waits for the next event. Returns `None` after the exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// The error that broke the terminal; `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<TerminalUpdate>> {
        while let Some((event, bytes)) = self.0.next_event().await? {
            return Ok(Some(match event {
                TerminalEvent::Output => TerminalUpdate::Output(bytes),
                TerminalEvent::Exited(exit) => TerminalUpdate::Exited(exit),
                // A newer environment may send events that this SDK does not know.
                TerminalEvent::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

impl TerminalControl {
    /// Returns the terminal's number in the environment.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Shows the screen to users: as `screen`, and as ANSI text for users who watch it live. The
    /// number in `screen` is replaced with that of this terminal.
    ///
    /// # Errors
    /// As [`Reporter::service`].
    pub async fn show(&self, screen: TerminalScreen, ansi: &str) -> Result<TerminalShowAnswer> {
        let screen = TerminalScreen { terminal: self.number, ..screen };
        self.host.service_with_bytes(SHOW, &screen, ansi.as_bytes()).await
    }

    /// Asks the user to type something secret directly into this terminal, and waits for it. The
    /// number in `ask` is replaced with that of this terminal.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn ask(&self, ask: TerminalAsk) -> Result<TerminalAskOutcome> {
        let ask = TerminalAsk { terminal: self.number, ..ask };
        self.host.service(ASK, &ask).await
    }

    /// Returns the program's process id, if it is known.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Types bytes. Waits while the program does not read.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let terminal = TerminalRef { terminal: self.number, ..TerminalRef::default() };
        self.host.service_with_bytes(WRITE, &terminal, bytes).await
    }

    /// Types bytes within a time limit, and returns how many the terminal accepted. The rest is
    /// never typed. An environment that does not support this waits until all bytes are accepted.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn write_within(&self, bytes: &[u8], longest: Duration) -> Result<usize> {
        let wait_ms = Some(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
        let terminal = TerminalWrite { terminal: self.number, wait_ms, ..TerminalWrite::default() };
        let written: TerminalWriteAnswer =
            self.host.service_with_bytes(WRITE, &terminal, bytes).await?;
        Ok(usize::try_from(written.bytes).map_or(bytes.len(), |taken| taken.min(bytes.len())))
    }

    /// Sets the size. Rows and columns must be at least 1.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn resize(&self, rows: u16, columns: u16) -> Result<()> {
        let size =
            TerminalResize { terminal: self.number, rows, columns, ..TerminalResize::default() };
        self.host.service(RESIZE, &size).await
    }

    /// Sends a signal to the foreground processes.
    ///
    /// # Errors
    /// If the signal cannot be sent.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = TerminalSignal { terminal: self.number, signal, ..TerminalSignal::default() };
        self.host.service(SIGNAL, &signal).await
    }

    /// Returns the current state of the terminal as the system knows it. It is cheap enough to call
    /// every millisecond.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn state(&self) -> Result<TerminalState> {
        self.host
            .service(STATE, &TerminalRef { terminal: self.number, ..TerminalRef::default() })
            .await
    }

    /// Ends the program and all its child processes. The exit is the next event. After the exit,
    /// and while the [`TerminalStream`] exists, it ends the processes that the program left behind.
    ///
    /// # Errors
    /// If the program cannot be ended.
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(END, &TerminalRef { terminal: self.number, ..TerminalRef::default() })
            .await
    }
}
