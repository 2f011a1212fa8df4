//! A terminal of the session's execution environment.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Signal;
use jaato_plugin_sdk::terminal::{
    TerminalAsk, TerminalAskOutcome, TerminalControl, TerminalScreen, TerminalShowAnswer,
    TerminalSpawn, TerminalState, TerminalStream, TerminalUpdate,
};

use super::{
    BackendControl, BackendEvents, BackendName, BoxedFuture, ProgramStart, StartedProgram,
    TerminalBackend,
};
use crate::keys::END_OF_TRANSMISSION;

/// The backend for a terminal.
pub struct PtyBackend;

impl TerminalBackend for PtyBackend {
    fn backend_name(&self) -> BackendName {
        BackendName::Pty
    }

    fn start_program<'a>(
        &'a self,
        host: &'a Reporter,
        start: &'a ProgramStart,
    ) -> BoxedFuture<'a, Result<StartedProgram>> {
        Box::pin(async move {
            let (control, events) = host.terminal(&spawn_for_start(start)).await?.split();
            let (control, events) = (Box::new(control), Box::new(events));
            Ok(StartedProgram { backend: BackendName::Pty, control, events })
        })
    }
}

fn spawn_for_start(start: &ProgramStart) -> TerminalSpawn {
    let mut words = start.words.iter().cloned();
    TerminalSpawn {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        directory: start.directory.clone(),
        variables: start.variables.clone(),
        rows: start.rows,
        columns: start.columns,
        label: Some(start.label.clone()),
    }
}

impl BackendControl for TerminalControl {
    fn write_within<'a>(
        &'a self,
        bytes: &'a [u8],
        longest: Duration,
    ) -> BoxedFuture<'a, Result<usize>> {
        Box::pin(self.write_within(bytes, longest))
    }

    fn signal(&self, signal: Signal) -> BoxedFuture<'_, Result<()>> {
        Box::pin(Self::signal(self, signal))
    }

    fn end_input(&self) -> BoxedFuture<'_, Result<()>> {
        Box::pin(Self::write(self, END_OF_TRANSMISSION))
    }

    fn state(&self) -> BoxedFuture<'_, Result<TerminalState>> {
        Box::pin(Self::state(self))
    }

    fn end(&self) -> BoxedFuture<'_, Result<()>> {
        Box::pin(Self::end(self))
    }

    fn show_screen<'a>(
        &'a self,
        screen: TerminalScreen,
        ansi: &'a str,
    ) -> BoxedFuture<'a, Result<TerminalShowAnswer>> {
        Box::pin(Self::show(self, screen, ansi))
    }

    fn ask_user(&self, ask: TerminalAsk) -> BoxedFuture<'_, Result<TerminalAskOutcome>> {
        Box::pin(Self::ask(self, ask))
    }

    fn terminal_number(&self) -> Option<u64> {
        Some(Self::number(self))
    }
}

impl BackendEvents for TerminalStream {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<TerminalUpdate>>> {
        Box::pin(Self::next(self))
    }
}
