//! Trust commands detect in the real process tree that a session started them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::process::Command;

use jaato_config::EnvironmentVariables;
use jaato_config::trust::is_inside_session;

/// Tells a copy of this test program which part it has.
const PART: &str = "SESSION_TREE_TEST_PART";
/// The program that the parent starts.
const CHILD: &str = "SESSION_TREE_TEST_CHILD";

/// Starts this very test in another process, in the given part, without the session's variable.
fn start_part(program: &Path, part: &str) -> bool {
    Command::new(program)
        .args(["--exact", "session_tree::a_jaato_among_the_real_parents_is_found"])
        .env(PART, part)
        .env(CHILD, std::env::current_exe().unwrap())
        .env_remove("JAATO_SESSION_ID")
        .status()
        .unwrap()
        .success()
}

#[test]
fn a_jaato_among_the_real_parents_is_found() {
    match std::env::var(PART).as_deref() {
        Ok("parent") => {
            let child = std::env::var_os(CHILD).unwrap();
            assert!(
                start_part(Path::new(&child), "child"),
                "the child says that it is in no session"
            );
        }
        Ok("child") => assert!(is_inside_session(&EnvironmentVariables::default())),
        _ => {
            let folder = tempfile::tempdir().unwrap();
            let jaato = folder.path().join("jaato");
            std::fs::copy(std::env::current_exe().unwrap(), &jaato).unwrap();
            assert!(start_part(&jaato, "parent"));
        }
    }
}
