//! Terminals of the container, as the host asks for them.

use std::sync::Arc;

use jaato_plugin_sdk::environment::{
    Terminal as HostTerminal, TerminalEvents, TerminalHappened, Terminals,
};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{ProcessExit, Signal};
use jaato_plugin_sdk::types::terminal::{
    TerminalResize, TerminalSpawn, TerminalState, TerminalWait,
};

use crate::command::{Spec, Stdin};
use crate::container::Container;
use crate::runtime::Runtime;
use crate::terminal::{Size, Terminal};

/// What most programs know.
const TERM: (&str, &str) = ("TERM", "xterm-256color");

/// Runs programs on terminals of the container.
pub struct DockerTerminals {
    runtime: Runtime,
    container: Arc<Container>,
}

impl DockerTerminals {
    /// Runs them in that container.
    pub fn new(runtime: Runtime, container: Arc<Container>) -> Self {
        Self { runtime, container }
    }
}

impl Terminals for DockerTerminals {
    type Terminal = DockerTerminal;
    type Events = DockerTerminalEvents;

    async fn spawn(
        &self,
        _host: &Reporter,
        spawn: TerminalSpawn,
    ) -> Result<(DockerTerminal, DockerTerminalEvents)> {
        let size = Size { rows: spawn.rows, columns: spawn.columns };
        let mut words = vec![spawn.program];
        words.extend(spawn.args);
        let mut variables: Vec<_> = spawn.variables.into_iter().collect();
        if !variables.iter().any(|(name, _)| name == TERM.0) {
            variables.push((TERM.0.to_owned(), TERM.1.to_owned()));
        }
        let folder = spawn.directory.map(Into::into);
        let spec = Spec { words, folder, variables, stdin: Stdin::Piped };
        let container = Arc::clone(&self.container);
        let starting = async move { container.start_on_terminal(spec, size).await };
        let terminal = Arc::new(self.runtime.run(starting).await?);
        let runtime = self.runtime.clone();
        let events = DockerTerminalEvents {
            runtime: runtime.clone(),
            terminal: Arc::clone(&terminal),
            is_over: false,
        };
        Ok((DockerTerminal { runtime, terminal }, events))
    }
}

/// A terminal.
pub struct DockerTerminal {
    runtime: Runtime,
    terminal: Arc<Terminal>,
}

impl DockerTerminal {
    async fn run<T: Send + 'static, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<Terminal>) -> F,
    ) -> Result<T> {
        self.runtime.run(work(Arc::clone(&self.terminal))).await
    }
}

impl HostTerminal for DockerTerminal {
    /// The number in the container, which differs from that outside of it.
    fn pid(&self) -> Option<u32> {
        Some(self.terminal.session())
    }

    async fn write(&self, bytes: Vec<u8>) -> Result<()> {
        self.run(|terminal| async move { terminal.write(&bytes).await }).await
    }

    async fn resize(&self, size: TerminalResize) -> Result<()> {
        let size = Size { rows: size.rows, columns: size.columns };
        self.run(|terminal| async move { terminal.resize(size).await }).await
    }

    async fn signal(&self, signal: Signal) -> Result<()> {
        self.run(|terminal| async move { terminal.signal(signal).await.map(drop) }).await
    }

    /// Echo and lines are the container's kernel's to know: nothing that every image has tells of them.
    async fn state(&self) -> Result<TerminalState> {
        let found = self.run(|terminal| async move { terminal.foreground().await }).await?;
        let Some(found) = found else { return Ok(TerminalState::default()) };
        let wait = |waits| if waits { TerminalWait::Reading } else { TerminalWait::Busy };
        Ok(TerminalState {
            waits: found.waits_for_input.map(wait),
            foreground_pid: Some(found.group),
            foreground_name: Some(found.name),
            ..TerminalState::default()
        })
    }

    async fn end(&self) -> Result<()> {
        self.run(|terminal| async move { terminal.end().await }).await
    }
}

/// What happens on a terminal.
pub struct DockerTerminalEvents {
    runtime: Runtime,
    terminal: Arc<Terminal>,
    is_over: bool,
}

impl TerminalEvents for DockerTerminalEvents {
    async fn next(&mut self) -> Result<Option<TerminalHappened>> {
        if self.is_over {
            return Ok(None);
        }
        let terminal = Arc::clone(&self.terminal);
        let happened = self.runtime.run(async move { next(&terminal).await }).await;
        self.is_over = !matches!(happened, Ok(TerminalHappened::Output(_)));
        happened.map(Some)
    }
}

async fn next(terminal: &Terminal) -> Result<TerminalHappened> {
    if let Some(bytes) = terminal.read().await? {
        return Ok(TerminalHappened::Output(bytes));
    }
    let code = terminal.code().await?;
    let code = i32::try_from(code).unwrap_or(i32::MAX);
    Ok(TerminalHappened::Exited(ProcessExit { code: Some(code), ..ProcessExit::default() }))
}
