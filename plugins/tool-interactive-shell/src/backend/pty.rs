//! A terminal of the session's execution environment.

use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Signal;
use jaato_plugin_sdk::terminal::{
    TerminalAsk, TerminalAsked, TerminalControl, TerminalHappened, TerminalScreen, TerminalShown,
    TerminalSpawn, TerminalState, TerminalStream,
};

use super::{Backend, Boxed, Control, Events, Name, Start, Started};
use crate::keys::END_OF_TRANSMISSION;

/// The backend for a terminal.
pub struct Pty;

impl Backend for Pty {
    fn name(&self) -> Name {
        Name::Pty
    }

    fn start<'a>(&'a self, host: &'a Reporter, start: &'a Start) -> Boxed<'a, Result<Started>> {
        Box::pin(async move {
            let (control, events) = host.terminal(&spawn(start)).await?.split();
            let (control, events) = (Box::new(control), Box::new(events));
            Ok(Started { backend: Name::Pty, control, events })
        })
    }
}

fn spawn(start: &Start) -> TerminalSpawn {
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

impl Control for TerminalControl {
    fn write<'a>(&'a self, bytes: &'a [u8], longest: Duration) -> Boxed<'a, Result<usize>> {
        Box::pin(self.write_within(bytes, longest))
    }

    fn signal(&self, signal: Signal) -> Boxed<'_, Result<()>> {
        Box::pin(Self::signal(self, signal))
    }

    fn end_input(&self) -> Boxed<'_, Result<()>> {
        Box::pin(Self::write(self, END_OF_TRANSMISSION))
    }

    fn state(&self) -> Boxed<'_, Result<TerminalState>> {
        Box::pin(Self::state(self))
    }

    fn end(&self) -> Boxed<'_, Result<()>> {
        Box::pin(Self::end(self))
    }

    fn show<'a>(
        &'a self,
        screen: TerminalScreen,
        ansi: &'a str,
    ) -> Boxed<'a, Result<TerminalShown>> {
        Box::pin(Self::show(self, screen, ansi))
    }

    fn ask(&self, ask: TerminalAsk) -> Boxed<'_, Result<TerminalAsked>> {
        Box::pin(Self::ask(self, ask))
    }

    fn number(&self) -> Option<u64> {
        Some(Self::number(self))
    }
}

impl Events for TerminalStream {
    fn next(&mut self) -> Boxed<'_, Result<Option<TerminalHappened>>> {
        Box::pin(Self::next(self))
    }
}
