//! Runs terminals of the container for the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessExit, Signal};
use jaato_plugin_sdk::terminal::TerminalUpdate;
use jaato_plugin_sdk::types::terminal::{
    TerminalResize, TerminalSpawn, TerminalState, TerminalWait,
};
use jaato_plugin_sdk_environment::waiting::{TerminalWaitHistory, WaitingProcess};
use jaato_plugin_sdk_environment::{Terminal as HostTerminal, TerminalEvents, Terminals};
use parking_lot::Mutex;

use crate::command::{CommandInput, ContainerCommandSpec};
use crate::container::Container;
use crate::plugin::notify_user;
use crate::runtime::EngineRuntime;
use crate::terminal::{ContainerTerminal, TerminalSize};
use crate::wait_observer::TerminalObservation;

/// The terminal type, which most programs know.
const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// Runs programs on terminals of the container.
pub struct DockerTerminals {
    runtime: EngineRuntime,
    container: Arc<Container>,
}

impl DockerTerminals {
    /// Creates terminals for this container.
    pub fn new(runtime: EngineRuntime, container: Arc<Container>) -> Self {
        Self { runtime, container }
    }
}

impl Terminals for DockerTerminals {
    type Terminal = DockerTerminal;
    type Events = DockerTerminalEvents;

    async fn spawn(
        &self,
        host: &Reporter,
        spawn: TerminalSpawn,
    ) -> Result<(DockerTerminal, DockerTerminalEvents)> {
        let size = TerminalSize { rows: spawn.rows, columns: spawn.columns };
        let mut words = vec![spawn.program];
        words.extend(spawn.args);
        let mut variables: Vec<_> = spawn.variables.into_iter().collect();
        if !variables.iter().any(|(name, _)| name == TERM.0) {
            variables.push((TERM.0.to_owned(), TERM.1.to_owned()));
        }
        let folder = spawn.directory.map(Into::into);
        let spec = ContainerCommandSpec { words, folder, variables, stdin: CommandInput::Piped };
        let container = Arc::clone(&self.container);
        let starting = async move { container.start_on_terminal(spec, size).await };
        let started = self.runtime.run_future(starting).await;
        notify_user(host, &self.container);
        let terminal = Arc::new(started?);
        let (runtime, shown_bytes) = (self.runtime.clone(), Arc::new(AtomicU64::new(0)));
        let events = DockerTerminalEvents {
            runtime: runtime.clone(),
            terminal: Arc::clone(&terminal),
            shown_bytes: Arc::clone(&shown_bytes),
            is_over: false,
        };
        Ok((DockerTerminal { runtime, terminal, shown_bytes, typed: Mutex::default() }, events))
    }
}

/// The maximum time until a program runs after input, on a busy machine.
const TAKE_DELAY: Duration = Duration::from_secs(1);

/// A terminal.
pub struct DockerTerminal {
    runtime: EngineRuntime,
    terminal: Arc<ContainerTerminal>,
    shown_bytes: Arc<AtomicU64>,
    typed: Mutex<InputObservations>,
}

/// The observations before and after input.
#[derive(Default)]
struct InputObservations {
    since: Option<Instant>,
    /// The process that waited at the time of the input.
    waiter_before: Option<WaitingProcess>,
    /// The process that waited last.
    waiter: Option<WaitingProcess>,
    seen: TerminalWaitHistory,
}

impl DockerTerminal {
    async fn run_on_engine<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<ContainerTerminal>) -> F,
    ) -> Result<T> {
        self.runtime.run_future(work(Arc::clone(&self.terminal))).await
    }
}

impl DockerTerminal {
    fn record_input(&self, bytes: &[u8]) {
        let mut typed = self.typed.lock();
        typed.seen.record_input(bytes);
        (typed.since, typed.waiter_before) = (Some(Instant::now()), typed.waiter.clone());
    }

