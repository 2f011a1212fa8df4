//! The operations of the service `process`, for one call.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Weak};

use futures_util::future::{BoxFuture, join_all};
use jaato_loader::EngineServiceAnswer;
use jaato_process::{
    ChildCommand, ChildInput, ChildProcess, ErrorOutput, GroupSignal as SystemSignal,
    StandardInput, StandardOutput, open_terminal,
};
use jaato_types::process::{
    END, ProcessRef, ProcessSignal, ProcessWrite, RUNNING_PER_CALL_MAX, SIGNAL, SPAWN,
    SPAWN_ON_TERMINAL, Signal, Spawn, SpawnOnTerminal, Stdin, WRITE,
};
use jaato_types::{Error, ErrorKind, Frame, FrameError, SessionId};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::Mutex as AsyncMutex;

use super::stream::{SpawnedProgram, frame_stream};
use super::{ProgramRegistry, RUNNING_PER_SESSION_MAX, to_plugin_error};

/// The programs of one call.
pub struct CallProcesses {
    processes: Arc<ProgramRegistry>,
    session: SessionId,
    /// By number. Weak, because only the stream keeps a program alive, so that dropping it ends the
    /// program.
    running: Arc<Mutex<BTreeMap<u64, ProgramHandles>>>,
    running_max: usize,
}

/// The state that operations on a running program need.
#[derive(Clone)]
struct ProgramHandles {
    child: Weak<ChildProcess>,
    /// `None` if standard input is not a pipe.
    stdin: Option<Weak<ProgramInput>>,
    /// Whether its exit was reported. Its leftover processes can then only be ended.
    is_over: Arc<AtomicBool>,
}

impl ProgramHandles {
    /// Returns the program, or `None` once its exit was reported.
    fn child(&self) -> Option<Arc<ChildProcess>> {
        if self.is_over.load(Relaxed) { None } else { self.child.upgrade() }
    }
}

/// A program's standard input, or `None` once it was closed.
pub(super) type ProgramInput = AsyncMutex<Option<ChildInput>>;

/// The future result of an operation.
pub type ServedFuture = BoxFuture<'static, Result<EngineServiceAnswer, Error>>;

impl CallProcesses {
    /// Creates the programs of a session's call.
    pub fn new(processes: Arc<ProgramRegistry>, session: SessionId) -> Self {
        let running_max = RUNNING_PER_CALL_MAX;
        Self { processes, session, running: Arc::default(), running_max }
    }

    /// Creates the programs of an instance, which runs those that all its calls request.
    pub fn for_instance(&self) -> Self {
        let (processes, session) = (Arc::clone(&self.processes), self.session.clone());
        let running_max = RUNNING_PER_SESSION_MAX;
        Self { running_max, ..Self::new(processes, session) }
    }

    /// Limits the number of programs at a time.
    #[must_use]
    pub fn with_running_max(self, running_max: usize) -> Self {
        Self { running_max, ..self }
    }

    /// Starts a program with pipes.
    pub fn start(&self, spawn: Spawn) -> ServedFuture {
        self.spawn(Ok(spawn), connect_pipes)
    }

    /// Answers an operation on a program that runs here. Returns `None` for any other operation or
    /// program.
    pub fn answer_operation(&self, operation: &str, request: &[u8]) -> Option<ServedFuture> {
        if ![WRITE, SIGNAL, END].contains(&operation) {
            return None;
        }
        let ProcessRef { process } = parse_request(request).ok()?;
        let is_here = self.running.lock().contains_key(&process);
        is_here.then(|| self.call(operation, request))?
    }

    /// Ends all running programs.
    pub async fn end_all(&self) {
        let running: Vec<_> =
            self.running.lock().values().filter_map(ProgramHandles::child).collect();
        // Programs that cannot be ended end with the guardian.
        join_all(running.iter().map(|child| child.end())).await;
    }

    /// Answers an operation. Returns `None` for a name that is not part of this service.
    pub fn call(&self, operation: &str, request: &[u8]) -> Option<ServedFuture> {
        match operation {
            SPAWN => Some(self.spawn(parse_request::<Spawn>(request), connect_pipes)),
            SPAWN_ON_TERMINAL => Some(self.spawn_on_terminal(request)),
            WRITE => Some(self.write_input(request)),
            SIGNAL => Some(self.signal(request)),
            END => Some(self.end_program(request)),
            _ => None,
        }
    }

