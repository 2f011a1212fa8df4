//! A command in the container: its output, its input and its end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use futures_util::StreamExt as _;
use jaato_plugin_sdk::types::process::{LeftoverProcess, Signal};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::container_context::{self, ContainerContext, ExecRequest};
use crate::errors;
use crate::link::{EngineInputStream, ExecStreams, LogOutputStream};
use crate::wrapper::{self, WrapperReport};

/// The first and the longest interval at which the engine is asked whether a silent command has
/// ended. Its background processes may hold its output open.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_LAST: Duration = Duration::from_millis(400);

/// After the end of the command, this silence means that all output was read.
const QUIET: Duration = Duration::from_millis(20);

/// The time between the request to end a command and its end by force.
const GRACE: Duration = Duration::from_millis(50);

/// A command to run.
#[derive(Debug, Clone, Default)]
pub struct ContainerCommandSpec {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// A folder in the container. A relative path starts at the workspace.
    pub folder: Option<PathBuf>,
    /// Variables in addition to the container's own.
    pub variables: Vec<(String, String)>,
    /// The standard input.
    pub stdin: CommandInput,
}

/// The standard input of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandInput {
    /// Empty.
    #[default]
    Closed,
    /// Written with [`ContainerCommand::write_input`].
    Piped,
}

/// An event of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandEvent {
    /// Bytes of the standard output.
    Stdout(Vec<u8>),
    /// Bytes of the standard error.
    Stderr(Vec<u8>),
    /// The end of the command, which is the last piece.
    Exit(CommandExit),
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandExit {
    /// The exit code. Above 128, it may be the number of a signal plus 128.
    pub code: i64,
    /// The processes that it left running.
    pub left_running: Vec<LeftoverProcess>,
}

/// A command that runs or has ended. Dropping it ends the command.
pub struct ContainerCommand {
    place: ContainerContext,
    exec: String,
    session: u32,
    output: Mutex<PendingOutput>,
    input: Mutex<Option<EngineInputStream>>,
    has_ended: watch::Sender<bool>,
}

enum OutputStep {
    Output(CommandEvent),
    Code(i64),
}

struct PendingOutput {
    pieces: LogOutputStream,
    early: VecDeque<CommandEvent>,
    /// The code, before all output was read.
    code: Option<i64>,
    /// The code, after all output was read.
    end: Option<i64>,
    is_done: bool,
    look_at: Instant,
    pause: Duration,
}

impl ContainerCommand {
    /// Starts a command and returns once it runs. Dropping the future ends the command.
    ///
    /// # Errors
    /// - `unavailable` if the container or the engine is gone.
    /// - `not_found` if the folder or the program does not exist.
    /// - `invalid_arguments` if the program is empty.
    /// - `timeout` if the engine is slow.
    pub async fn start(place: ContainerContext, spec: ContainerCommandSpec) -> Result<Self> {
        if spec.words.first().is_none_or(String::is_empty) {
            return Err(Error::new(ErrorKind::InvalidArguments, "the command is empty"));
        }
        let (sender, receiver) = oneshot::channel();
        // Uses a separate task, because a started command cannot be ended until its session is
        // known.
        tokio::spawn(async move {
            let deadline = place.engine.docker_client().timeout();
            let address = place.engine.address().clone();
            let started = timeout(deadline, begin_command(place, spec)).await;
            let started = started.unwrap_or_else(|_| Err(errors::engine_timeout_error(&address)));
            // If no one receives the handle, dropping it ends the command.
            let _ = sender.send(started);
        });
        receiver.await.unwrap_or_else(|_| Err(Error::cancelled()))
    }

    /// Returns the command's session number in the container.
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Waits for the next event. Returns `None` after the end. Cancel safe.
    ///
    /// # Errors
    /// `unavailable` if the container died or the connection to the engine broke. No event follows.
    pub async fn next(&self) -> Result<Option<CommandEvent>> {
        let mut output = self.output.lock().await;
        if output.is_done {
            return Ok(None);
        }
        let code = match self.next_output_or_exit_code(&mut output).await {
            Ok(OutputStep::Output(piece)) => return Ok(Some(piece)),
            Ok(OutputStep::Code(code)) => code,
            Err(error) => {
                output.is_done = true;
                self.has_ended.send_replace(true);
                return Err(error);
            }
        };
        self.has_ended.send_replace(true);
        // If the guardian has ended, the processes are unknown.
        let left_running =
            self.place.guardian.unregister_command(self.session).await.unwrap_or_default();
        output.is_done = true;
        Ok(Some(CommandEvent::Exit(CommandExit { code, left_running })))
    }

