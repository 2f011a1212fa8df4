//! A program on a terminal of the container: input, output, size and foreground process.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bollard::query_parameters::ResizeExecOptionsBuilder;
use jaato_plugin_sdk::types::process::{LeftoverProcess, Signal};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

use crate::command::ContainerCommandSpec;
use crate::container_context::{ContainerContext, ExecRequest};
use crate::errors::{self, EngineRequestKind};
use crate::link::EngineInputStream;
use crate::raw::{self, TerminalReader, UpgradeFailure};
use crate::wait_observer::TerminalObservation;
use crate::wrapper::{self, WrapperReport};

/// The maximum number of bytes returned by one read.
const READ_BYTES_MAX: usize = 64 * 1024;

/// The maximum wait for a program's exit code after its terminal is closed.
const CODE_DELAY: Duration = Duration::from_secs(5);

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// The number of rows.
    pub rows: u16,
    /// The number of columns.
    pub columns: u16,
}

/// The foreground process of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalForeground {
    /// The process group in the container.
    pub group: u32,
    /// The name of the group's first process.
    pub name: String,
    /// Whether that process waits for input from the terminal. `None` if the kernel does not show
    /// it.
    pub waits_for_input: Option<bool>,
}

/// A program on a terminal. Dropping it ends the program.
pub struct ContainerTerminal {
    place: ContainerContext,
    exec: String,
    session: u32,
    reader: Mutex<(Vec<u8>, TerminalReader)>,
    writer: Mutex<EngineInputStream>,
    has_ended: AtomicBool,
}

impl ContainerTerminal {
    /// Starts a program on a terminal of this size and returns once it runs. Ignores `spec.stdin`.
    ///
    /// # Errors
    /// The errors of [`crate::ContainerCommand::start`].
    pub async fn start_on_terminal(
        place: ContainerContext,
        spec: ContainerCommandSpec,
        size: TerminalSize,
    ) -> Result<Self> {
        if spec.words.first().is_none_or(String::is_empty) {
            return Err(Error::new(ErrorKind::InvalidArguments, "the command is empty"));
        }
        let (sender, receiver) = oneshot::channel();
        tokio::spawn(async move {
            let deadline = place.engine.docker_client().timeout();
            let address = place.engine.address().clone();
            let started = timeout(deadline, begin_terminal(place, spec, size)).await;
            let started = started.unwrap_or_else(|_| Err(errors::engine_timeout_error(&address)));
            // If no one receives the handle, dropping it ends the program.
            let _ = sender.send(started);
        });
        receiver.await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    /// Returns the program's session number in the container.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Waits for bytes from the terminal. Returns `None` at its end. Cancel safe.
    ///
    /// # Errors
    /// `unavailable` if the connection broke.
    pub async fn read_output(&self) -> Result<Option<Vec<u8>>> {
        let mut guard = self.reader.lock().await;
        let (early, reader) = &mut *guard;
        if !early.is_empty() {
            return Ok(Some(std::mem::take(early)));
        }
        let mut bytes = vec![0; READ_BYTES_MAX];
        match reader.read(&mut bytes).await {
            Ok(0) => Ok(None),
            Ok(length) => {
                bytes.truncate(length);
                Ok(Some(bytes))
            }
            Err(error) => {
                let error = bollard::errors::Error::IOError { err: error };
                Err(self.place.explain_error(&error))
            }
        }
    }

    /// Writes to the terminal, like typed input.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn write_input(&self, bytes: &[u8]) -> Result<()> {
        let mut writer = self.writer.lock().await;
        let written = match writer.write_all(bytes).await {
            Ok(()) => writer.flush().await,
            Err(error) => Err(error),
        };
        written
            .map_err(|error| Error::new(ErrorKind::Io, format!("the terminal is closed: {error}")))
    }

