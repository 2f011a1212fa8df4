//! Runs commands in the container for the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{OutputStream, ProcessExit, ProcessUpdate, Signal, Spawn, Stdin};
use jaato_plugin_sdk_environment::{Program, ProgramEvents, Shell};
use tokio::time::{Instant, sleep_until};

use crate::command::{self, CommandEvent, CommandExit, ContainerCommand, ContainerCommandSpec};
use crate::container::Container;
use crate::plugin::notify_user;
use crate::runtime::EngineRuntime;

/// The signal that ends a process by force.
const KILL: i32 = 9;

/// Appends folders to `PATH`, then executes the remaining words.
const WITH_PATHS: &str = "PATH=$PATH:$1; export PATH; shift; exec \"$@\"";

/// Runs commands in the container.
pub struct DockerShell {
    runtime: EngineRuntime,
    container: Arc<Container>,
}

impl DockerShell {
    /// Creates a shell for this container.
    pub fn new(runtime: EngineRuntime, container: Arc<Container>) -> Self {
        Self { runtime, container }
    }
}

impl Shell for DockerShell {
    type Program = DockerProgram;
    type Events = DockerEvents;

    async fn start(&self, host: &Reporter, spawn: Spawn) -> Result<(DockerProgram, DockerEvents)> {
        let deadline = spawn.deadline_ms.map(Duration::from_millis);
        let spec = exec_spec(spawn)?;
        let container = Arc::clone(&self.container);
        let starting = self.runtime.run_future(async move {
            let command = container.start_command(spec).await?;
            // Starts with the command, not with the request.
            Ok((command, deadline.and_then(|deadline| Instant::now().checked_add(deadline))))
        });
        let started = starting.await;
        notify_user(host, &self.container);
        let (command, deadline) = started?;
        let shared = Arc::new(DockerProgramState { command, was_ended: AtomicBool::new(false) });
        let program = DockerProgram { runtime: self.runtime.clone(), shared: Arc::clone(&shared) };
        let events = DockerEvents {
            runtime: self.runtime.clone(),
            shared,
            deadline,
            timed_out: Arc::new(AtomicBool::new(false)),
        };
        Ok((program, events))
    }
}

fn exec_spec(spawn: Spawn) -> Result<ContainerCommandSpec> {
    if spawn.program.is_empty() {
        return Err(Error::new(ErrorKind::InvalidArguments, "the command is empty"));
    }
    let mut words = Vec::new();
    if !spawn.extra_paths.is_empty() {
        words.extend(["sh", "-c", WITH_PATHS, "sh"].map(str::to_owned));
        words.push(spawn.extra_paths.join(":"));
    }
    words.push(spawn.program);
    words.extend(spawn.args);
    Ok(ContainerCommandSpec {
        words,
        folder: spawn.directory.map(Into::into),
        variables: spawn.variables.into_iter().collect(),
        stdin: match spawn.stdin {
            Stdin::Closed => command::CommandInput::Closed,
            Stdin::Piped => command::CommandInput::Piped,
        },
    })
}

struct DockerProgramState {
    command: ContainerCommand,
    /// Whether jaato ended the command. An exit code that indicates a signal then refers to jaato's
    /// signal.
    was_ended: AtomicBool,
}

impl DockerProgramState {
    async fn end_command(&self) -> Result<()> {
        self.was_ended.store(true, Ordering::Release);
        self.command.end_command().await
    }
}

/// A running command.
pub struct DockerProgram {
    runtime: EngineRuntime,
    shared: Arc<DockerProgramState>,
}

impl DockerProgram {
    async fn run_on_engine<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<DockerProgramState>) -> F,
    ) -> Result<T> {
        self.runtime.run_future(work(Arc::clone(&self.shared))).await
    }
}

impl Program for DockerProgram {
    /// Returns the process ID in the container, which differs from the ID outside.
    fn pid(&self) -> Option<u32> {
        Some(self.shared.command.session())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        self.run_on_engine(|shared| async move { shared.command.write_input(&bytes).await }).await
    }

    async fn close_input(&self) -> Result<()> {
        self.run_on_engine(|shared| async move {
            shared.command.close_input().await;
            Ok(())
        })
        .await
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.run_on_engine(
            |shared| async move { shared.command.signal_group(signal).await.map(drop) },
        )
        .await
    }

    async fn end(&self) -> Result<()> {
        self.run_on_engine(|shared| async move { shared.end_command().await }).await
    }
}

/// The events of a command.
pub struct DockerEvents {
    runtime: EngineRuntime,
    shared: Arc<DockerProgramState>,
    deadline: Option<Instant>,
    timed_out: Arc<AtomicBool>,
}

impl ProgramEvents for DockerEvents {
    async fn next(&mut self) -> Result<Option<ProcessUpdate>> {
        let (shared, deadline) = (Arc::clone(&self.shared), self.deadline);
        let timed_out = Arc::clone(&self.timed_out);
        self.runtime
            .run_future(async move { next_update(&shared, deadline, &timed_out).await })
            .await
    }
}

async fn next_update(
    shared: &Arc<DockerProgramState>,
    deadline: Option<Instant>,
    timed_out: &AtomicBool,
) -> Result<Option<ProcessUpdate>> {
    loop {
        let waiting = deadline.filter(|_| !timed_out.load(Ordering::Acquire));
        let late = async {
            match waiting {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = late => {
                timed_out.store(true, Ordering::Release);
                let shared = Arc::clone(shared);
                // Uses a separate task, because the command gets time to clean up and the caller
                // may stop waiting. If this fails, the container has ended, which the next event
                // reports.
                tokio::spawn(async move { shared.end_command().await });
            }
            piece = shared.command.next() => {
                return Ok(piece?.map(|piece| convert_event(piece, shared, timed_out)));
            }
        }
    }
}

fn convert_event(
    piece: CommandEvent,
    shared: &DockerProgramState,
    timed_out: &AtomicBool,
) -> ProcessUpdate {
    match piece {
        CommandEvent::Stdout(bytes) => {
            ProcessUpdate::Output { stream: OutputStream::Stdout, bytes }
        }
        CommandEvent::Stderr(bytes) => {
            ProcessUpdate::Output { stream: OutputStream::Stderr, bytes }
        }
        CommandEvent::Exit(CommandExit { code, left_running }) => {
            let code = i32::try_from(code).unwrap_or(i32::MAX);
            let was_ended = shared.was_ended.load(Ordering::Acquire);
            let signal = (was_ended && code > 128).then_some(code - 128);
            ProcessUpdate::Exited(ProcessExit {
                code: if signal.is_some() { None } else { Some(code) },
                signal: signal.map(|signal| if (1..=64).contains(&signal) { signal } else { KILL }),
                timed_out: timed_out.load(Ordering::Acquire),
                left_running,
            })
        }
    }
}
