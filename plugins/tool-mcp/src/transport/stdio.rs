//! A server whose program the host starts. Messages use its standard input and output, and its
//! standard error goes to the log.

use std::time::Duration;

use jaato_plugin_sdk::process::{
    OutputStream, ProcessControl, ProcessEvents, ProcessUpdate, Spawn,
};
use jaato_plugin_sdk::{Home, Result};
use tokio::sync::mpsc;

use super::wire::{HEARD_PIECES_MAX, SAID_MESSAGES_MAX, StdioWire};
use crate::config::StdioServerAddress;
use crate::log::ServerLog;
use crate::runner::{INSTALL_TIME, PackageInstallRegistration};
use crate::runtime::McpSpawner;

/// The maximum time for a program to end after its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// The host's longest deadline, because a server runs as long as the host.
const DEADLINE_MS: u64 = 365 * 24 * 3600 * 1000;
/// The maximum number of bytes of a standard error line logged at once.
const ERROR_LINE_BYTES_MAX: usize = 4096;

/// Starts a server's program.
///
/// # Errors
/// The host's error, for example a missing program or grant.
pub async fn start_stdio_program(
    home: &Home,
    reach: &StdioServerAddress,
    spawner: &McpSpawner,
    log: &ServerLog,
    install: Option<PackageInstallRegistration>,
) -> Result<StdioWire> {
    let mut spawn = Spawn::program(&reach.command).piped_stdin();
    spawn.args.clone_from(&reach.args);
    spawn.variables.clone_from(&reach.env);
    spawn.directory.clone_from(&reach.cwd);
    spawn.deadline_ms = Some(DEADLINE_MS);
    spawn.label = Some(format!("MCP server {}", log.server_name()));
    let process = home.host_process(&spawn).await?;
    let (control, events) = process.split();
    let (hear, heard) = mpsc::channel(HEARD_PIECES_MAX);
    let (said, say) = mpsc::channel(SAID_MESSAGES_MAX);
    spawner.spawn(write_messages(control.clone(), say));
    spawner.spawn(read_output(control, events, hear, log.clone(), install));
    Ok(StdioWire { heard, said })
}

/// Writes messages to the server. Closes its input when the connection is closed.
async fn write_messages(control: ProcessControl, mut say: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = say.recv().await {
        if control.write(&line).await.is_err() {
            // The program no longer reads. Its output or its exit explains why.
            return;
        }
    }
    let _ = control.close_input().await;
}

/// Reads the program's output until the program has ended or the receiver is gone.
async fn read_output(
    control: ProcessControl,
    mut events: ProcessEvents,
    hear: mpsc::Sender<Vec<u8>>,
    log: ServerLog,
    mut install: Option<PackageInstallRegistration>,
) {
    let mut errors = ErrorLines { begun: Vec::new(), log: log.clone() };
    loop {
        let happened = tokio::select! {
            happened = events.next() => happened,
            () = hear.closed() => break,
        };
        match happened {
            Ok(Some(ProcessUpdate::Output { stream: OutputStream::Stdout, bytes })) => {
                install = None;
                if hear.send(bytes).await.is_err() {
                    break;
                }
            }
            Ok(Some(ProcessUpdate::Output { bytes, .. })) => errors.add_bytes(&bytes),
            Ok(Some(ProcessUpdate::Exited(exit))) => {
                errors.flush_last_line();
                let how = match (exit.code, exit.signal) {
                    (Some(code), _) => format!("it ended with code {code}"),
                    (None, Some(signal)) => format!("it was killed by signal {signal}"),
                    (None, None) => "it ended".to_owned(),
                };
                log.add_line(&how);
                return;
            }
            Ok(None) => return,
            Err(error) => {
                log.add_line(&error.message);
                return;
            }
        }
    }
    // The connection was closed, so the input has ended. The program may still shut down.
    let farewell = async {
        while let Ok(Some(happened)) = events.next().await {
            match happened {
                ProcessUpdate::Output { stream: OutputStream::Stderr, bytes } => {
                    errors.add_bytes(&bytes)
                }
                ProcessUpdate::Output { .. } => {}
                ProcessUpdate::Exited(_) => break,
            }
        }
    };
    // A package runner that is still silent may be installing.
    let grace = if install.is_some() { INSTALL_TIME } else { GRACE };
    if tokio::time::timeout(grace, farewell).await.is_err() {
        let _ = control.end().await;
    }
    errors.flush_last_line();
}

/// Splits standard error into lines.
struct ErrorLines {
    begun: Vec<u8>,
    log: ServerLog,
}

impl ErrorLines {
    fn add_bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' || self.begun.len() >= ERROR_LINE_BYTES_MAX {
                self.flush_last_line();
            }
            if byte != b'\n' {
                self.begun.push(byte);
            }
        }
    }

    fn flush_last_line(&mut self) {
        let line = std::mem::take(&mut self.begun);
        if !line.iter().all(u8::is_ascii_whitespace) {
            self.log.record_printed(&String::from_utf8_lossy(&line));
        }
    }
}