    /// Writes to the terminal within the time limit. Returns how many bytes the engine accepted.
    /// The engine buffers some of them if the program does not read, and does not report how many.
    ///
    /// # Errors
    /// `io` if the terminal is closed.
    pub async fn write_input_within(&self, bytes: &[u8], longest: Duration) -> Result<usize> {
        let taken = AtomicUsize::new(0);
        let write = async {
            let mut writer = self.writer.lock().await;
            loop {
                let rest = &bytes[taken.load(Ordering::Relaxed)..];
                if rest.is_empty() {
                    return writer.flush().await;
                }
                match writer.write(rest).await? {
                    0 => return Err(std::io::ErrorKind::WriteZero.into()),
                    more => taken.fetch_add(more, Ordering::Relaxed),
                };
            }
        };
        if let Ok(Err(error)) = timeout(longest, write).await {
            return Err(Error::new(ErrorKind::Io, format!("the terminal is closed: {error}")));
        }
        Ok(taken.into_inner())
    }

    /// Changes the size.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn resize_terminal(&self, size: TerminalSize) -> Result<()> {
        resize_exec(&self.place, &self.exec, size).await
    }

    /// Sends a signal to the foreground process group, like the terminal's keys.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn signal_foreground(&self, signal: Signal) -> Result<bool> {
        let group =
            self.foreground_process().await?.map_or(self.session, |foreground| foreground.group);
        self.place.signal_group(group, signal).await
    }

    /// Returns the foreground process, or `None` if the program has ended.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn foreground_process(&self) -> Result<Option<TerminalForeground>> {
        Ok(parse_foreground(&self.place.guardian.query_foreground(self.session).await?))
    }

    /// Looks at the foreground processes. Returns `None` if the program has ended.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn observe_foreground(&self) -> Result<Option<TerminalObservation>> {
        self.place.onlooker.observe_terminal(&self.place, self.session).await
    }

    /// Waits for the program's exit code after its terminal has ended. Also returns the processes
    /// that it left running, which continue until [`ContainerTerminal::end_program`] or the
    /// session's end.
    ///
    /// # Errors
    /// `unavailable` if the container died or the engine is gone, or `timeout` if the program still
    /// runs.
    pub async fn wait_for_exit(&self) -> Result<(i64, Vec<LeftoverProcess>)> {
        let asking = async {
            let mut pause = Duration::from_millis(1);
            loop {
                if let Some(code) = self.place.command_exit_code(&self.exec).await? {
                    return Ok(code);
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(100));
            }
        };
        let code = timeout(CODE_DELAY, asking).await.map_err(|_| {
            Error::new(ErrorKind::Timeout, "the program on the terminal has not ended").temporary()
        })?;
        self.has_ended.store(true, Ordering::Release);
        // If the container is gone, no processes are left.
        let left = self.place.guardian.unregister_command(self.session).await.unwrap_or_default();
        Ok((code?, left))
    }

    /// Ends the program with all its processes.
    ///
    /// # Errors
    /// `unavailable` if the container is gone, and the program with it.
    pub async fn end_program(&self) -> Result<()> {
        self.place.end_command(self.session).await
    }
}

impl Drop for ContainerTerminal {
    fn drop(&mut self) {
        if !self.has_ended.load(Ordering::Acquire) {
            self.place.guardian.request_end(self.session);
        }
    }
}

