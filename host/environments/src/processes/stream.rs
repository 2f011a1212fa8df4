//! The stream of a running program: its output as it arrives, then its exit.
//!
//! A pipe is read only when the plugin requests the next frame, so a program runs at the pace of
//! its reader and no output accumulates. The stream ends with the *program*, not with its pipes,
//! because a server that the program left running may hold them for hours.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::stream;
use jaato_loader::{ByteStream, FrameStream};
use jaato_process::{ChildOutput, ChildProcess, Exit};
use jaato_types::process::{
    LeftoverProcess, OUTPUT_BYTES_MAX, OutputStream, ProcessEvent, ProcessExit,
};
use jaato_types::{Error, ErrorKind, Frame};
use tokio::time::Instant;

use super::service::ProgramInput;
use super::{ProgramRegistry, ProgramSlot, to_plugin_error};

/// Bytes to read from each output after the exit if another process still holds the pipe. No pipe
/// holds more (`/proc/sys/fs/pipe-max-size`), so no earlier output is lost.
const DRAIN_BYTES_MAX: usize = 1024 * 1024;

/// How long to read a pipe that another process still holds after the exit. Enough for the last
/// output of a `> >(tee log)`, for which the shell does not wait.
const DRAIN_GRACE: Duration = Duration::from_millis(20);

/// A started program.
pub(super) struct SpawnedProgram {
    pub(super) child: Arc<ChildProcess>,
    pub(super) stdin: Option<Arc<ProgramInput>>,
    pub(super) outputs: (Option<ChildOutput>, Option<ChildOutput>),
    pub(super) deadline_ms: Option<u64>,
    pub(super) label: String,
    pub(super) place: ProgramSlot,
    pub(super) processes: Arc<ProgramRegistry>,
    /// Set when the exit is reported.
    pub(super) is_over: Arc<AtomicBool>,
}

/// Creates the stream of its frames.
pub(super) fn frame_stream(begun: SpawnedProgram) -> impl ByteStream {
    // A deadline beyond the range of the clock is ignored.
    let after = begun.deadline_ms.map(Duration::from_millis);
    let deadline = after.and_then(|after| Instant::now().checked_add(after));
    let (stdout, stderr) = begun.outputs;
    let program = ProgramStream {
        child: begun.child,
        _stdin: begun.stdin,
        stdout: ProgramPipe::from_receiver(stdout),
        stderr: ProgramPipe::from_receiver(stderr),
        deadline,
        timed_out: false,
        phase: ProgramPhase::Running,
        buffer: Vec::new(),
        label: begun.label,
        _place: begun.place,
        processes: begun.processes,
        is_over: begun.is_over,
    };
    let next = |mut program: ProgramStream| async move {
        match program.next().await {
            Ok(frame) => frame.map(|frame| (Ok(frame), program)),
            Err(error) => {
                program.phase = ProgramPhase::Over;
                Some((Err(error), program))
            }
        }
    };
    FrameStream(Box::pin(stream::unfold(program, next)))
}

struct ProgramStream {
    child: Arc<ChildProcess>,
    /// Kept open until the end of the stream, because writers hold it weakly.
    _stdin: Option<Arc<ProgramInput>>,
    stdout: ProgramPipe,
    stderr: ProgramPipe,
    deadline: Option<Instant>,
    timed_out: bool,
    phase: ProgramPhase,
    buffer: Vec<u8>,
    label: String,
    _place: ProgramSlot,
    processes: Arc<ProgramRegistry>,
    is_over: Arc<AtomicBool>,
}

enum ProgramPhase {
    Running,
    /// It has exited, and its remaining output is being read.
    Draining {
        exit: Exit,
        until: Instant,
    },
    Over,
}

/// An output.
struct ProgramPipe {
    /// `None` once it has ended.
    receiver: Option<ChildOutput>,
    /// Bytes read since the exit.
    drained: usize,
}

/// The first event.
enum FirstProgramEvent {
    Deadline,
    Exit(Exit),
    Readable(OutputStream),
}

impl ProgramStream {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let frame = match self.phase {
                ProgramPhase::Running => self.next_event().await?,
                ProgramPhase::Draining { exit, until } => match self.drain_pipes(until).await? {
                    Some(frame) => Some(frame),
                    None => return self.finish_exit(exit).await.map(Some),
                },
                ProgramPhase::Over => return Ok(None),
            };
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// Waits for output, the exit or the deadline.
    async fn next_event(&mut self) -> Result<Option<Vec<u8>>, Error> {
        // Check the exit before the pipes, because a background process that fills a pipe without
        // end would hide it.
        let first = tokio::select! {
            biased;
            () = wait_until_deadline(self.deadline) => FirstProgramEvent::Deadline,
            exit = self.child.wait() => FirstProgramEvent::Exit(exit.map_err(|error| to_plugin_error(&error))?),
            stream = wait_readable(&self.stdout, &self.stderr) => FirstProgramEvent::Readable(stream),
        };
        match first {
            FirstProgramEvent::Deadline => {
                (self.deadline, self.timed_out) = (None, true);
                self.child.end().await.map_err(|error| to_plugin_error(&error))?;
                Ok(None)
            }
            FirstProgramEvent::Exit(exit) => {
                self.phase = ProgramPhase::Draining { exit, until: Instant::now() + DRAIN_GRACE };
                Ok(None)
            }
            FirstProgramEvent::Readable(stream) => self.read_pipe(stream),
        }
    }

