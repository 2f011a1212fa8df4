//! Programs that a call runs: [`Process`], started by [`Cx::process`](crate::Reporter::process).

use jaato_types::process::{
    self, OutputStream, ProcessEvent, ProcessExit, ProcessRef, ProcessSignal, ProcessWrite, Signal,
    Spawn, SpawnOnTerminal, Spawned,
};
use jaato_types::{Error, ErrorKind, Result, host_process};

use crate::context::Reporter;
use crate::context::stream::Stream;

/// A program that runs for a call. Dropping it ends the program and all that it started.
///
/// Its output waits in pipes until it is read: a program whose output nobody reads stands still.
pub struct Process {
    control: ProcessControl,
    events: ProcessEvents,
}

/// One half of a [`Process`]: what can be done with it.
#[derive(Clone)]
pub struct ProcessControl {
    host: Reporter,
    side: Side,
    number: u64,
    pid: u32,
}

/// On whose side a program runs.
#[derive(Clone, Copy)]
enum Side {
    /// The session's execution environment; an environment's own programs are the host's.
    Session,
    /// The machine of the host.
    Host,
}

impl Side {
    fn write(self) -> &'static str {
        match self {
            Self::Session => process::WRITE,
            Self::Host => host_process::WRITE,
        }
    }

    fn signal(self) -> &'static str {
        match self {
            Self::Session => process::SIGNAL,
            Self::Host => host_process::SIGNAL,
        }
    }

    fn end(self) -> &'static str {
        match self {
            Self::Session => process::END,
            Self::Host => host_process::END,
        }
    }
}

/// The other half of a [`Process`]: what it does. Dropping it ends the program and all that it
/// started.
pub struct ProcessEvents(Stream);

/// What a program has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// It has printed something: at most 64 KiB, in the order in which it came, cut anywhere.
    Output {
        /// Where to.
        stream: OutputStream,
        /// What.
        bytes: Vec<u8>,
    },
    /// It has ended, and everything that it had printed by then was told.
    Exited(ProcessExit),
}

impl Reporter {
    /// Starts a program, watched by the host: it ends with this call, however the call ends.
    ///
    /// It gets the host's variables without those that hold or look like secrets, and nothing else
    /// of the host's. What it leaves running when it exits lives on until the host ends.
    ///
    /// ```
    /// use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::process::{Happened, Spawn};
    ///
    /// /// Counts the files here.
    /// async fn count_files(cx: &Cx) -> Result<usize> {
    ///     let mut process = cx.process(&Spawn::shell("ls").deadline_ms(10_000)).await?;
    ///     let mut lines = 0;
    ///     while let Some(happened) = process.next().await? {
    ///         match happened {
    ///             Happened::Output { bytes, .. } => {
    ///                 lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
    ///             }
    ///             Happened::Exited(exit) if exit.code == Some(0) => {}
    ///             Happened::Exited(exit) => return Err(Error::failed(format!("ls: {exit:?}"))),
    ///         }
    ///     }
    ///     Ok(lines)
    /// }
    /// ```
    ///
    /// # Errors
    /// `not_found` for a program or directory that is not there, `limit_reached` when too many run,
    /// and what else keeps it from being started; `unknown_operation` when the session has no
    /// environment that runs programs.
    pub async fn process(&self, spawn: &Spawn) -> Result<Process> {
        let spawned = self.service(process::SPAWN, spawn).await?;
        Ok(self.spawned(spawned, Side::Session))
    }

    /// Starts a program of the machine that the host runs on, outside of the session's environment:
    /// a server of tools, say, which a session in a container could not reach otherwise. Asked of a
    /// [`Home`](crate::Home), it runs as long as the instance, else as long as the call; none
    /// outlives the host. The plugin lists `host_process` in
    /// [`Description::services`](jaato_types::Description::services), and a person grants it.
    ///
    /// It gets the host's variables without those that hold or look like secrets.
    ///
    /// # Errors
    /// As [`Reporter::process`]; `permission_denied` without the grant.
    pub async fn host_process(&self, spawn: &Spawn) -> Result<Process> {
        let spawned = self.service(host_process::SPAWN, spawn).await?;
        Ok(self.spawned(spawned, Side::Host))
    }