async fn begin_terminal(
    place: ContainerContext,
    spec: ContainerCommandSpec,
    size: TerminalSize,
) -> Result<ContainerTerminal> {
    let folder = place.folder_of_command(spec.folder.as_deref());
    let variables = place.variables_of_command(&spec.variables);
    let request = ExecRequest {
        words: wrapper::terminal_command_words(&folder, &spec.words),
        variables: &variables,
        has_input: true,
        has_terminal: true,
        user: place.user.as_deref(),
    };
    let exec = place.create_exec(request).await?;
    let started = raw::start_exec_on_terminal(place.engine.address(), &exec).await;
    let (mut reader, mut writer) = started.map_err(|failure| upgrade_error(&place, failure))?;
    let broken = |error| place.explain_error(&bollard::errors::Error::IOError { err: error });
    let mut bytes = Vec::new();
    let session = loop {
        match wrapper::take_report(&mut bytes)? {
            Some(WrapperReport::Session(session)) => break session,
            Some(WrapperReport::NoFolder) => return Err(wrapper::missing_folder_error(&folder)),
            Some(WrapperReport::NoProgram) => {
                return Err(wrapper::missing_program_error(&spec.words));
            }
            None => {}
        }
        if reader.read_buf(&mut bytes).await.map_err(broken)? == 0 {
            return Err(wrapper::command_start_error(&bytes));
        }
    };
    place.guardian.register_command(session);
    // From this point, a drop ends the program.
    let terminal = ContainerTerminal {
        exec,
        session,
        reader: Mutex::new((Vec::new(), Box::pin(tokio::io::empty()))),
        writer: Mutex::new(Box::pin(tokio::io::sink())),
        has_ended: AtomicBool::new(false),
        place,
    };
    resize_exec(&terminal.place, &terminal.exec, size).await?;
    let broken =
        |error| terminal.place.explain_error(&bollard::errors::Error::IOError { err: error });
    writer.write_all(b"\n").await.map_err(broken)?;
    writer.flush().await.map_err(broken)?;
    // The terminal's echo of that line comes before the program's output.
    while !bytes.contains(&b'\n') {
        if reader.read_buf(&mut bytes).await.map_err(broken)? == 0 {
            return Err(wrapper::command_start_error(&bytes));
        }
    }
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or_default();
    bytes.drain(..=end);
    *terminal.reader.lock().await = (bytes, reader);
    *terminal.writer.lock().await = writer;
    Ok(terminal)
}

async fn resize_exec(place: &ContainerContext, exec: &str, size: TerminalSize) -> Result<()> {
    let options =
        ResizeExecOptionsBuilder::new().h(size.rows.into()).w(size.columns.into()).build();
    let resized = place.engine.docker_client().resize_exec(exec, options).await;
    resized.map_err(|error| place.explain_error(&error))
}

fn upgrade_error(place: &ContainerContext, failure: UpgradeFailure) -> Error {
    let error = match failure {
        UpgradeFailure::Io(error) => bollard::errors::Error::IOError { err: error },
        UpgradeFailure::Refused(status_code, message) => {
            bollard::errors::Error::DockerResponseServerError { status_code, message }
        }
    };
    place.engine.explain_error(&error, EngineRequestKind::Command(&place.name))
}

/// Parses `GROUP STATE WAITS_IN NAME`.
fn parse_foreground(answer: &str) -> Option<TerminalForeground> {
    let mut words = answer.splitn(4, ' ');
    let group = words.next()?.parse().ok()?;
    let state = words.next().unwrap_or_default();
    let channel = words.next().unwrap_or_default();
    let name = words.next().unwrap_or_default().to_owned();
    let waits_for_input = match (state, channel) {
        ("S", "n_tty_read" | "tty_read") => Some(true),
        // The kernel hides the wait channel from other users. A process that waits for several
        // things may wait for the terminal among them. `wait_woken` is used for both terminals and
        // sockets.
        ("S", "-" | "0" | "" | "wait_woken") => None,
        ("S", channel) if channel.contains("poll") || channel.contains("select") => None,
        _ => Some(false),
    };
    Some(TerminalForeground { group, name, waits_for_input })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_foreground(answer: &str, expected: Option<(u32, &str, Option<bool>)>) {
        let found = parse_foreground(answer);
        let expected = expected.map(|(group, name, waits_for_input)| TerminalForeground {
            group,
            name: name.to_owned(),
            waits_for_input,
        });
        assert_eq!(found, expected);
    }

    #[test]
    fn process_reading_the_terminal_waits_for_input() {
        check_foreground("12 S n_tty_read my shell", Some((12, "my shell", Some(true))));
        check_foreground("12 S do_wait sh", Some((12, "sh", Some(false))));
        check_foreground("12 R - sh", Some((12, "sh", Some(false))));
        check_foreground("12 S - sh", Some((12, "sh", None)));
        check_foreground("12 S do_epoll_wait node", Some((12, "node", None)));
        check_foreground("12", Some((12, "", Some(false))));
        check_foreground("", None);
        check_foreground("-1", None);
    }
}
