//! Running programs. A thread reads and watches each of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind as IoErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use jaato_types::process::{
    END, LeftoverProcess, OUTPUT_BYTES_MAX, OutputStream, ProcessEvent, ProcessExit, ProcessRef,
    ProcessSignal, ProcessWrite, RUNNING_PER_CALL_MAX, SIGNAL, Signal, Stdin,
};
use jaato_types::{Error, ErrorKind, Result};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal as SystemSignal, killpg};
use nix::unistd::Pid;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::clock::TimeHold;
use super::platform;
use super::programs::PreparedProgram;
use super::services::{FakeServiceReply, ServiceRequest};
use super::stream::FakeStream;

/// How often a thread checks its program if no output arrives.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The time to clean up for a program that is ended, as in the host.
const END_GRACE: Duration = Duration::from_millis(50);

/// The longest time and the most bytes to read after the exit if another process holds the output.
const DRAIN_GRACE: Duration = Duration::from_millis(20);
const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// The programs of one host, by the call that started them and their number.
#[derive(Default)]
pub(crate) struct RunningFakePrograms {
    last: u64,
    programs: BTreeMap<(u64, u64), Arc<FakeProgram>>,
    left: Arc<Mutex<Vec<Pid>>>,
}

/// A program, as operations access it.
struct FakeProgram {
    group: Pid,
    input: Mutex<Option<Sender<Vec<u8>>>>,
    is_piped: bool,
    is_to_end: AtomicBool,
    has_ended: AtomicBool,
}

impl RunningFakePrograms {
    /// Starts a program.
    pub(crate) fn start(
        &mut self,
        context: u64,
        prepared: &PreparedProgram,
        held: Option<TimeHold>,
    ) -> Result<FakeServiceReply> {
        {
            // A program keeps its number while processes that it left are running, so that these
            // can be ended.
            let left = self.left.lock();
            self.programs.retain(|_, program| {
                !program.has_ended.load(SeqCst) || left.contains(&program.group)
            });
        }
        let is_running = |(key, program): &(&(u64, u64), &Arc<FakeProgram>)| {
            key.0 == context && !program.has_ended.load(SeqCst)
        };
        let running = self.programs.iter().filter(is_running).count();
        if running >= RUNNING_PER_CALL_MAX {
            let text = format!("the call already has {RUNNING_PER_CALL_MAX} running programs");
            return Err(Error::new(ErrorKind::LimitReached, text));
        }
        let is_piped = prepared.spawn.stdin == Stdin::Piped && prepared.terminal.is_none();
        let mut child = spawn_prepared(prepared)?;
        let pid = child.id();
        let input = child.stdin.take().map(write_on_thread).transpose()?;
        let group = Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX));
        let program = Arc::new(FakeProgram {
            group,
            input: Mutex::new(input),
            is_piped,
            is_to_end: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        });
        self.last += 1;
        let number = self.last;
        self.programs.insert((context, number), Arc::clone(&program));
        let stream = FakeStream::open();
        let deadline = prepared.spawn.deadline_ms.map(Duration::from_millis);
        let watched = WatchedFakeProgram {
            outputs: [
                NonBlockingOutput::from_pipe(child.stdout.take())?,
                NonBlockingOutput::from_pipe(child.stderr.take())?,
            ],
            child,
            stream: stream.clone(),
            program,
            deadline: deadline.and_then(|after| Instant::now().checked_add(after)),
            timed_out: false,
            left: Arc::clone(&self.left),
        };
        let work = move || {
            watched.watch_program();
            drop(held);
        };
        std::thread::Builder::new()
            .name("fake-program".to_owned())
            .spawn(work)
            .map_err(io_error)?;
        Ok(FakeServiceReply::StreamWith(json!({ "process": number, "pid": pid }), stream))
    }

    /// Answers an operation on a program.
    pub(crate) fn run_operation(&self, request: &ServiceRequest) -> Result<FakeServiceReply> {
        let ProcessRef { process, .. } = request.read()?;
        let found = self.programs.get(&(request.context, process)).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("this call has no running program {process}"))
        })?;
        match request.operation.as_str() {
            SIGNAL => {
                let ProcessSignal { signal, .. } = request.read()?;
                if !found.has_ended.load(SeqCst) {
                    // A group that has just ended gets no signal.
                    let _ = killpg(found.group, system_signal(signal));
                }
            }
            END if found.has_ended.load(SeqCst) => self.end_leftovers(found.group),
            END => found.is_to_end.store(true, SeqCst),
            _ => {
                let write: ProcessWrite = request.read()?;
                found.write(write, request.bytes.clone())?;
            }
        }
        Ok(FakeServiceReply::Json(Value::Null))
    }
}

