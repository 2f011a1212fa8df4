//! Reports a skipped test loudly: one line on the terminal, and one in the file that
//! `JAATO_SKIP_LOG` names.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Mutex;

static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reports why the calling test is skipped. Reports each test once, because the lines are counted.
///
/// # Panics
/// If the line cannot be written.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let mut skipped = SKIPPED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !skipped.insert(test.to_owned()) {
        return;
    }
    let line = format!("SKIPPED: {test}: {reason}\n");
    // Not with a macro, whose output the test program captures.
    let told = std::io::stderr().write_all(line.as_bytes());
    let logged = std::env::var_os("JAATO_SKIP_LOG").map_or(Ok(()), |log| {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(log);
        opened.and_then(|mut log| log.write_all(line.as_bytes()))
    });
    if let Err(error) = told.and(logged) {
        panic!("cannot say that a test is left out: {error}");
    }
}