    async fn next_output_or_exit_code(&self, output: &mut PendingOutput) -> Result<OutputStep> {
        loop {
            if let Some(piece) = output.early.pop_front() {
                return Ok(OutputStep::Output(piece));
            }
            if let Some(code) = output.end {
                return Ok(OutputStep::Code(code));
            }
            tokio::select! {
                biased;
                piece = output.pieces.next() => match piece {
                    Some(Ok(piece)) => {
                        output.early.extend(to_command_event(piece));
                        output.schedule_next_check();
                    }
                    // The end of the stream. An error means that the connection broke.
                    Some(Err(_)) | None => output.end = Some(self.wait_for_exit_code().await?),
                },
                () = sleep_until(output.look_at) => {
                    if output.code.is_some() {
                        output.end = output.code;
                        continue;
                    }
                    output.code = self.place.command_exit_code(&self.exec).await?;
                    output.lengthen_pause();
                }
            }
        }
    }

    /// Waits for the exit code, because the stream may end shortly before the engine knows the
    /// code.
    async fn wait_for_exit_code(&self) -> Result<i64> {
        let mut pause = Duration::from_millis(1);
        while pause < LOOK_LAST {
            if let Some(code) = self.place.command_exit_code(&self.exec).await? {
                return Ok(code);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(match self.place.watch.end_reason() {
            Some(how) => errors::container_ended_error(&self.place.name, &how),
            None => errors::connection_lost_error(self.place.engine.address(), &self.place.name),
        })
    }

    /// Writes to the standard input. Waits until the command reads the bytes or has ended.
    ///
    /// # Errors
    /// `io` if the command has no input, it was closed, or the command does not read it.
    pub async fn write_input(&self, bytes: &[u8]) -> Result<()> {
        let mut input = self.input.lock().await;
        let Some(writer) = input.as_mut() else {
            return Err(Error::new(ErrorKind::Io, "the command's standard input is closed"));
        };
        let reads_no_more = |why: &str| {
            Err(Error::new(ErrorKind::Io, format!("the command no longer reads input: {why}")))
        };
        let writing = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        // The engine does not report that it ignores input for an ended command.
        tokio::select! {
            biased;
            () = self.wait_until_ended() => reads_no_more("it has ended"),
            written = writing => match written {
                Ok(()) => Ok(()),
                Err(error) => reads_no_more(&error.to_string()),
            },
        }
    }

    /// Waits for the command's end, whether or not its output is read.
    async fn wait_until_ended(&self) {
        let mut has_ended = self.has_ended.subscribe();
        let looking = async {
            let mut pause = LOOK_FIRST;
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK_LAST);
                // An error means that the container is gone, so the command has ended too.
                if !matches!(self.place.command_exit_code(&self.exec).await, Ok(None)) {
                    return;
                }
            }
        };
        tokio::select! {
            // The sender lives as long as this command.
            _ = has_ended.wait_for(|has_ended| *has_ended) => {}
            () = looking => {}
        }
    }

    /// Closes the standard input.
    pub async fn close_input(&self) {
        if let Some(mut writer) = self.input.lock().await.take() {
            // The other side may have closed it.
            let _ = writer.shutdown().await;
        }
    }

    /// Sends a signal to the command's process group. Returns true if the group exists.
    ///
    /// # Errors
    /// `unavailable` if the container is gone.
    pub async fn signal_group(&self, signal: Signal) -> Result<bool> {
        self.place.signal_group(self.session, signal).await
    }

    /// Asks the command to end, and soon after ends it with all its processes. Earlier output can
    /// still be read.
    ///
    /// # Errors
    /// `unavailable` if the container is gone, and the command with it.
    pub async fn end_command(&self) -> Result<()> {
        self.signal_group(Signal::Terminate).await?;
        tokio::time::sleep(GRACE).await;
        self.place.end_command(self.session).await
    }
}

impl Drop for ContainerCommand {
    fn drop(&mut self) {
        if !*self.has_ended.borrow() {
            self.place.guardian.request_end(self.session);
        }
    }
}