impl RunningFakePrograms {
    /// Ends the processes that a program left running.
    fn end_leftovers(&self, group: Pid) {
        let mut left = self.left.lock();
        if left.contains(&group) {
            left.retain(|other| *other != group);
            // The process may have ended on its own.
            let _ = killpg(group, SystemSignal::SIGKILL);
        }
    }

    /// Kills all running programs and the processes they left, immediately, because the test
    /// program and its threads may end next.
    pub(crate) fn end_all(&mut self) {
        let running = std::mem::take(&mut self.programs).into_values();
        let running = running.filter(|program| !program.has_ended.load(SeqCst));
        let groups: Vec<Pid> = running.map(|program| program.group).collect();
        let mut left = self.left.lock();
        for group in groups.into_iter().chain(left.drain(..)) {
            // The process may have ended on its own.
            let _ = killpg(group, SystemSignal::SIGKILL);
        }
    }
}

impl Drop for RunningFakePrograms {
    fn drop(&mut self) {
        self.end_all();
    }
}

impl FakeProgram {
    /// Passes bytes to the thread that writes them, so that a full pipe does not block the
    /// executor.
    fn write(&self, write: ProcessWrite, bytes: Vec<u8>) -> Result<()> {
        if !self.is_piped {
            let text = "the program's standard input is not a pipe";
            return Err(Error::new(ErrorKind::InvalidArguments, text));
        }
        let mut input = self.input.lock();
        let Some(sender) = input.as_ref() else {
            return Err(Error::new(ErrorKind::Io, "the program's standard input was closed"));
        };
        // The thread has ended because a write failed.
        sender.send(bytes).map_err(|_| {
            Error::new(ErrorKind::Io, "the program does not read its input any longer")
        })?;
        if write.close {
            *input = None;
        }
        Ok(())
    }
}

