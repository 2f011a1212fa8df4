//! Records when programs write to their terminals, as the system reports it. This observer does not
//! depend on `jaato` and does not affect it.
//!
//! A watch on each terminal, set at its creation, reports every write of a program. It does not
//! report echoes, which come from the kernel.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use parking_lot::Mutex;

/// The folder of the terminals.
const TERMINALS: &str = "/dev/pts";

/// The device of programs that do not know their terminal. Its writes cannot be attributed.
const OWN_TERMINAL: &str = "/dev/tty";

/// The terminal number for writes to that device.
const ANY: u32 = u32::MAX;

/// The times of writes to terminals.
#[derive(Default)]
pub struct TerminalWriteRecorder {
    writes: Arc<Mutex<Vec<(Instant, u32)>>>,
}

impl TerminalWriteRecorder {
    /// Starts the recorder. Its thread ends with the process.
    pub fn start_recording() -> Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC).context("watching terminals")?;
        let watch = inotify.add_watch(TERMINALS, AddWatchFlags::IN_CREATE);
        watch.with_context(|| format!("watching `{TERMINALS}`"))?;
        let own = inotify.add_watch(OWN_TERMINAL, AddWatchFlags::IN_MODIFY);
        let own = own.with_context(|| format!("watching `{OWN_TERMINAL}`"))?;
        let recorder = Self::default();
        let writes = Arc::clone(&recorder.writes);
        std::thread::spawn(move || {
            let mut watched = HashMap::from([(own, ANY)]);
            while let Ok(events) = inotify.read_events() {
                let now = Instant::now();
                for event in events {
                    if let Some(terminal) = watched.get(&event.wd) {
                        writes.lock().push((now, *terminal));
                    }
                    // A watch on the folder does not report writes to devices in it.
                    let made = event.name.and_then(|name| name.to_str()?.parse::<u32>().ok());
                    let Some(terminal) = made else { continue };
                    let path = format!("{TERMINALS}/{terminal}");
                    if let Ok(watch) = inotify.add_watch(&*path, AddWatchFlags::IN_MODIFY) {
                        watched.insert(watch, terminal);
                    }
                }
            }
        });
        Ok(recorder)
    }

    /// Lists the writes to a terminal since a time.
    pub fn writes_since(&self, from: Instant, terminal: Option<u32>) -> Vec<Instant> {
        let Some(terminal) = terminal else { return Vec::new() };
        let writes = self.writes.lock();
        let own = writes.iter().filter(|(at, own)| *at >= from && [terminal, ANY].contains(own));
        own.map(|(at, _)| *at).collect()
    }
}

/// Finds the terminal of the first program that descends from a process: its number below
/// [`TERMINALS`].
pub fn find_terminal(ancestor: u32) -> Option<u32> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let processes: Vec<(u32, u32, u32)> = pids.filter_map(|pid| parse_stat(&read(pid)?)).collect();
    let parent = |pid: u32| processes.iter().find(|process| process.0 == pid).map(|it| it.1);
    let descends = |pid: u32| {
        std::iter::successors(Some(pid), |pid| parent(*pid)).take(64).any(|pid| pid == ancestor)
    };
    // The lowest number is the oldest, because later processes in the terminal have higher ones.
    let on_terminals = processes.iter().filter(|process| process.2 != 0 && descends(process.0));
    on_terminals
        .min_by_key(|process| process.0)
        .map(|process| process.2 & 0xff | process.2 >> 12 & !0xff)
}

/// Parses process, parent and terminal.
fn parse_stat(text: &str) -> Option<(u32, u32, u32)> {
    let (pid, rest) = text.split_once(' ')?;
    let mut words = rest.rsplit_once(')')?.1.split_whitespace().skip(1);
    let parent = words.next()?.parse().ok()?;
    let terminal = words.nth(2)?.parse::<i32>().ok()?;
    Some((pid.parse().ok()?, parent, terminal.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_stat_is_parsed_with_any_process_name() {
        let text = "4711 (a) b (c)) S 4700 4711 4700 34830 4711 4194304 1 0";
        assert_eq!(parse_stat(text), Some((4711, 4700, 34830)));
        assert_eq!(parse_stat("7 (d) S 1 7 7 0 -1 0"), Some((7, 1, 0)));
        assert_eq!(parse_stat("7 (d"), None);
    }
}