    fn spawn_on_terminal(&self, request: &[u8]) -> ServedFuture {
        let (spawn, path) = match parse_request::<SpawnOnTerminal>(request) {
            Ok(SpawnOnTerminal { spawn, terminal }) => (Ok(spawn), terminal),
            Err(error) => (Err(error), String::new()),
        };
        self.spawn(spawn, move |_, command| connect_terminal(Path::new(&path), command))
    }

    /// Starts a program whose input and output `connect` sets up.
    fn spawn(
        &self,
        request: Result<Spawn, Error>,
        connect: impl FnOnce(&Spawn, &mut ChildCommand) -> Result<(), Error> + Send + 'static,
    ) -> ServedFuture {
        let (processes, session) = (Arc::clone(&self.processes), self.session.clone());
        let (running, running_max) = (Arc::clone(&self.running), self.running_max);
        Box::pin(async move {
            let spawn = request?;
            has_room(&running, running_max)?;
            let place = processes.take_slot(&session)?;
            processes.left.has_room().await?;
            let mut command = processes.child_command(&spawn, &session);
            connect(&spawn, &mut command)?;
            let mut child = processes
                .supervisor
                .spawn(command)
                .await
                .map_err(|error| to_plugin_error(&error))?;
            let pid = child.pid();
            let stdin = child.stdin.take().map(|stdin| Arc::new(AsyncMutex::new(Some(stdin))));
            let outputs = (child.stdout.take(), child.stderr.take());
            let (child, is_over) = (Arc::new(child), Arc::new(AtomicBool::new(false)));
            let handles = ProgramHandles {
                child: Arc::downgrade(&child),
                stdin: stdin.as_ref().map(Arc::downgrade),
                is_over: Arc::clone(&is_over),
            };
            let number = processes.next_number();
            running.lock().insert(number, handles);
            let label = program_label(&spawn);
            let deadline_ms = spawn.deadline_ms;
            let begun = SpawnedProgram {
                child,
                stdin,
                outputs,
                deadline_ms,
                label,
                place,
                processes,
                is_over,
            };
            let head = Map::from_iter([
                ("process".to_owned(), Value::from(number)),
                ("pid".to_owned(), pid.into()),
            ]);
            Ok(EngineServiceAnswer::StreamWith(head, Box::new(frame_stream(begun))))
        })
    }

    fn write_input(&self, request: &[u8]) -> ServedFuture {
        let parsed = Frame::parse(request).map_err(bad_request_error).and_then(|frame| {
            let write: ProcessWrite = frame.json().map_err(bad_request_error)?;
            Ok((write, frame.bytes.to_vec()))
        });
        let running = Arc::clone(&self.running);
        Box::pin(async move {
            let (write, bytes) = parsed?;
            let Some(stdin) = find_program(&running, write.process)?.stdin else {
                let text = "the program's standard input is not a pipe";
                return Err(Error::new(ErrorKind::InvalidArguments, text)
                    .with_hint("start it with `stdin` `piped`"));
            };
            let stdin = stdin.upgrade().ok_or_else(|| program_ended_error(write.process))?;
            let mut input = stdin.lock().await;
            let Some(pipe) = input.as_ref() else {
                let text = "the program's standard input was closed";
                return Err(Error::new(ErrorKind::Io, text));
            };
            write_all(pipe, &bytes).await?;
            if write.close {
                *input = None;
            }
            empty_answer()
        })
    }

    fn signal(&self, request: &[u8]) -> ServedFuture {
        let (request, running) =
            (parse_request::<ProcessSignal>(request), Arc::clone(&self.running));
        Box::pin(async move {
            let ProcessSignal { process, signal } = request?;
            let child = find_program(&running, process)?
                .child()
                .ok_or_else(|| program_ended_error(process))?;
            child.signal(system_signal(signal)).await.map_err(|error| to_plugin_error(&error))?;
            empty_answer()
        })
    }

