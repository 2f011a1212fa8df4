//! The backends that carry a program's input and output: a terminal, or else pipes.
//!
//! A session calls [`start_in_best_backend`] and uses only [`BackendControl`] and
//! [`BackendEvents`]. A backend reports its own limitations. [`backends_by_preference`] sets the
//! order in which backends are tried.

mod console;
mod pipes;
mod pty;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Signal;
use jaato_plugin_sdk::terminal::{
    TerminalAsk, TerminalAskOutcome, TerminalScreen, TerminalShowAnswer, TerminalState,
    TerminalUpdate,
};

/// A future for trait objects.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The settings of a program to start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramStart {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The folder in which it runs. `None` means the environment's working directory.
    pub directory: Option<String>,
    /// Additional environment variables.
    pub variables: BTreeMap<String, String>,
    /// The number of terminal rows.
    pub rows: u16,
    /// The number of terminal columns.
    pub columns: u16,
    /// The name of the program for users.
    pub label: String,
}

/// A started program.
pub struct StartedProgram {
    /// The backend that started it.
    pub backend: BackendName,
    /// Controls the program.
    pub control: Box<dyn BackendControl>,
    /// The events of the program.
    pub events: Box<dyn BackendEvents>,
}

/// The name of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendName {
    /// A terminal of the execution environment.
    Pty,
    /// Pipes, for environments without terminals.
    Pipes,
    /// A Windows console.
    Console,
}

/// Controls a running program. Must be dropped after its [`BackendEvents`].
pub trait BackendControl: Send + Sync {
    /// Types within the time limit, if the backend can tell how much was read. Returns the number
    /// of bytes. The rest is never typed.
    fn write_within<'a>(
        &'a self,
        bytes: &'a [u8],
        longest: Duration,
    ) -> BoxedFuture<'a, Result<usize>>;
    /// Sends a signal to the foreground processes.
    fn signal(&self, signal: Signal) -> BoxedFuture<'_, Result<()>>;
    /// Ends the input. On a terminal, this has the effect of Ctrl-D.
    fn end_input(&self) -> BoxedFuture<'_, Result<()>>;
    /// Returns the system's information about the program, which may be empty.
    fn state(&self) -> BoxedFuture<'_, Result<TerminalState>>;
    /// Ends the program and all processes that it started. The exit is the next event.
    fn end(&self) -> BoxedFuture<'_, Result<()>>;
    /// Shows the screen to users, if there are any.
    fn show_screen<'a>(
        &'a self,
        screen: TerminalScreen,
        ansi: &'a str,
    ) -> BoxedFuture<'a, Result<TerminalShowAnswer>>;
    /// Asks the user to type.
    fn ask_user(&self, ask: TerminalAsk) -> BoxedFuture<'_, Result<TerminalAskOutcome>>;
    /// Returns the number that identifies the terminal in news about users. `None` if users cannot
    /// join it.
    fn terminal_number(&self) -> Option<u64>;
}

/// The events of a running program. Dropping this ends the program.
pub trait BackendEvents: Send {
    /// Waits for the next event. Returns `None` after the exit.
    fn next(&mut self) -> BoxedFuture<'_, Result<Option<TerminalUpdate>>>;
}

/// A way to run programs.
trait TerminalBackend: Sync {
    fn backend_name(&self) -> BackendName;
    /// Starts a program. Returns `unknown_operation` if the backend is not available, so that the
    /// next one is tried.
    fn start_program<'a>(
        &'a self,
        host: &'a Reporter,
        start: &'a ProgramStart,
    ) -> BoxedFuture<'a, Result<StartedProgram>>;
}

/// Returns the backends, best first.
fn backends_by_preference() -> &'static [&'static dyn TerminalBackend] {
    if cfg!(windows) {
        &[&console::ConsoleBackend, &pipes::PipesBackend]
    } else {
        &[&pty::PtyBackend, &pipes::PipesBackend]
    }
}

/// Starts a program in the best available backend.
///
/// # Errors
/// `not_found` if the program does not exist, `limit_reached` if too many programs run, or the last
/// backend's error.
pub async fn start_in_best_backend(
    host: &Reporter,
    start: &ProgramStart,
) -> Result<StartedProgram> {
    let mut refused = None;
    for backend in backends_by_preference() {
        match backend.start_program(host, start).await {
            Err(error) if error.kind == ErrorKind::UnknownOperation => refused = Some(error),
            started => return started,
        }
    }
    Err(refused.unwrap_or_else(|| unreachable!("there is more than one backend")))
}

/// Returns the backend that is tried first.
pub fn preferred_backend() -> BackendName {
    backends_by_preference().first().map_or(BackendName::Pipes, |backend| backend.backend_name())
}

impl BackendName {
    /// Returns the name for lists and the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pty => "pty",
            Self::Pipes => "pipes",
            Self::Console => "console",
        }
    }

    /// Lists the limitations of the backend, for the model.
    pub fn list_limitations(self) -> &'static [&'static str] {
        match self {
            Self::Pty | Self::Console => &[],
            Self::Pipes => &[
                "the program sees no terminal (`isatty` is false): output may be plain and come late",
                "`rows` and `columns` are ignored",
                "what is typed at a password prompt is not hidden",
                "programs that need a terminal may ask nothing, or refuse to run",
                "job control (`c-z`) does not work, and `c-c` is a signal to the program",
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_tried_before_pipes() {
        let names: Vec<_> =
            backends_by_preference().iter().map(|backend| backend.backend_name()).collect();
        assert_eq!(names.last(), Some(&BackendName::Pipes));
        assert_eq!(names[0], if cfg!(windows) { BackendName::Console } else { BackendName::Pty });
        assert_eq!(preferred_backend(), names[0]);
    }

    #[test]
    fn pipes_backend_lists_its_limits() {
        assert!(BackendName::Pty.list_limitations().is_empty());
        assert!(
            BackendName::Pipes.list_limitations().iter().any(|limit| limit.contains("not hidden"))
        );
    }
}
