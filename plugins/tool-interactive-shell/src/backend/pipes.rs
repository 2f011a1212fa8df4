//! Pipes, for execution environments without terminals.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{
    ProcessControl, ProcessEvents, ProcessUpdate, Signal, Spawn, Stdin,
};
use jaato_plugin_sdk::terminal::{
    TerminalAsk, TerminalAskOutcome, TerminalScreen, TerminalShowAnswer, TerminalState,
    TerminalUpdate,
};

use super::{
    BackendControl, BackendEvents, BackendName, BoxedFuture, ProgramStart, StartedProgram,
    TerminalBackend,
};

/// The backend for pipes.
pub struct PipesBackend;

struct PipeControl {
    process: ProcessControl,
    is_closed: AtomicBool,
}

/// Standard output and standard error as one stream, with the line ends of a terminal.
struct PipeEvents(ProcessEvents);

impl TerminalBackend for PipesBackend {
    fn backend_name(&self) -> BackendName {
        BackendName::Pipes
    }

    fn start_program<'a>(
        &'a self,
        host: &'a Reporter,
        start: &'a ProgramStart,
    ) -> BoxedFuture<'a, Result<StartedProgram>> {
        Box::pin(async move {
            let (process, events) = host.process(&spawn_for_start(start)).await?.split();
            let control = PipeControl { process, is_closed: AtomicBool::new(false) };
            let (control, events) = (Box::new(control), Box::new(PipeEvents(events)));
            Ok(StartedProgram { backend: BackendName::Pipes, control, events })
        })
    }
}

fn spawn_for_start(start: &ProgramStart) -> Spawn {
    let mut words = start.words.iter().cloned();
    Spawn {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        directory: start.directory.clone(),
        variables: start.variables.clone(),
        stdin: Stdin::Piped,
        label: Some(start.label.clone()),
        ..Spawn::default()
    }
}

impl BackendControl for PipeControl {
    /// Waits until everything is written, because a pipe does not report how much was read.
    fn write_within<'a>(
        &'a self,
        bytes: &'a [u8],
        _longest: Duration,
    ) -> BoxedFuture<'a, Result<usize>> {
        Box::pin(async move {
            if self.is_closed.load(Relaxed) {
                return Err(Error::new(ErrorKind::Io, "the program's input was ended by `c-d`"));
            }
            self.process.write(bytes).await?;
            Ok(bytes.len())
        })
    }

    fn signal(&self, signal: Signal) -> BoxedFuture<'_, Result<()>> {
        Box::pin(self.process.signal(signal))
    }

    fn end_input(&self) -> BoxedFuture<'_, Result<()>> {
        self.is_closed.store(true, Relaxed);
        Box::pin(self.process.close_input())
    }

    fn state(&self) -> BoxedFuture<'_, Result<TerminalState>> {
        Box::pin(async { Ok(TerminalState::default()) })
    }

    fn end(&self) -> BoxedFuture<'_, Result<()>> {
        Box::pin(self.process.end())
    }

    fn show_screen<'a>(
        &'a self,
        _: TerminalScreen,
        _: &'a str,
    ) -> BoxedFuture<'a, Result<TerminalShowAnswer>> {
        Box::pin(async { Ok(TerminalShowAnswer::default()) })
    }

    fn ask_user(&self, _: TerminalAsk) -> BoxedFuture<'_, Result<TerminalAskOutcome>> {
        let reason = "the program runs on pipes, which cannot hide what the user types".to_owned();
        Box::pin(async { Ok(TerminalAskOutcome::Nobody { reason }) })
    }

    fn terminal_number(&self) -> Option<u64> {
        None
    }
}

impl BackendEvents for PipeEvents {
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<TerminalUpdate>>> {
        Box::pin(async {
            Ok(self.0.next().await?.map(|happened| match happened {
                ProcessUpdate::Output { bytes, .. } => {
                    TerminalUpdate::Output(with_carriage_returns(&bytes))
                }
                ProcessUpdate::Exited(exit) => TerminalUpdate::Exited(exit),
            }))
        })
    }
}

/// Puts a carriage return before each line end, as a terminal driver does. Otherwise the screen
/// would show lines as stairs.
fn with_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                out.extend_from_slice(line);
                out.extend_from_slice(b"\r\n");
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_output_gets_carriage_returns_like_a_terminal() {
        assert_eq!(with_carriage_returns(b"a\nb\r\n\nc"), b"a\r\nb\r\r\n\r\nc");
        assert_eq!(with_carriage_returns(b""), b"");
    }
}
