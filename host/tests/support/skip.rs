//! Says loudly that a test is left out: one line on the terminal, one in the log of `cargo xtask
//! test`.

use std::collections::BTreeSet;
use std::io::Write as _;

use parking_lot::Mutex;

static SKIPPED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Tells why the test that calls this is left out, once a test: the lines are counted.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    if !SKIPPED.lock().insert(test.to_owned()) {
        return;
    }
    let line = format!("SKIPPED: {test}: {reason}\n");
    if let Some(log) = std::env::var_os("JAATO_SKIP_LOG") {
        let opened = std::fs::OpenOptions::new().create(true).append(true).open(log);
        opened.and_then(|mut log| log.write_all(line.as_bytes())).expect("the log can be written");
    }
    // Not by a macro, whose lines the test program keeps to itself.
    std::io::stderr().write_all(line.as_bytes()).expect("standard error can be written");
}
