//! Says loudly that a test is left out: one line on the terminal, one in the log of `cargo xtask
//! test`.

use std::io::Write as _;

/// Tells why the test that calls this is left out.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED: {}: {reason}\n", thread.name().unwrap_or("a test"));
    if let Some(log) = std::env::var_os("JAATO_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log);
        log.unwrap().write_all(line.as_bytes()).unwrap();
    }
    // Not by a macro, whose lines the test program keeps to itself.
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}
