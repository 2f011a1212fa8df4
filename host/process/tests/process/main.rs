//! Tests real processes under a real guardian: how they start, what they get, and that none is
//! left.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod ending;
mod faults;
mod starting;
mod terminals;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jaato_process::{
    ChildCommand, ChildProcess, ErrorOutput, GuardianCommand, StandardOutput, Supervisor,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

/// Longest wait for an event that must happen soon. A failing test ends here.
const SOON: Duration = Duration::from_secs(20);

/// Returns the example that acts as host and as guardian. `cargo test` builds it next to the tests.
fn miniature_host() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().unwrap().parent().unwrap().join("examples/miniature_host");
    assert!(path.is_file(), "`{}` is missing: cargo build --examples", path.display());
    path
}

fn new_supervisor() -> Supervisor {
    let (program, args) = (miniature_host(), vec!["guardian".into()]);
    Supervisor::new(GuardianCommand { program, args })
}

/// Returns a shell script with piped output that includes its error output.
fn script_command(text: &str) -> ChildCommand {
    let mut command = ChildCommand::new("/bin/sh", "/");
    command.args = vec!["-c".into(), text.into()];
    command.variables.insert("PATH".into(), "/usr/bin:/bin".into());
    command.stdout = StandardOutput::Piped;
    command.stderr = ErrorOutput::Merged;
    command
}

async fn read_all(child: &mut ChildProcess) -> String {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    let read = stdout.read_to_string(&mut text);
    tokio::time::timeout(SOON, read).await.expect("its output does not end").unwrap();
    text
}

/// Reads this many lines with a process id each, and keeps the pipe open.
async fn read_pids(child: &mut ChildProcess, count: usize) -> Vec<u32> {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let mut pids = Vec::new();
    while pids.len() < count {
        let line = tokio::time::timeout(SOON, lines.next_line()).await.expect("no process id");
        pids.push(line.unwrap().expect("the output ended").trim().parse().unwrap());
    }
    pids
}

/// Returns true if a process exists and has not ended.
fn is_process_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(Some('Z' | 'X')))
}

/// Waits until none of these processes is alive.
#[track_caller]
fn assert_all_end(pids: &[u32]) {
    let deadline = Instant::now() + SOON;
    while let Some(pid) = pids.iter().find(|pid| is_process_alive(**pid)) {
        assert!(Instant::now() < deadline, "process {pid} of {pids:?} is still alive");
        std::thread::yield_now();
    }
}