    fn to_terminal_state(&self, sight: TerminalObservation) -> TerminalState {
        let (echoes, reads_lines) = sight.modes.unzip();
        let mut state = TerminalState {
            echoes,
            reads_lines,
            foreground_pid: sight.foreground,
            shown_bytes: Some(self.shown_bytes.load(Relaxed)),
            ..TerminalState::default()
        };
        let mut typed = self.typed.lock();
        // Unread input cannot be observed directly. A process that has not run since the input has
        // not read it.
        let has_not_run = typed.since.is_some_and(|since| since.elapsed() < TAKE_DELAY)
            && sight.waiting.waiter.is_some()
            && sight.waiting.waiter == typed.waiter_before;
        state.has_input = has_not_run.then_some(true);
        if !has_not_run {
            typed.waiter.clone_from(&sight.waiting.waiter);
        }
        typed.seen.add_observation(sight.waiting, &mut state);
        state
    }

    async fn foreground_state(&self) -> Result<TerminalState> {
        let found = self
            .run_on_engine(|terminal| async move { terminal.foreground_process().await })
            .await?;
        let Some(found) = found else { return Ok(TerminalState::default()) };
        let wait = |waits| if waits { TerminalWait::Reading } else { TerminalWait::Busy };
        Ok(TerminalState {
            waits: found.waits_for_input.map(wait),
            foreground_pid: Some(found.group),
            foreground_name: Some(found.name),
            ..TerminalState::default()
        })
    }
}

impl HostTerminal for DockerTerminal {
    /// Returns the process ID in the container, which differs from the ID outside.
    fn pid(&self) -> Option<u32> {
        Some(self.terminal.session())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        self.record_input(&bytes);
        self.run_on_engine(|terminal| async move { terminal.write_input(&bytes).await }).await
    }

    async fn write_within(&self, bytes: Vec<u8>, longest: Duration) -> Result<usize> {
        self.record_input(&bytes);
        self.run_on_engine(
            |terminal| async move { terminal.write_input_within(&bytes, longest).await },
        )
        .await
    }

    async fn resize(&self, size: TerminalResize) -> Result<()> {
        let size = TerminalSize { rows: size.rows, columns: size.columns };
        self.run_on_engine(|terminal| async move { terminal.resize_terminal(size).await }).await
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.run_on_engine(
            |terminal| async move { terminal.signal_foreground(signal).await.map(drop) },
        )
        .await
    }

    async fn state(&self) -> Result<TerminalState> {
        match self
            .run_on_engine(|terminal| async move { terminal.observe_foreground().await })
            .await
        {
            Ok(Some(sight)) if sight.waiting.waits.is_some() => Ok(self.to_terminal_state(sight)),
            // Processes of other users cannot be inspected, so only their wait channel is known.
            Ok(Some(_)) | Err(_) => self.foreground_state().await,
            Ok(None) => Ok(TerminalState::default()),
        }
    }

    async fn end(&self) -> Result<()> {
        self.run_on_engine(|terminal| async move { terminal.end_program().await }).await
    }
}

/// The events of a terminal.
pub struct DockerTerminalEvents {
    runtime: EngineRuntime,
    terminal: Arc<ContainerTerminal>,
    shown_bytes: Arc<AtomicU64>,
    is_over: bool,
}

impl TerminalEvents for DockerTerminalEvents {
    async fn next(&mut self) -> Result<Option<TerminalUpdate>> {
        if self.is_over {
            return Ok(None);
        }
        let terminal = Arc::clone(&self.terminal);
        let happened = self.runtime.run_future(async move { next_update(&terminal).await }).await;
        if let Ok(TerminalUpdate::Output(bytes)) = &happened {
            self.shown_bytes.fetch_add(bytes.len() as u64, Relaxed);
        }
        self.is_over = !matches!(happened, Ok(TerminalUpdate::Output(_)));
        happened.map(Some)
    }
}

async fn next_update(terminal: &ContainerTerminal) -> Result<TerminalUpdate> {
    if let Some(bytes) = terminal.read_output().await? {
        return Ok(TerminalUpdate::Output(bytes));
    }
    let (code, left_running) = terminal.wait_for_exit().await?;
    let code = Some(i32::try_from(code).unwrap_or(i32::MAX));
    Ok(TerminalUpdate::Exited(ProcessExit { code, left_running, ..ProcessExit::default() }))
}
