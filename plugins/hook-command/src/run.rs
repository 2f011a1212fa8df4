//! Runs the command of one hook: JSON on its standard input, its output up to a limit, a deadline.
//!
//! The host runs the program and ends its process tree at the deadline, on a cancel, and when the
//! host ends.

use std::time::{Duration, Instant};

use futures_util::future::join;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{
    OutputStream, ProcessControl, ProcessEvents, ProcessExit, ProcessUpdate, Spawn,
};

/// The maximum size of each output, in bytes.
pub const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

/// The size of a piece of the input, in bytes.
const INPUT_PIECE_BYTES: usize = 64 * 1024;

/// A command to run.
#[derive(Debug, Clone)]
pub struct HookCommand<'a> {
    /// The command line for `sh`.
    pub command: &'a str,
    /// The JSON for its standard input.
    pub input: &'a str,
    /// The folder in which it runs.
    pub folder: &'a str,
    /// The value of `CLAUDE_PROJECT_DIR`.
    pub project: &'a str,
    /// The time limit, in milliseconds.
    pub timeout_ms: u64,
}

/// The result of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandResult {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The reason why it did not run to its end by itself. The code means nothing then.
    pub failure: Option<String>,
    /// The duration.
    pub took: Duration,
}

/// Runs a command.
pub async fn run_command(host: &Reporter, command: &HookCommand<'_>) -> CommandResult {
    let began = Instant::now();
    let mut result = CommandResult::default();
    let mut spawn = Spawn::shell(command.command)
        .directory(command.folder)
        .variable("CLAUDE_PROJECT_DIR", command.project)
        .piped_stdin()
        .deadline_ms(command.timeout_ms);
    spawn.label = Some(format!("hook {}", command.command));
    let failure = match host.host_process(&spawn).await {
        Err(error) => Some(format!("it cannot start: {}", error.message)),
        Ok(process) => {
            let (control, events) = process.split();
            let input = command.input.as_bytes();
            let read = read_output(&control, events, &mut result);
            match join(write_input(&control, input), read).await.1 {
                Ok(exit) => exit_failure(&exit, command.timeout_ms, &mut result.code),
                Err(why) => Some(why),
            }
        }
    };
    CommandResult { failure, took: began.elapsed(), ..result }
}

/// Writes the input. A program that does not read it is no error.
async fn write_input(control: &ProcessControl, input: &[u8]) {
    for piece in input.chunks(INPUT_PIECE_BYTES) {
        if control.write(piece).await.is_err() {
            return;
        }
    }
    let _ = control.close_input().await;
}

async fn read_output(
    control: &ProcessControl,
    mut events: ProcessEvents,
    result: &mut CommandResult,
) -> Result<ProcessExit, String> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut exit = None;
    while let Some(update) = events.next().await.map_err(|error| error.message)? {
        let (kept, bytes) = match update {
            ProcessUpdate::Output { stream: OutputStream::Stdout, bytes } => (&mut stdout, bytes),
            ProcessUpdate::Output { stream: OutputStream::Stderr, bytes } => (&mut stderr, bytes),
            ProcessUpdate::Exited(ended) => {
                exit = Some(ended);
                continue;
            }
        };
        if kept.len() + bytes.len() > OUTPUT_BYTES_MAX {
            let _ = control.end().await;
            return Err(format!("it printed more than {OUTPUT_BYTES_MAX} bytes"));
        }
        kept.extend_from_slice(&bytes);
    }
    result.stdout = String::from_utf8_lossy(&stdout).into_owned();
    result.stderr = String::from_utf8_lossy(&stderr).into_owned();
    exit.ok_or_else(|| "its exit is unknown".to_owned())
}

fn exit_failure(exit: &ProcessExit, timeout_ms: u64, code: &mut i32) -> Option<String> {
    if exit.timed_out {
        return Some(format!("it did not end within {timeout_ms} ms"));
    }
    match (exit.code, exit.signal) {
        (Some(ended), _) => {
            *code = ended;
            None
        }
        (None, Some(signal)) => Some(format!("it was killed by signal {signal}")),
        (None, None) => Some("its exit is unknown".to_owned()),
    }
}
