//! The library prints nothing and ends no process.

use std::process::Command;

use crate::support::child_program;

#[test]
fn program_that_embeds_the_library_prints_nothing() {
    let home = tempfile::tempdir().unwrap();
    let ran = Command::new(child_program())
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .output()
        .unwrap();
    let printed = [&ran.stdout[..], &ran.stderr[..]].map(String::from_utf8_lossy);
    assert!(ran.status.success() && printed.iter().all(|text| text.is_empty()), "{printed:?}");
    // No configuration was chosen, so nothing of the user was touched.
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
}
