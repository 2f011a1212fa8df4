//! Programs of a call: [`Process`], started by [`Cx::process`](crate::Reporter::process).

use jaato_types::process::{
    self, OutputStream, ProcessEvent, ProcessExit, ProcessRef, ProcessSignal, ProcessWrite, Signal,
    Spawn, SpawnAnswer, SpawnOnTerminal,
};
use jaato_types::{Error, ErrorKind, Result, host_process};

use crate::context::Reporter;
use crate::context::stream::ServiceStream;

/// A program that runs for a call. Dropping it ends the program and all its child processes.
///
/// The output stays in pipes until it is read. If the plugin does not read it, the program blocks.
pub struct Process {
    control: ProcessControl,
    events: ProcessEvents,
}

/// The half of a [`Process`] that controls the program.
#[derive(Clone)]
pub struct ProcessControl {
    host: Reporter,
    side: ProcessLocation,
    number: u64,
    pid: u32,
}

/// The side on which a program runs.
#[derive(Clone, Copy)]
enum ProcessLocation {
    /// The session's execution environment. Programs of an environment plugin run on the host.
    Session,
    /// The machine of the host.
    Host,
}

impl ProcessLocation {
    fn write_operation(self) -> &'static str {
        match self {
            Self::Session => process::WRITE,
            Self::Host => host_process::WRITE,
        }
    }

    fn signal_operation(self) -> &'static str {
        match self {
            Self::Session => process::SIGNAL,
            Self::Host => host_process::SIGNAL,
        }
    }

    fn end_operation(self) -> &'static str {
        match self {
            Self::Session => process::END,
            Self::Host => host_process::END,
        }
    }
}

/// The half of a [`Process`] that returns the program's events. Dropping it ends the program and
/// all its child processes.
pub struct ProcessEvents(ServiceStream);

/// An event of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessUpdate {
    /// The program has printed output: at most 64 KiB, in its original order, split anywhere.
    Output {
        /// The output stream.
        stream: OutputStream,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// The program has ended, and all its output until then has been returned.
    Exited(ProcessExit),
}

impl Reporter {
    /// Starts a program that the host watches. It ends with this call, regardless of how the call
    /// ends.
    ///
    /// The program gets the host's environment variables except for those that hold or look like
    /// secrets. Processes that it leaves behind when it exits run until the host ends.
    ///
    /// ```
    /// use jaato_plugin_sdk::prelude::*;
    /// use jaato_plugin_sdk::process::{ProcessUpdate, Spawn};
    ///
    /// /// Counts the files here.
    /// async fn count_files(cx: &Cx) -> Result<usize> {
    ///     let mut process = cx.process(&Spawn::shell("ls").deadline_ms(10_000)).await?;
    ///     let mut lines = 0;
    ///     while let Some(happened) = process.next().await? {
    ///         match happened {
    ///             ProcessUpdate::Output { bytes, .. } => {
    ///                 lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
    ///             }
    ///             ProcessUpdate::Exited(exit) if exit.code == Some(0) => {}
    ///             ProcessUpdate::Exited(exit) => {
    ///                 return Err(Error::failed(format!("ls: {exit:?}")));
    ///             }
    ///         }
    ///     }
    ///     Ok(lines)
    /// }
    /// ```
    ///
    /// # Errors
    /// `not_found` for a program or directory that does not exist; `limit_reached` if too many
    /// programs run; `unknown_operation` if the session has no environment that runs programs;
    /// other errors that prevent the start.
    pub async fn process(&self, spawn: &Spawn) -> Result<Process> {
        let spawned = self.service(process::SPAWN, spawn).await?;
        Ok(self.new_process(spawned, ProcessLocation::Session))
    }

    /// Starts a program on the host's machine, outside of the session's environment. An example is
    /// a tool server that a session in a container could not reach otherwise. Called on a
    /// [`Home`](crate::Home), the program runs as long as the instance, otherwise as long as the
    /// call, and never longer than the host. The plugin must list `host_process` in
    /// [`Description::services`](jaato_types::Description::services), and the user must grant it.
    ///
    /// The program gets the host's environment variables except for those that hold or look like
    /// secrets.
    ///
    /// # Errors
    /// As [`Reporter::process`]; `permission_denied` without the grant.
    pub async fn host_process(&self, spawn: &Spawn) -> Result<Process> {
        let spawned = self.service(host_process::SPAWN, spawn).await?;
        Ok(self.new_process(spawned, ProcessLocation::Host))
    }