impl PendingOutput {
    fn schedule_next_check(&mut self) {
        let pause = if self.code.is_some() { QUIET } else { self.pause };
        self.look_at = Instant::now() + pause;
    }

    fn lengthen_pause(&mut self) {
        self.pause = (self.pause * 2).min(LOOK_LAST);
        self.schedule_next_check();
    }
}

async fn begin_command(
    place: ContainerContext,
    spec: ContainerCommandSpec,
) -> Result<ContainerCommand> {
    let folder = place.folder_of_command(spec.folder.as_deref());
    let variables = place.variables_of_command(&spec.variables);
    let request = ExecRequest {
        words: wrapper::plain_command_words(&folder, &spec.words),
        variables: &variables,
        has_input: spec.stdin == CommandInput::Piped,
        has_terminal: false,
        user: place.user.as_deref(),
    };
    let exec = place.create_exec(request).await?;
    let started = container_context::start_exec(&place.engine, &exec).await;
    let ExecStreams { input, output: mut pieces } =
        started.map_err(|error| place.explain_error(&error))?;
    let (session, early) = read_session_number(&place, &mut pieces, &folder, &spec.words).await?;
    place.guardian.register_command(session);
    let output = PendingOutput {
        pieces,
        early,
        code: None,
        end: None,
        is_done: false,
        look_at: Instant::now() + LOOK_FIRST,
        pause: LOOK_FIRST,
    };
    Ok(ContainerCommand {
        place,
        exec,
        session,
        output: Mutex::new(output),
        // Kept open even if unused, because the engine may close both directions with it.
        input: Mutex::new(Some(input)),
        has_ended: watch::Sender::new(false),
    })
}

/// Reads until the session number is known. The two output streams are independent, so some output
/// may arrive before it.
async fn read_session_number(
    place: &ContainerContext,
    pieces: &mut LogOutputStream,
    folder: &Path,
    words: &[String],
) -> Result<(u32, VecDeque<CommandEvent>)> {
    let mut line = Vec::new();
    let mut early = VecDeque::new();
    loop {
        match pieces.next().await {
            Some(Ok(LogOutput::StdErr { message })) => {
                line.extend_from_slice(&message);
                match wrapper::take_report(&mut line)? {
                    Some(WrapperReport::Session(session)) => {
                        if !line.is_empty() {
                            early.push_back(CommandEvent::Stderr(line));
                        }
                        return Ok((session, early));
                    }
                    Some(WrapperReport::NoFolder) => {
                        return Err(wrapper::missing_folder_error(folder));
                    }
                    Some(WrapperReport::NoProgram) => {
                        return Err(wrapper::missing_program_error(words));
                    }
                    None => {}
                }
            }
            Some(Ok(other)) => early.extend(to_command_event(other)),
            Some(Err(error)) => return Err(broken_stream_error(place, &error)),
            None => return Err(early_end_error(place, line, early).await),
        }
    }
}

fn broken_stream_error(place: &ContainerContext, error: &EngineError) -> Error {
    match place.watch.end_reason() {
        Some(how) => errors::container_ended_error(&place.name, &how),
        None => place.lost_command_error(error),
    }
}

/// Returns the error of a command that did not start. The engine reports it on standard output, and
/// a shell on standard error.
async fn early_end_error(
    place: &ContainerContext,
    mut said: Vec<u8>,
    early: VecDeque<CommandEvent>,
) -> Error {
    said.extend(early.into_iter().flat_map(|piece| match piece {
        CommandEvent::Stdout(bytes) | CommandEvent::Stderr(bytes) => bytes,
        CommandEvent::Exit(_) => Vec::new(),
    }));
    if said.is_empty()
        && let Some(how) = place.watch.end_reason_within(LOOK_LAST).await
    {
        return errors::container_ended_error(&place.name, &how);
    }
    wrapper::command_start_error(&said)
}

fn to_command_event(piece: LogOutput) -> Option<CommandEvent> {
    match piece {
        LogOutput::StdOut { message } | LogOutput::Console { message } => {
            Some(CommandEvent::Stdout(message.into()))
        }
        LogOutput::StdErr { message } => Some(CommandEvent::Stderr(message.into())),
        LogOutput::StdIn { .. } => None,
    }
}
