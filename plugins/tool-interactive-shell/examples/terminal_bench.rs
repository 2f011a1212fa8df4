//! Prints how long a file's text takes through the emulator's crate alone, and from a terminal on
//! which `cat` prints it to a reader that does nothing with it: one line of JSON with the best of
//! its rounds.
//!
//! `terminal_bench FILE`; `cargo xtask bench terminals` runs it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod yardstick;

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// As much as a reader takes from a terminal at once.
const READ_BYTES: usize = 64 * 1024;

/// Rounds of each; the fastest counts.
const ROUNDS: usize = 2;

fn main() {
    let file = std::env::args().nth(1).expect("usage: terminal_bench FILE");
    // As a terminal shows it.
    let text = fs::read_to_string(&file).unwrap().replace('\n', "\r\n").into_bytes();
    let (mut emulator, mut reader) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        emulator = emulator.min(ms(|| yardstick::emulate(text.chunks(READ_BYTES))));
        reader = reader.min(ms(|| assert_eq!(drain(&file), text.len())));
    }
    println!("{{\"emulator_ms\":{emulator},\"reader_ms\":{reader}}}");
}

fn ms(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

/// Runs `cat` on a terminal and counts what it shows.
fn drain(file: &str) -> usize {
    let own = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&own).unwrap();
    unlockpt(&own).unwrap();
    let path = ptsname(&own, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = File::from(open(path.as_c_str(), flags, Mode::empty()).unwrap());
    let mut cat = Command::new("cat");
    cat.arg(file).stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null());
    let mut child = cat.spawn().unwrap();
    // The command holds their side until then.
    drop(cat);
    let (mut buffer, mut bytes) = (vec![0; READ_BYTES], 0);
    loop {
        match rustix::io::read(&own, &mut buffer[..]) {
            Ok(0) | Err(Errno::IO) => break,
            Ok(more) => bytes += more,
            Err(Errno::INTR) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(child.wait().unwrap().success());
    bytes
}