    fn end_program(&self, request: &[u8]) -> ServedFuture {
        let (request, running) = (parse_request::<ProcessRef>(request), Arc::clone(&self.running));
        let processes = Arc::clone(&self.processes);
        Box::pin(async move {
            let ProcessRef { process } = request?;
            let handles = find_program(&running, process)?;
            match (handles.child(), handles.child.upgrade()) {
                (Some(child), _) => child.end().await.map_err(|error| to_plugin_error(&error))?,
                (None, Some(child)) => {
                    processes
                        .left
                        .end_program(&child)
                        .await
                        .map_err(|error| to_plugin_error(&error))?;
                }
                // An ended program needs nothing more.
                (None, None) => {}
            }
            empty_answer()
        })
    }
}

/// Gives a program pipes.
// `spawn` expects this signature.
#[allow(clippy::unnecessary_wraps)]
fn connect_pipes(spawn: &Spawn, command: &mut ChildCommand) -> Result<(), Error> {
    command.stdin = match spawn.stdin {
        Stdin::Closed => StandardInput::Null,
        Stdin::Piped => StandardInput::Piped,
    };
    command.stdout = StandardOutput::Piped;
    command.stderr = ErrorOutput::Separate(StandardOutput::Piped);
    Ok(())
}

/// Gives a program a terminal.
fn connect_terminal(path: &Path, command: &mut ChildCommand) -> Result<(), Error> {
    let terminal = open_terminal(path).map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::InvalidArguments,
        };
        Error::new(kind, format!("cannot open the terminal `{}`: {error}", path.display()))
    })?;
    command.terminal = Some(terminal);
    Ok(())
}

async fn write_all(pipe: &ChildInput, mut bytes: &[u8]) -> Result<(), Error> {
    let broken = |error: io::Error| {
        Error::new(ErrorKind::Io, format!("the program no longer reads its input: {error}"))
    };
    while !bytes.is_empty() {
        pipe.writable().await.map_err(broken)?;
        match pipe.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(broken(error)),
        }
    }
    Ok(())
}

fn has_room(
    running: &Mutex<BTreeMap<u64, ProgramHandles>>,
    running_max: usize,
) -> Result<(), Error> {
    let mut running = running.lock();
    // Processes left behind by an ended program keep its number, so that they can be ended.
    running.retain(|_, handles| handles.child.strong_count() > 0);
    let alive = running.values().filter(|handles| handles.child().is_some()).count();
    if alive < running_max {
        return Ok(());
    }
    let text = format!("the call already has {running_max} running programs");
    Err(Error::new(ErrorKind::LimitReached, text).with_hint("end some first"))
}

fn find_program(
    running: &Mutex<BTreeMap<u64, ProgramHandles>>,
    process: u64,
) -> Result<ProgramHandles, Error> {
    running.lock().get(&process).cloned().ok_or_else(|| program_ended_error(process))
}

fn program_ended_error(process: u64) -> Error {
    let text = format!("this call has no running program {process}");
    Error::new(ErrorKind::NotFound, text).with_hint("it has ended or belongs to another call")
}

fn program_label(spawn: &Spawn) -> String {
    spawn.label.clone().unwrap_or_else(|| {
        let words = std::iter::once(&spawn.program).chain(&spawn.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    })
}

fn system_signal(signal: Signal) -> SystemSignal {
    match signal {
        Signal::Hangup => SystemSignal::Hangup,
        Signal::Interrupt => SystemSignal::Interrupt,
        Signal::Quit => SystemSignal::Quit,
        Signal::Terminate => SystemSignal::Terminate,
        Signal::Kill => SystemSignal::Kill,
        Signal::User1 => SystemSignal::User1,
        Signal::User2 => SystemSignal::User2,
        Signal::Stop => SystemSignal::Stop,
        Signal::Continue => SystemSignal::Continue,
    }
}

fn parse_request<T: DeserializeOwned>(request: &[u8]) -> Result<T, Error> {
    Frame::read(request).map_err(bad_request_error)
}

fn bad_request_error(error: FrameError) -> Error {
    Error::new(ErrorKind::InvalidArguments, error.to_string())
}

fn empty_answer() -> Result<EngineServiceAnswer, Error> {
    Ok(EngineServiceAnswer::Frame(Frame::empty()))
}
