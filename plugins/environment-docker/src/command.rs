//! A command in the container: its output, its input and its end.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use futures_util::StreamExt as _;
use jaato_plugin_sdk::types::process::{LeftRunning, Signal};
use jaato_plugin_sdk::types::{Error, ErrorKind, Result};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{Mutex, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

use crate::errors;
use crate::link::{Pieces, Streams, Writer};
use crate::place::{self, Place, Request};
use crate::wrapper::{self, Told};

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
pub struct Spec {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// A folder in the container. A relative path starts at the workspace.
    pub folder: Option<PathBuf>,
    /// Variables in addition to the container's own.
    pub variables: Vec<(String, String)>,
    /// The standard input.
    pub stdin: Stdin,
}

/// The standard input of a command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stdin {
    /// Empty.
    #[default]
    Closed,
    /// Written with [`Command::write`].
    Piped,
}

/// An event of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the standard output.
    Stdout(Vec<u8>),
    /// Bytes of the standard error.
    Stderr(Vec<u8>),
    /// The end of the command, which is the last piece.
    Exit(Exit),
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit code. Above 128, it may be the number of a signal plus 128.
    pub code: i64,
    /// The processes that it left running.
    pub left_running: Vec<LeftRunning>,
}

/// A command that runs or has ended. Dropping it ends the command.
pub struct Command {
    place: Place,
    exec: String,
    session: u32,
    output: Mutex<Output>,
    input: Mutex<Option<Writer>>,
    has_ended: watch::Sender<bool>,
}

enum Step {
    Output(Piece),
    Code(i64),
}

struct Output {
    pieces: Pieces,
    early: VecDeque<Piece>,
    /// The code, before all output was read.
    code: Option<i64>,
    /// The code, after all output was read.
    end: Option<i64>,
    is_done: bool,
    look_at: Instant,
    pause: Duration,
}

