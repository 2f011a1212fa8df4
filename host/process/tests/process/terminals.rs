//! Tests commands on a terminal: it controls their session, and they end like any other.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use jaato_process::{ChildCommand, Exit, ProcessError, StandardOutput, open_terminal};
use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};

use crate::{SOON, assert_all_end, new_supervisor, script_command};

fn open_pty() -> (PtyMaster, PathBuf) {
    let own = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&own).unwrap();
    unlockpt(&own).unwrap();
    let path = ptsname_r(&own).unwrap().into();
    (own, path)
}

fn terminal_command(text: &str, path: &Path) -> ChildCommand {
    let terminal = Some(open_terminal(path).unwrap());
    ChildCommand {
        stdout: StandardOutput::Null,
        stderr: Default::default(),
        terminal,
        ..script_command(text)
    }
}

#[tokio::test]
async fn command_gets_its_terminal_for_all_three_streams_as_session_leader() {
    let (mut own, path) = open_pty();
    let supervisor = new_supervisor();
    let text = "tty; echo to it > /dev/tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && exit 3";
    let child = supervisor.spawn(terminal_command(text, &path)).await.unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Code(3));
    let read = tokio::task::spawn_blocking(move || {
        let mut shown = String::new();
        // The end of a terminal is an error on Linux.
        let _ = own.read_to_string(&mut shown);
        shown
    });
    let shown = tokio::time::timeout(SOON, read).await.unwrap().unwrap();
    assert_eq!(shown, format!("{}\r\nto it\r\n", path.display()));
}

#[tokio::test]
async fn a_terminal_that_controls_a_session_is_not_taken_away() {
    let (_own, path) = open_pty();
    let supervisor = new_supervisor();
    let first = supervisor.spawn(terminal_command("sleep 300", &path)).await.unwrap();
    let error = supervisor.spawn(terminal_command("exit 0", &path)).await.unwrap_err();
    assert!(matches!(error, ProcessError::CannotStart { .. }), "{error}");
    let pid = first.pid();
    drop(first);
    assert_all_end(&[pid]);
}

#[tokio::test]
async fn file_that_is_not_a_terminal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(open_terminal(&file).is_err());
    assert!(open_terminal(Path::new("/dev/null")).is_err());
    let missing = open_terminal(&folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
    let (_own, path) = open_pty();
    let both = ChildCommand { stdout: StandardOutput::Piped, ..terminal_command("exit 0", &path) };
    let error = new_supervisor().spawn(both).await.unwrap_err();
    assert!(matches!(error, ProcessError::InvalidCommand { .. }), "{error}");
}