    /// Returns the output from before the exit, piece by piece, then `None`.
    async fn drain_pipes(&mut self, until: Instant) -> Result<Option<Vec<u8>>, Error> {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if let Some(frame) = self.read_at_once(stream)? {
                return Ok(Some(frame));
            }
        }
        // Another process holds the open pipe and may be about to write.
        loop {
            if !self.stdout.is_wanted() && !self.stderr.is_wanted() {
                return Ok(None);
            }
            let stream = tokio::select! {
                biased;
                () = tokio::time::sleep_until(until) => return Ok(None),
                stream = wait_readable(&self.stdout, &self.stderr) => stream,
            };
            if let Some(frame) = self.read_pipe(stream)? {
                return Ok(Some(frame));
            }
        }
    }

    /// Reads what tokio reports as readable. Returns `None` if tokio was wrong or the pipe has
    /// ended.
    fn read_pipe(&mut self, stream: OutputStream) -> Result<Option<Vec<u8>>, Error> {
        self.buffer.resize(OUTPUT_BYTES_MAX, 0);
        let Some(receiver) = self.pipe_of(stream).receiver.take() else { return Ok(None) };
        let read = receiver.try_read(&mut self.buffer);
        self.pipe_of(stream).receiver = Some(receiver);
        self.handle_read(stream, read)
    }

    /// Reads what is available without asking tokio, which learns of it with a delay.
    fn read_at_once(&mut self, stream: OutputStream) -> Result<Option<Vec<u8>>, Error> {
        self.buffer.resize(OUTPUT_BYTES_MAX, 0);
        if !self.pipe_of(stream).is_wanted() {
            return Ok(None);
        }
        let Some(receiver) = self.pipe_of(stream).receiver.take() else { return Ok(None) };
        let descriptor = receiver.as_fd().try_clone_to_owned();
        let read = descriptor.and_then(|pipe| File::from(pipe).read(&mut self.buffer));
        self.pipe_of(stream).receiver = Some(receiver);
        self.handle_read(stream, read)
    }

    fn handle_read(
        &mut self,
        stream: OutputStream,
        read: io::Result<usize>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_draining = matches!(self.phase, ProgramPhase::Draining { .. });
        let pipe = self.pipe_of(stream);
        match read {
            Ok(0) => {
                pipe.receiver = None;
                Ok(None)
            }
            Ok(bytes) => {
                pipe.drained += if is_draining { bytes } else { 0 };
                let event = ProcessEvent::output(stream);
                event_frame(&event, &self.buffer[..bytes]).map(Some)
            }
            Err(error) if is_temporary_error(&error) => Ok(None),
            Err(error) => {
                let text = format!("cannot read the program's output: {error}");
                Err(Error::new(ErrorKind::Io, text))
            }
        }
    }

    fn pipe_of(&mut self, stream: OutputStream) -> &mut ProgramPipe {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }

    /// Returns the exit, and hands over the remaining processes.
    async fn finish_exit(&mut self, exit: Exit) -> Result<Vec<u8>, Error> {
        let left = self.child.leftovers().await.map_err(|error| to_plugin_error(&error))?;
        self.phase = ProgramPhase::Over;
        self.is_over.store(true, Relaxed);
        self.buffer = Vec::new();
        let (code, signal) = match exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(number) => (None, Some(number)),
        };
        let left_running: Vec<_> = left
            .into_iter()
            .map(|process| LeftoverProcess { pid: process.pid, name: process.name })
            .collect();
        if !left_running.is_empty() {
            let pipes = [self.stdout.receiver.take(), self.stderr.receiver.take()];
            let child = Arc::clone(&self.child);
            self.processes.left.add_program(child, pipes, &self.label);
        }
        let exit = ProcessExit { code, signal, timed_out: self.timed_out, left_running };
        event_frame(&ProcessEvent::Exited(exit), &[])
    }
}

impl ProgramPipe {
    fn from_receiver(receiver: Option<ChildOutput>) -> Self {
        Self { receiver, drained: 0 }
    }

    fn is_wanted(&self) -> bool {
        self.receiver.is_some() && self.drained < DRAIN_BYTES_MAX
    }

    async fn wait_until_readable(&self) {
        match self.receiver.as_ref().filter(|_| self.is_wanted()) {
            // Reading will report the error.
            Some(receiver) => drop(receiver.readable().await),
            None => std::future::pending().await,
        }
    }
}

/// Waits until one of the outputs can be read. Fair, so that endless output on one stream does not
/// hide the other.
async fn wait_readable(stdout: &ProgramPipe, stderr: &ProgramPipe) -> OutputStream {
    tokio::select! {
        () = stdout.wait_until_readable() => OutputStream::Stdout,
        () = stderr.wait_until_readable() => OutputStream::Stderr,
    }
}

async fn wait_until_deadline(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn is_temporary_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn event_frame(event: &ProcessEvent, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Frame::write_with_bytes(event, bytes)
        .map_err(|error| Error::new(ErrorKind::HostBug, error.to_string()))
}
