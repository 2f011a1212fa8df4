//! Prints how fast a screen takes a stream, beside the emulator's crate alone, and what it holds.
//!
//! `cargo run --release -p tool-interactive-shell --example screen_bench [MEGABYTES]`
#![allow(clippy::unwrap_used)]

mod yardstick;

use std::time::Instant;

use tool_interactive_shell::marks::{MarkScanner, Nonce};
use tool_interactive_shell::screen::Screen;

/// As much as a reader takes from a terminal at once.
const READ_BYTES: usize = 64 * 1024;

/// Rounds of each; the fastest counts, as noise only slows down.
const ROUNDS: usize = 5;

fn main() {
    let megabytes = std::env::args().nth(1).map_or(100, |text| text.parse().unwrap());
    let colours = "\x1b[1;32muser@host\x1b[0m:\x1b[38;5;33m~/src\x1b[0m \x1b[7mmake\x1b[27m \x1b[31merror\x1b[m: no\r\n";
    let kinds: [(&str, &[u8]); 6] = [
        ("yes", b"y\r\n"),
        ("lines", b"2026-01-01T00:00:00Z info worker 17 has taken job 4711 and ended it well\r\n"),
        ("colours", colours.as_bytes()),
        ("progress", b"\r 42% [##########                    ] 12.3 MB/s"),
        ("wide", "漢字かな交じり文の長い行です。\r\n".as_bytes()),
        ("invalid", b"\xff\xfe\xfd\xfc"),
    ];
    println!("MB/s, 24 x 80, {megabytes} MB each");
    println!("{:10} {:>10} {:>10} {:>7} {:>10}", "stream", "emulator", "Screen", "ratio", "marks");
    for (name, piece) in kinds {
        let chunk = piece.repeat(READ_BYTES / piece.len() + 1);
        // The emulator alone takes a quarter of an hour for as much of this as of the others.
        let share = if name == "invalid" { 100 } else { 1 };
        let count = megabytes * 1_000_000 / share / chunk.len() + 1;
        let megabytes = (chunk.len() * count) as f64 / 1e6;
        let speed = |run: &dyn Fn()| {
            let begin = Instant::now();
            run();
            megabytes / begin.elapsed().as_secs_f64()
        };
        let (mut alone, mut ours, mut marks) = (0.0f64, 0.0f64, 0.0f64);
        // In turns, so that what else the machine does slows all of them down.
        for _ in 0..ROUNDS {
            alone = alone.max(speed(&|| {
                yardstick::emulate(std::iter::repeat_n(&chunk[..], count));
            }));
            ours = ours.max(speed(&|| {
                let mut screen = Screen::new(24, 80);
                (0..count).for_each(|_| screen.feed(&chunk));
                assert_eq!(screen.bytes(), (chunk.len() * count) as u64);
            }));
            marks = marks.max(speed(&|| {
                let mut scanner = MarkScanner::new(&Nonce::new("0123456789abcdef").unwrap());
                (0..count).for_each(|_| assert!(scanner.scan(&chunk).is_empty()));
            }));
        }
        println!("{name:10} {alone:10.0} {ours:10.0} {:7.2} {marks:10.0}", ours / alone);
    }
    memory();
}

/// What screens hold, where the system tells.
fn memory() {
    let resident = || -> Option<f64> {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        Some(text.split(' ').nth(1)?.parse::<f64>().ok()? * 4.096)
    };
    let Some(begin) = resident() else { return };
    let mut screens: Vec<Screen> = (0..64).map(|_| Screen::new(24, 80)).collect();
    screens.iter_mut().for_each(|screen| screen.feed(b"$ "));
    println!("64 idle: {:.0} kB each", (resident().unwrap() - begin) / 64.0);
    screens[..8].iter_mut().for_each(|screen| screen.feed(&b"y\r\n".repeat(100_000)));
    println!("8 flooded and untold: {:.0} kB each", (resident().unwrap() - begin) / 8.0);
    let begin_reading = Instant::now();
    let unseen = screens[0].unseen();
    println!("unseen of {} lines: {:?}", unseen.text.lines().count(), begin_reading.elapsed());
    screens.iter_mut().for_each(Screen::mark_seen);
    screens.iter_mut().for_each(Screen::release_memory);
    println!("told and released: {:.0} kB each", (resident().unwrap() - begin) / 64.0);
    let mut one = Screen::new(24, 80);
    let begin_lines = Instant::now();
    for _ in 0..1000 {
        one.feed(b"$ x\r\n");
        assert!(!one.unseen().text.is_empty());
        one.mark_seen();
    }
    println!("a line fed, told and marked: {:?}", begin_lines.elapsed() / 1000);
}
