//! What carries a program's input and output: a terminal, else pipes.
//!
//! The session asks [`start`] and knows no more than [`Control`] and [`Events`]; what a way cannot
//! do, it says itself. The order of choice is that of [`order`].

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
    TerminalAsk, TerminalAsked, TerminalHappened, TerminalScreen, TerminalShown, TerminalState,
};

/// A future that a trait object can give.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A program that is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// Where it runs; the environment's working directory without one.
    pub directory: Option<String>,
    /// More variables.
    pub variables: BTreeMap<String, String>,
    /// Lines of the terminal.
    pub rows: u16,
    /// Columns of the terminal.
    pub columns: u16,
    /// How a person is told of it.
    pub label: String,
}

/// A program that was started.
pub struct Started {
    /// Which way it was started.
    pub backend: Name,
    /// What can be done with it.
    pub control: Box<dyn Control>,
    /// What happens on it.
    pub events: Box<dyn Events>,
}

/// A way of running programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    /// A terminal of the execution environment.
    Pty,
    /// Pipes, where the environment has no terminals.
    Pipes,
    /// A Windows console.
    Console,
}

/// What can be done with a running program. Dropped after its [`Events`].
pub trait Control: Send + Sync {
    /// Types within that time, where it can be known how much was taken; returns how many bytes
    /// that is. The rest is never typed.
    fn write<'a>(&'a self, bytes: &'a [u8], longest: Duration) -> Boxed<'a, Result<usize>>;
    /// Sends a signal to what is in the foreground.
    fn signal(&self, signal: Signal) -> Boxed<'_, Result<()>>;
    /// Ends the input: what Ctrl-D does where there is a terminal.
    fn end_input(&self) -> Boxed<'_, Result<()>>;
    /// Tells what the system knows of it; nothing where that is nothing.
    fn state(&self) -> Boxed<'_, Result<TerminalState>>;
    /// Ends the program and all that it started; the exit is told next.
    fn end(&self) -> Boxed<'_, Result<()>>;
    /// Shows people what is on the screen, where there is one.
    fn show<'a>(
        &'a self,
        screen: TerminalScreen,
        ansi: &'a str,
    ) -> Boxed<'a, Result<TerminalShown>>;
    /// Asks the person to type.
    fn ask(&self, ask: TerminalAsk) -> Boxed<'_, Result<TerminalAsked>>;
    /// Returns the number by which people's news name it; none where they cannot join it.
    fn number(&self) -> Option<u64>;
}

/// What happens with a running program. Dropping it ends the program.
pub trait Events: Send {
    /// Waits for what happens next; nothing after the exit.
    fn next(&mut self) -> Boxed<'_, Result<Option<TerminalHappened>>>;
}

/// A way of running programs.
trait Backend: Sync {
    fn name(&self) -> Name;
    /// Starts a program; `unknown_operation` where this way is none here, so that the next one is
    /// tried.
    fn start<'a>(&'a self, host: &'a Reporter, start: &'a Start) -> Boxed<'a, Result<Started>>;
}

/// The ways, the best first.
fn order() -> &'static [&'static dyn Backend] {
    if cfg!(windows) { &[&console::Console, &pipes::Pipes] } else { &[&pty::Pty, &pipes::Pipes] }
}

/// Starts a program in the best way that there is.
///
/// # Errors
/// `not_found` for what is not there, `limit_reached` when too many run; what the last way said.
pub async fn start(host: &Reporter, start: &Start) -> Result<Started> {
    let mut refused = None;
    for backend in order() {
        match backend.start(host, start).await {
            Err(error) if error.kind == ErrorKind::UnknownOperation => refused = Some(error),
            started => return started,
        }
    }
    Err(refused.unwrap_or_else(|| unreachable!("there is more than one way")))
}

/// Returns the way that is tried first.
pub fn preferred() -> Name {
    order().first().map_or(Name::Pipes, |backend| backend.name())
}

impl Name {
    /// Returns its name in lists and in the trace.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pty => "pty",
            Self::Pipes => "pipes",
            Self::Console => "console",
        }
    }

    /// Lists what does not work this way, for the model.
    pub fn limits(self) -> &'static [&'static str] {
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
        let names: Vec<_> = order().iter().map(|backend| backend.name()).collect();
        assert_eq!(names.last(), Some(&Name::Pipes));
        assert_eq!(names[0], if cfg!(windows) { Name::Console } else { Name::Pty });
        assert_eq!(preferred(), names[0]);
    }

    #[test]
    fn pipes_say_what_they_cannot_do() {
        assert!(Name::Pty.limits().is_empty());
        assert!(Name::Pipes.limits().iter().any(|limit| limit.contains("not hidden")));
    }
}