/// Starts the thread that writes to a program. It ends with the sender, or when the program no
/// longer reads.
fn write_on_thread(mut stdin: ChildStdin) -> Result<Sender<Vec<u8>>> {
    let (sender, pieces) = channel::<Vec<u8>>();
    let work = move || {
        for piece in pieces {
            if stdin.write_all(&piece).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("fake-input".to_owned()).spawn(work).map_err(io_error)?;
    Ok(sender)
}

fn spawn_prepared(prepared: &PreparedProgram) -> Result<Child> {
    let spawn = &prepared.spawn;
    let mut command = Command::new(&spawn.program);
    command.args(&spawn.args).env_clear().envs(&prepared.variables);
    command.current_dir(&prepared.directory);
    platform::default_signals(&mut command);
    match &prepared.terminal {
        Some(terminal) => platform::run_on_terminal(&mut command, terminal).map_err(|error| {
            let text = format!("cannot use the terminal `{}`: {error}", terminal.display());
            Error::new(ErrorKind::InvalidArguments, text)
        })?,
        None => {
            let stdin = match spawn.stdin {
                Stdin::Closed => Stdio::null(),
                Stdin::Piped => Stdio::piped(),
            };
            command.process_group(0).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        }
    }
    command.spawn().map_err(|error| {
        let kind = match error.kind() {
            IoErrorKind::NotFound => ErrorKind::NotFound,
            IoErrorKind::InvalidInput => ErrorKind::InvalidArguments,
            _ => ErrorKind::Failed,
        };
        Error::new(kind, format!("cannot start `{}`: {error}", spawn.program))
    })
}

/// A program and the data of its thread.
struct WatchedFakeProgram {
    child: Child,
    outputs: [NonBlockingOutput; 2],
    stream: FakeStream,
    program: Arc<FakeProgram>,
    deadline: Option<Instant>,
    timed_out: bool,
    left: Arc<Mutex<Vec<Pid>>>,
}

/// An output that does not block.
struct NonBlockingOutput {
    file: Option<File>,
    drained: usize,
}

impl NonBlockingOutput {
    fn from_pipe(pipe: Option<impl Into<OwnedFd>>) -> Result<Self> {
        let file = pipe.map(|pipe| File::from(pipe.into()));
        if let Some(file) = &file {
            fcntl(file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .map_err(|errno| io_error(errno.into()))?;
        }
        Ok(Self { file, drained: 0 })
    }

    /// Reads the available output, or returns `None` if there is none.
    fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let read = self.file.as_mut()?.read(buffer);
        match read {
            Ok(bytes @ 1..) => {
                self.drained += bytes;
                Some(bytes)
            }
            Err(error) if error.kind() == IoErrorKind::WouldBlock => None,
            Ok(_) | Err(_) => {
                self.file = None;
                None
            }
        }
    }

    fn is_output_wanted(&self) -> bool {
        self.file.is_some() && self.drained < DRAIN_BYTES_MAX
    }
}

impl WatchedFakeProgram {
    fn watch_program(mut self) {
        let mut buffer = vec![0; OUTPUT_BYTES_MAX];
        let exit = loop {
            if self.stream.is_closed() {
                self.end_process_group();
                self.program.has_ended.store(true, SeqCst);
                return;
            }
            self.end_if_due();
            if self.stream.wait_for_room(LOOK_AGAIN) {
                self.wait_for_output();
                self.read_output(&mut buffer);
            }
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => {
                    self.stream.fail(io_error(error));
                    return;
                }
            }
        };
        self.drain_output(&mut buffer);
        self.program.has_ended.store(true, SeqCst);
        let left_running =
            if self.timed_out { Vec::new() } else { list_group_members(self.program.group) };
        if !left_running.is_empty() {
            let mut left = self.left.lock();
            left.push(self.program.group);
        }
        let (code, signal) = (exit.code(), exit.signal());
        let exit = ProcessExit {
            code,
            signal,
            timed_out: self.timed_out,
            left_running,
            ..ProcessExit::default()
        };
        self.stream.push_frame(&ProcessEvent::Exited(exit), &[]);
        self.stream.finish();
    }

    fn wait_for_output(&self) {
        let files = self.outputs.iter().filter_map(|output| output.file.as_ref());
        let mut polled: Vec<_> =
            files.map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)).collect();
        if polled.is_empty() {
            std::thread::sleep(LOOK_AGAIN);
        }
        // A failed poll only makes the next check too early.
        let _ = poll(&mut polled, PollTimeout::from(LOOK_AGAIN.as_millis() as u8));
    }

    /// Reads a piece of each output. Returns false if there was none.
    fn read_output(&mut self, buffer: &mut [u8]) -> bool {
        let streams = [OutputStream::Stdout, OutputStream::Stderr];
        let mut has_read = false;
        for (output, stream) in self.outputs.iter_mut().zip(streams) {
            if let Some(bytes) = output.read(buffer) {
                has_read = true;
                self.stream.push_frame(&ProcessEvent::output(stream), &buffer[..bytes]);
            }
        }
        has_read
    }

    /// Reads the output from before the exit, and some of what other holders of the pipe still
    /// write.
    fn drain_output(&mut self, buffer: &mut [u8]) {
        self.outputs.iter_mut().for_each(|output| output.drained = 0);
        let until = Instant::now() + DRAIN_GRACE;
        while self.outputs.iter().any(NonBlockingOutput::is_output_wanted)
            && !self.stream.is_closed()
        {
            if !self.stream.wait_for_room(LOOK_AGAIN) {
                continue;
            }
            if !self.read_output(buffer) {
                if Instant::now() >= until {
                    return;
                }
                self.wait_for_output();
            }
        }
    }

    fn end_if_due(&mut self) {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            (self.deadline, self.timed_out) = (None, true);
            self.end_process_group();
        }
        if self.program.is_to_end.swap(false, SeqCst) {
            self.end_process_group();
        }
    }

    /// Ends the process group: sends TERM, and KILL after a moment.
    fn end_process_group(&mut self) {
        let group = self.program.group;
        // A group that has already ended needs no signal.
        let _ = killpg(group, SystemSignal::SIGTERM);
        let until = Instant::now() + END_GRACE;
        while Instant::now() < until && !matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = killpg(group, SystemSignal::SIGKILL);
        // Reaps the process. The status is kept for the next query.
        let _ = self.child.wait();
    }
}

/// Lists the members of a process group. Known only on Linux.
fn list_group_members(group: Pid) -> Vec<LeftoverProcess> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let members = pids.filter_map(|pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (before, after) = stat.rsplit_once(')')?;
        let mut fields = after.split_whitespace();
        let (state, _parent, its_group) = (fields.next()?, fields.next()?, fields.next()?);
        let is_member = its_group.parse() == Ok(group.as_raw()) && state != "Z";
        let name = before.split_once('(')?.1.to_owned();
        is_member.then_some(LeftoverProcess { pid, name, ..LeftoverProcess::default() })
    });
    members.collect()
}

fn system_signal(signal: Signal) -> SystemSignal {
    match signal {
        Signal::Hangup => SystemSignal::SIGHUP,
        Signal::Interrupt => SystemSignal::SIGINT,
        Signal::Quit => SystemSignal::SIGQUIT,
        Signal::Terminate => SystemSignal::SIGTERM,
        Signal::Kill => SystemSignal::SIGKILL,
        Signal::User1 => SystemSignal::SIGUSR1,
        Signal::User2 => SystemSignal::SIGUSR2,
        Signal::Stop => SystemSignal::SIGSTOP,
        Signal::Continue => SystemSignal::SIGCONT,
    }
}

fn io_error(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("the host cannot run programs: {error}"))
}
