//! Tests programs that embed the runtime without meeting its requirements: they get one clear
//! error, and start no endless chain of processes.
#![allow(clippy::unwrap_used)]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Returns a copy of the careless embedder, in a folder that it may write to.
fn copy_careless_program(folder: &TempDir) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let example = tests.parent().unwrap().parent().unwrap().join("examples/careless");
    let copy = folder.path().join("careless");
    // Copied by a program. If this process wrote the copy, children of other tests could inherit
    // the open file, and it would be busy.
    let copied = Command::new("cp").arg(example).arg(&copy).status();
    assert!(copied.unwrap().success());
    copy
}

#[test]
fn program_that_ignores_the_guardian_argument_is_started_only_once_more() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_careless_program(&folder);
    let output = Command::new(&program)
        .env_clear()
        .env("HOME", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let expected = format!(
        "`{} guardian` exited immediately instead of becoming the guardian\n",
        program.display()
    );
    assert!(told.starts_with(&expected), "{told}");
    assert!(told.contains("`Setup::executable`"), "{told}");
    let started = std::fs::read_to_string(program.with_extension("started")).unwrap();
    assert_eq!(started.lines().count(), 2, "{started}");
}

#[test]
fn runtime_setup_inside_a_guardian_or_worker_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let program = copy_careless_program(&folder);
    let (_near, far) = UnixStream::pair().unwrap();
    let guardian = Command::new(&program)
        .arg("guardian")
        .stdin(Stdio::from(OwnedFd::from(far)))
        .output()
        .unwrap();
    let script = format!("exec {} plugin-worker file.so 3<&0", program.display());
    let worker =
        Command::new("/bin/sh").args(["-c", &script]).stdin(Stdio::piped()).output().unwrap();
    for (output, argument) in [(guardian, "guardian"), (worker, "plugin-worker")] {
        let told = String::from_utf8(output.stderr).unwrap();
        let expected = format!(
            "jaato started this process as `{argument}`, but it tries to start another host"
        );
        assert!(told.starts_with(&expected) && told.contains("`Setup::executable`"), "{told}");
        assert!(!output.status.success());
    }
    // Users may have a program of their own with this name.
    let plain = Command::new(&program)
        .arg("guardian")
        .env_clear()
        .env("HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(plain.stderr).unwrap();
    assert!(!told.contains("tries to start another host"), "{told}");
}
