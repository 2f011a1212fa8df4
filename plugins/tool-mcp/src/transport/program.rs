//! Starts a server's program as a child of this process, for the library. The plugin starts
//! programs through the host.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::{Error, ErrorKind, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::mpsc;

use super::wire::{HEARD_PIECES_MAX, SAID_MESSAGES_MAX, StdioWire};
use crate::config::StdioServerAddress;
use crate::log::ServerLog;

/// The maximum number of bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;
/// The maximum time for a program to end after its input has ended.
const GRACE: Duration = Duration::from_secs(2);
/// The interval at which the wait checks the program.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// The maximum number of bytes of a standard error line read at once.
const ERROR_LINE_BYTES_MAX: u64 = 4096;

/// Starts a program in its own process group, which ends with the connection.
///
/// # Errors
/// `not_found` if the program does not exist, or the system's error.
pub fn start_program(reach: &StdioServerAddress, log: &ServerLog) -> Result<StdioWire> {
    let mut command = Command::new(&reach.command);
    command.args(&reach.args).envs(&reach.env).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(folder) = &reach.cwd {
        command.current_dir(folder);
    }
    let mut child = command.spawn().map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("cannot start `{}`: {error}", reach.command))
    })?;
    let (hear, heard) = mpsc::channel(HEARD_PIECES_MAX);
    let (said, mut say) = mpsc::channel::<Vec<u8>>(SAID_MESSAGES_MAX);
    if let Some(mut output) = child.stdout.take() {
        thread::spawn(move || {
            let mut piece = vec![0; PIECE_BYTES];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                if hear.blocking_send(piece[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
    }
    if let Some(errors) = child.stderr.take() {
        let log = log.clone();
        thread::spawn(move || log_stderr(errors, &log));
    }
    let input = child.stdin.take();
    thread::spawn(move || {
        if let Some(mut input) = input {
            while let Some(line) = say.blocking_recv() {
                if input.write_all(&line).and_then(|()| input.flush()).is_err() {
                    break;
                }
            }
        }
        terminate_program(child);
    });
    Ok(StdioWire { heard, said })
}

fn log_stderr(errors: impl Read, log: &ServerLog) {
    let mut errors = BufReader::new(errors);
    loop {
        let mut line = Vec::new();
        match errors.by_ref().take(ERROR_LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => log.add_line(&String::from_utf8_lossy(&line)),
        }
    }
}

/// Waits for a program whose input has ended, then ends its process group.
fn terminate_program(mut child: Child) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let until = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < until {
        thread::sleep(LOOK_AGAIN);
    }
    if let Some(group) = pid {
        // Usually the process is already gone.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}
