//! Terminals on this machine. The environment owns the terminal, and the host's guardian owns the
//! program.
//!
//! The environment opens the pseudo-terminal and gives the host the path of its other side. The
//! host starts the program there, so the program ends however the host ends, and the terminal's
//! bytes do not pass through the host. One thread watches which terminals are ready
//! ([`readiness`]), and each caller reads and writes itself. A program whose output is not read
//! therefore blocks.

mod input_writer;
mod pty;
mod readiness;
mod terminal_program;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::Spawn;
use jaato_plugin_sdk::types::process::SpawnOnTerminal;
use jaato_plugin_sdk::types::terminal::TerminalSpawn;
use jaato_plugin_sdk_environment::Terminals;
use rustix::io::Errno;

use pty::PseudoTerminal;
use readiness::TerminalReadiness;

pub use terminal_program::{LocalTerminal, LocalTerminalEvents};

/// The default value of `TERM` for programs.
const TERM: &str = "xterm-256color";

/// Runs programs on terminals.
pub struct LocalTerminals {
    home: Home,
    /// The folder to which relative folders resolve.
    default_path: PathBuf,
    readiness: Arc<TerminalReadiness>,
}

impl LocalTerminals {
    /// Creates terminals whose programs the instance runs, because the instance outlives each call.
    pub fn new(home: Home, default_path: PathBuf) -> Self {
        Self { home, default_path, readiness: Arc::default() }
    }
}

impl Terminals for LocalTerminals {
    type Terminal = LocalTerminal;
    type Events = LocalTerminalEvents;

    async fn spawn(
        &self,
        _host: &Reporter,
        spawn: TerminalSpawn,
    ) -> Result<(LocalTerminal, LocalTerminalEvents)> {
        let pty = PseudoTerminal::open(spawn.rows, spawn.columns)
            .map_err(|error| open_terminal_error(&error))?;
        let directory = match &spawn.directory {
            Some(directory) => self.default_path.join(directory),
            None => self.default_path.clone(),
        };
        let mut variables = spawn.variables;
        variables.entry("TERM".to_owned()).or_insert_with(|| TERM.to_owned());
        let spawn = Spawn {
            program: spawn.program,
            args: spawn.args,
            directory: Some(directory.to_string_lossy().into_owned()),
            variables,
            label: spawn.label,
            ..Spawn::default()
        };
        let terminal = pty.path().to_string_lossy().into_owned();
        let program = self.home.process_on_terminal(&SpawnOnTerminal { spawn, terminal }).await?;
        Ok(terminal_program::program_halves(
            Arc::new(pty),
            Arc::clone(&self.readiness),
            program.split(),
            self.home.clone(),
        ))
    }
}

/// Returns the error for a terminal that could not be opened. It distinguishes a machine without
/// terminals (a container without `/dev/pts`), on which programs run on pipes, from a machine that
/// has no free terminal.
fn open_terminal_error(error: &std::io::Error) -> Error {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => {
            let text = format!("this machine has no terminals: {error}");
            Error::new(ErrorKind::UnknownOperation, text)
        }
        _ => {
            let text = format!("cannot create a terminal: {error}");
            Error::new(ErrorKind::Unavailable, text)
                .with_hint("close some terminals, because too many may be open")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_terminal_support_differs_from_no_free_terminal() {
        let kind = |errno: Errno| open_terminal_error(&errno.into()).kind;
        for errno in [Errno::NOENT, Errno::NODEV, Errno::NXIO] {
            assert_eq!(kind(errno), ErrorKind::UnknownOperation, "{errno}");
        }
        for errno in [Errno::NOSPC, Errno::MFILE, Errno::IO] {
            assert_eq!(kind(errno), ErrorKind::Unavailable, "{errno}");
        }
    }
}