    /// Starts a program on one of the plugin's terminals. The host watches it like any other
    /// program. Execution environments create their terminals with it. The program prints to the
    /// terminal, so its exit is the only event.
    ///
    /// # Errors
    /// As [`Reporter::process`]; `unknown_operation` if the plugin is not an execution environment.
    pub async fn process_on_terminal(&self, spawn: &SpawnOnTerminal) -> Result<Process> {
        let spawned = self.service(process::SPAWN_ON_TERMINAL, spawn).await?;
        Ok(self.new_process(spawned, ProcessLocation::Session))
    }

    fn new_process(&self, spawned: SpawnAnswer, side: ProcessLocation) -> Process {
        let SpawnAnswer { process: number, pid, handle, .. } = spawned;
        let events = ProcessEvents(ServiceStream::new(self.clone(), handle));
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
    /// Waits for the program's next event. Returns `None` after the exit. Dropping the wait loses
    /// nothing.
    ///
    /// # Errors
    /// The host's error if it lost the program; `cancelled` if the call ended.
    pub async fn next(&mut self) -> Result<Option<ProcessUpdate>> {
        while let Some((event, bytes)) = self.0.next_event().await? {
            return Ok(Some(match event {
                ProcessEvent::Output { stream, .. } => ProcessUpdate::Output { stream, bytes },
                ProcessEvent::Exited(exit) => ProcessUpdate::Exited(exit),
                // A newer host may send events that this SDK does not know.
                ProcessEvent::Unknown => continue,
            }));
        }
        Ok(None)
    }
}

impl ProcessControl {
    /// Returns the id of the process, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes to standard input, which [`Spawn::piped_stdin`] makes a pipe. Waits while the pipe is
    /// full. Read the program's output at the same time, or both may wait for each other.
    ///
    /// # Errors
    /// `io` if the program no longer reads; `invalid_arguments` if its input is not a pipe.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: false, ..ProcessWrite::default() };
        self.host.service_with_bytes(self.side.write_operation(), &write, bytes).await
    }

    /// Closes standard input.
    ///
    /// # Errors
    /// As [`ProcessControl::write`].
    pub async fn close_input(&self) -> Result<()> {
        let write = ProcessWrite { process: self.number, close: true, ..ProcessWrite::default() };
        self.host.service(self.side.write_operation(), &write).await
    }

    /// Sends a signal to the program's process group. Does nothing if no process of the group is
    /// left.
    ///
    /// # Errors
    /// The host's error.
    pub async fn signal(&self, signal: Signal) -> Result<()> {
        let signal = ProcessSignal { process: self.number, signal, ..ProcessSignal::default() };
        self.host.service(self.side.signal_operation(), &signal).await
    }

    /// Ends the program and all its child processes, and gives them a moment to clean up.
    /// [`Process::next`] then returns the remaining output and the exit. After the exit, it ends
    /// the processes that the program left behind.
    ///
    /// # Errors
    /// The host's error.
    pub async fn end(&self) -> Result<()> {
        self.host
            .service(
                self.side.end_operation(),
                &ProcessRef { process: self.number, ..ProcessRef::default() },
            )
            .await
    }
}

impl Process {
    /// Waits for the program's next event. Returns `None` after the exit. Dropping the wait loses
    /// nothing.
    ///
    /// # Errors
    /// As [`ProcessEvents::next`].
    pub async fn next(&mut self) -> Result<Option<ProcessUpdate>> {
        self.events.next().await
    }

    /// Splits the process, so that one task can wait for events while another writes.
    pub fn split(self) -> (ProcessControl, ProcessEvents) {
        (self.control, self.events)
    }

    /// Reads until the exit and returns both outputs, each at most `bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Process::next`]; `limit_reached` if there is more output, and then the program is
    /// ended.
    pub async fn finish(mut self, bytes_max: usize) -> Result<FinishedProcess> {
        let mut finished = FinishedProcess::default();
        while let Some(happened) = self.next().await? {
            let (kept, bytes) = match happened {
                ProcessUpdate::Output { stream: OutputStream::Stdout, bytes } => {
                    (&mut finished.stdout, bytes)
                }
                ProcessUpdate::Output { stream: OutputStream::Stderr, bytes } => {
                    (&mut finished.stderr, bytes)
                }
                ProcessUpdate::Exited(exit) => {
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

/// The output and the exit of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishedProcess {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// The exit.
    pub exit: ProcessExit,
}