    /// Starts a program on a terminal of the plugin's, watched by the host as any other: what
    /// execution environments make their terminals of. It prints to the terminal, so that its exit
    /// is all that is told.
    ///
    /// # Errors
    /// As [`Reporter::process`]; `unknown_operation` for a plugin that is no execution environment.
    pub async fn process_on_terminal(&self, spawn: &SpawnOnTerminal) -> Result<Process> {
        let spawned = self.service(process::SPAWN_ON_TERMINAL, spawn).await?;
        Ok(self.spawned(spawned, Side::Session))
    }

    fn spawned(&self, spawned: Spawned, side: Side) -> Process {
        let Spawned { process: number, pid, handle, .. } = spawned;
        let events = ProcessEvents(Stream::new(self.clone(), handle));
        Process { control: ProcessControl { host: self.clone(), side, number, pid }, events }
    }
}

impl std::ops::Deref for Process {
    type Target = ProcessControl;

    fn deref(&self) -> &ProcessControl {
        &self.control
    }
}

impl ProcessEvents {
    /// Waits for what it does next; nothing after its exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// What the host answers when it lost the program; `cancelled` when the call ended.
    pub async fn next(&mut self) -> Result<Option<Happened>> {
        while let Some((event, bytes)) = self.0.next_event().await? {
            return Ok(Some(match event {
                ProcessEvent::Output { stream, .. } => Happened::Output { stream, bytes },
                ProcessEvent::Exited(exit) => Happened::Exited(exit),
                // A newer host tells more than this sdk knows.
                ProcessEvent::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

impl ProcessControl {
    /// Returns its process id, and that of its process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes to its standard input, which [`Spawn::piped_stdin`] made a pipe; waits while that is
    /// full. Read its output meanwhile, or both may wait for each other.
    ///
    /// # Errors
    /// `io` when it reads no more; `invalid_arguments` when its input is no pipe.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: false, ..ProcessWrite::default() };
        self.host.service_with_bytes(self.side.write(), &write, bytes).await
    }

    /// Ends its standard input.
    ///
    /// # Errors
    /// As [`ProcessControl::write`].
    pub async fn close_input(&self) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: true, ..ProcessWrite::default() };
        self.host.service(self.side.write(), &write).await
    }

    /// Sends a signal to its process group. Does nothing when nothing of it is left.
    ///
    /// # Errors
    /// What the host answers.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = ProcessSignal { process: self.number, signal, ..ProcessSignal::default() };
        self.host.service(self.side.signal(), &signal).await
    }

    /// Ends it and all that it started, with a moment to tidy up; [`Process::next`] then tells the
    /// rest of its output and its exit. After its exit, ends what it left running.
    ///
    /// # Errors
    /// What the host answers.
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(self.side.end(), &ProcessRef { process: self.number, ..ProcessRef::default() })
            .await
    }
}

impl Process {
    /// Waits for what it does next; nothing after its exit. Dropping the wait loses nothing.
    ///
    /// # Errors
    /// As [`ProcessEvents::next`].
    pub async fn next(&mut self) -> Result<Option<Happened>> {
        self.events.next().await
    }

    /// Takes it apart, so that one may wait for what it does while another writes to it.
    pub fn split(self) -> (ProcessControl, ProcessEvents) {
        (self.control, self.events)
    }

    /// Reads to the exit and gives both outputs, each at most so many bytes.
    ///
    /// # Errors
    /// As [`Process::next`]; `limit_reached` for more output than that, and the program is ended.
    pub async fn finish(mut self, bytes_max: usize) -> Result<Finished> {
        let mut finished = Finished::default();
        while let Some(happened) = self.next().await? {
            let (kept, bytes) = match happened {
                Happened::Output { stream: OutputStream::Stdout, bytes } => {
                    (&mut finished.stdout, bytes)
                }
                Happened::Output { stream: OutputStream::Stderr, bytes } => {
                    (&mut finished.stderr, bytes)
                }
                Happened::Exited(exit) => {
                    finished.exit = exit;
                    continue;
                }
            };
            if kept.len() + bytes.len() > bytes_max {
                let text = format!("the program prints more than {bytes_max} bytes");
                return Err(Error::new(ErrorKind::LimitReached, text));
            }
            kept.extend_from_slice(&bytes);
        }
        Ok(finished)
    }
}

/// What a program has printed, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finished {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Its exit.
    pub exit: ProcessExit,
}