impl Command {
    /// Starts a command and returns once it runs. Dropping the future ends the command.
    ///
    /// # Errors
    /// - `unavailable` if the container or the engine is gone.
    /// - `not_found` if the folder or the program does not exist.
    /// - `invalid_arguments` if the program is empty.
    /// - `timeout` if the engine is slow.
    pub async fn start(place: Place, spec: Spec) -> Result<Self> {
        if spec.words.first().is_none_or(String::is_empty) {
            return Err(Error::new(ErrorKind::InvalidArguments, "the command is empty"));
        }
        let (sender, receiver) = oneshot::channel();
        // Uses a separate task, because a started command cannot be ended until its session is
        // known.
        tokio::spawn(async move {
            let deadline = place.engine.docker().timeout();
            let address = place.engine.address().clone();
            let started = timeout(deadline, begin(place, spec)).await;
            let started = started.unwrap_or_else(|_| Err(errors::slow(&address)));
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
    pub async fn next(&self) -> Result<Option<Piece>> {
        let mut output = self.output.lock().await;
        if output.is_done {
            return Ok(None);
        }
        let code = match self.output_or_code(&mut output).await {
            Ok(Step::Output(piece)) => return Ok(Some(piece)),
            Ok(Step::Code(code)) => code,
            Err(error) => {
                output.is_done = true;
                self.has_ended.send_replace(true);
                return Err(error);
            }
        };
        self.has_ended.send_replace(true);
        // If the guardian has ended, the processes are unknown.
        let left_running = self.place.guardian.ended(self.session).await.unwrap_or_default();
        output.is_done = true;
        Ok(Some(Piece::Exit(Exit { code, left_running })))
    }

    async fn output_or_code(&self, output: &mut Output) -> Result<Step> {
        loop {
            if let Some(piece) = output.early.pop_front() {
                return Ok(Step::Output(piece));
            }
            if let Some(code) = output.end {
                return Ok(Step::Code(code));
            }
            tokio::select! {
                biased;
                piece = output.pieces.next() => match piece {
                    Some(Ok(piece)) => {
                        output.early.extend(convert(piece));
                        output.postpone();
                    }
                    // The end of the stream. An error means that the connection broke.
                    Some(Err(_)) | None => output.end = Some(self.code_at_end().await?),
                },
                () = sleep_until(output.look_at) => {
                    if output.code.is_some() {
                        output.end = output.code;
                        continue;
                    }
                    output.code = self.place.code(&self.exec).await?;
                    output.rest();
                }
            }
        }
    }

    /// Waits for the exit code, because the stream may end shortly before the engine knows the
    /// code.
    async fn code_at_end(&self) -> Result<i64> {
        let mut pause = Duration::from_millis(1);
        while pause < LOOK_LAST {
            if let Some(code) = self.place.code(&self.exec).await? {
                return Ok(code);
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(match self.place.watch.how() {
            Some(how) => errors::gone(&self.place.name, &how),
            None => errors::restarted(self.place.engine.address(), &self.place.name),
        })
    }

    /// Writes to the standard input. Waits until the command reads the bytes or has ended.
    ///
    /// # Errors
    /// `io` if the command has no input, it was closed, or the command does not read it.
    pub async fn write(&self, bytes: &[u8]) -> Result<()> {
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
            () = self.ended() => reads_no_more("it has ended"),
            written = writing => match written {
                Ok(()) => Ok(()),
                Err(error) => reads_no_more(&error.to_string()),
            },
        }
    }

    /// Waits for the command's end, whether or not its output is read.
    async fn ended(&self) {
        let mut has_ended = self.has_ended.subscribe();
        let looking = async {
            let mut pause = LOOK_FIRST;
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LOOK_LAST);
                // An error means that the container is gone, so the command has ended too.
                if !matches!(self.place.code(&self.exec).await, Ok(None)) {
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
    pub async fn signal(&self, signal: Signal) -> Result<bool> {
        self.place.signal(self.session, signal).await
    }

    /// Asks the command to end, and soon after ends it with all its processes. Earlier output can
    /// still be read.
    ///
    /// # Errors
    /// `unavailable` if the container is gone, and the command with it.
    pub async fn end(&self) -> Result<()> {
        self.signal(Signal::Terminate).await?;
        tokio::time::sleep(GRACE).await;
        self.place.end(self.session).await
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        if !*self.has_ended.borrow() {
            self.place.guardian.end(self.session);
        }
    }
}

impl Output {
    fn postpone(&mut self) {
        let pause = if self.code.is_some() { QUIET } else { self.pause };
        self.look_at = Instant::now() + pause;
    }

    fn rest(&mut self) {
        self.pause = (self.pause * 2).min(LOOK_LAST);
        self.postpone();
    }
}

async fn begin(place: Place, spec: Spec) -> Result<Command> {
    let folder = place.folder_of(spec.folder.as_deref());
    let variables = place.variables_with(&spec.variables);
    let request = Request {
        words: wrapper::plain(&folder, &spec.words),
        variables: &variables,
        has_input: spec.stdin == Stdin::Piped,
        has_terminal: false,
        user: place.user.as_deref(),
    };
    let exec = place.create(request).await?;
    let started = place::start(&place.engine, &exec).await;
    let Streams { input, output: mut pieces } = started.map_err(|error| place.explain(&error))?;
    let (session, early) = session(&place, &mut pieces, &folder, &spec.words).await?;
    place.guardian.track(session);
    let output = Output {
        pieces,
        early,
        code: None,
        end: None,
        is_done: false,
        look_at: Instant::now() + LOOK_FIRST,
        pause: LOOK_FIRST,
    };
    Ok(Command {
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
async fn session(
    place: &Place,
    pieces: &mut Pieces,
    folder: &Path,
    words: &[String],
) -> Result<(u32, VecDeque<Piece>)> {
    let mut line = Vec::new();
    let mut early = VecDeque::new();
    loop {
        match pieces.next().await {
            Some(Ok(LogOutput::StdErr { message })) => {
                line.extend_from_slice(&message);
                match wrapper::take_line(&mut line)? {
                    Some(Told::Session(session)) => {
                        if !line.is_empty() {
                            early.push_back(Piece::Stderr(line));
                        }
                        return Ok((session, early));
                    }
                    Some(Told::NoFolder) => return Err(wrapper::no_folder(folder)),
                    Some(Told::NoProgram) => return Err(wrapper::no_program(words)),
                    None => {}
                }
            }
            Some(Ok(other)) => early.extend(convert(other)),
            Some(Err(error)) => return Err(broken(place, &error)),
            None => return Err(ended_early(place, line, early).await),
        }
    }
}

fn broken(place: &Place, error: &EngineError) -> Error {
    match place.watch.how() {
        Some(how) => errors::gone(&place.name, &how),
        None => place.lost(error),
    }
}

/// Returns the error of a command that did not start. The engine reports it on standard output, and
/// a shell on standard error.
async fn ended_early(place: &Place, mut said: Vec<u8>, early: VecDeque<Piece>) -> Error {
    said.extend(early.into_iter().flat_map(|piece| match piece {
        Piece::Stdout(bytes) | Piece::Stderr(bytes) => bytes,
        Piece::Exit(_) => Vec::new(),
    }));
    if said.is_empty()
        && let Some(how) = place.watch.within(LOOK_LAST).await
    {
        return errors::gone(&place.name, &how);
    }
    wrapper::instead(&said)
}

fn convert(piece: LogOutput) -> Option<Piece> {
    match piece {
        LogOutput::StdOut { message } | LogOutput::Console { message } => {
            Some(Piece::Stdout(message.into()))
        }
        LogOutput::StdErr { message } => Some(Piece::Stderr(message.into())),
        LogOutput::StdIn { .. } => None,
    }
}
