//! How long a thread was *able to run*: wall clock minus its wait in the run queue, where the system tells.
//!
//! On a busy machine a thread that does nothing wrong waits for a processor; that is not the plugin's
//! doing. Linux tells each thread's waits in `/proc/self/task/TID/schedstat`.

use std::fs;
use std::time::{Duration, Instant};

/// The thread's number for [`Meter`]: read once, by the thread itself. None where the system has no such files.
pub(super) fn thread_number() -> Option<u64> {
    // `PID/task/TID`
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// What `schedstat` says: nanoseconds on a processor, nanoseconds in the run queue, turns on a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    ran_ns: u64,
    waited_ns: u64,
    turns: u64,
}

impl Usage {
    fn read(thread: u64) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (ran_ns, waited_ns, turns) =
            (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
        // A kernel without the statistics shows zeros.
        (turns > 0).then_some(Self { ran_ns, waited_ns, turns })
    }
}

/// Measures one poll of one thread, from the watchdog's first look at it on.
#[derive(Debug)]
pub(super) struct Meter {
    thread: Option<u64>,
    since: Instant,
    first: Option<Usage>,
    last: Option<Usage>,
    /// When `last` was seen to move: then what it says of waiting was complete.
    moved: Instant,
    looked: Instant,
    /// Time in host code that the plugin called: not the plugin's.
    host_time: Duration,
}

/// What a [`Meter`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// The thread was able to run for this long.
    AbleToRun(Duration),
    /// The system does not tell; this is what the wall clock says.
    WallClock(Duration),
}

impl Meter {
    pub(super) fn start(thread: Option<u64>) -> Self {
        // The statistics first, the clock after: what lies between makes the poll look shorter.
        let first = thread.and_then(Usage::read);
        let now = Instant::now();
        let host_time = Duration::ZERO;
        Self { thread, since: now, first, last: first, moved: now, looked: now, host_time }
    }

    pub(super) fn look(&mut self, in_host_code: bool) -> Measure {
        let now = Instant::now();
        if in_host_code {
            self.host_time += now - self.looked;
        }
        self.looked = now;
        let wall = (now - self.since).saturating_sub(self.host_time);
        let usage = self.thread.and_then(Usage::read);
        let (Some(first), Some(usage)) = (self.first, usage) else {
            return Measure::WallClock(wall);
        };
        if self.last != Some(usage) {
            self.last = Some(usage);
            self.moved = now;
        }
        let waited = Duration::from_nanos(usage.waited_ns.saturating_sub(first.waited_ns));
        // A wait is counted when it ends. One that goes on shows as a thread that wants to run and
        // whose numbers stand still.
        let waiting = if self.wants_to_run() { now - self.moved } else { Duration::ZERO };
        Measure::AbleToRun(wall.saturating_sub(waited).saturating_sub(waiting))
    }

    /// Tells whether the thread runs or waits for a processor, rather than blocks.
    fn wants_to_run(&self) -> bool {
        let state = self.thread.and_then(|thread| {
            let text = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
            // `TID (name) STATE …`; the name may hold anything.
            text.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with('R'))
        });
        state.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_three_numbers_and_zeros_are_none() {
        let usage = Usage { ran_ns: 5, waited_ns: 6, turns: 7 };
        assert_eq!(Usage::parse("5 6 7\n"), Some(usage));
        assert_eq!(Usage::parse("0 0 0\n"), None);
        assert_eq!(Usage::parse("5 6"), None);
        assert_eq!(Usage::parse("a b c"), None);
    }

    #[test]
    fn without_a_thread_number_the_wall_clock_counts() {
        assert!(matches!(Meter::start(None).look(false), Measure::WallClock(_)));
    }

    #[test]
    fn time_in_host_code_is_not_the_plugins() {
        let mut meter = Meter::start(None);
        meter.since -= Duration::from_secs(9);
        meter.looked -= Duration::from_secs(8);
        let Measure::WallClock(time) = meter.look(true) else { panic!("no thread, no statistics") };
        assert!(time < Duration::from_secs(2), "{time:?}");
    }
}
