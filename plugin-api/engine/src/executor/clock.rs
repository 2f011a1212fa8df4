//! Measures how long a thread was *able to run*: the wall clock minus its wait in the run queue, if
//! the system reports it.
//!
//! On a busy machine, a thread may wait for a processor through no fault of the plugin. Linux
//! reports each thread's waits in `/proc/self/task/TID/schedstat`.

use std::fs;
use std::time::{Duration, Instant};

/// Returns the number of the calling thread for [`PollMeter`]. The thread reads it once. `None` if
/// the system has no such files.
pub(super) fn thread_number() -> Option<u64> {
    // `PID/task/TID`
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// The content of `schedstat`. Its third number counts the time slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ThreadSchedStats {
    ran_ns: u64,
    waited_ns: u64,
}

impl ThreadSchedStats {
    fn read(thread: u64) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_whitespace().map(str::parse);
        let (ran_ns, waited_ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let turns: u64 = numbers.next()?.ok()?;
        // A kernel without these statistics shows zeros.
        (turns > 0).then_some(Self { ran_ns, waited_ns })
    }
}

/// Measures one poll of one thread, starting when the watchdog first sees it.
#[derive(Debug)]
pub(super) struct PollMeter {
    thread: Option<u64>,
    looked: Instant,
    usage: Option<ThreadSchedStats>,
    able_to_run: Duration,
    wall_clock: Duration,
}

/// The result of a [`PollMeter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollDuration {
    /// The thread was able to run for this long.
    AbleToRun(Duration),
    /// The system does not report waits, so this is the wall clock time.
    WallClock(Duration),
}

impl PollMeter {
    pub(super) fn start(thread: Option<u64>) -> Self {
        // Read the statistics before the clock, so that the time between makes the poll look
        // shorter.
        let usage = thread.and_then(ThreadSchedStats::read);
        let zero = Duration::ZERO;
        Self { thread, looked: Instant::now(), usage, able_to_run: zero, wall_clock: zero }
    }

    /// Adds the time since the last check. The watchdog itself may have been delayed since then.
    pub(super) fn measure_poll(&mut self, in_host_code: bool) -> PollDuration {
        let now = Instant::now();
        let time = now - self.looked;
        self.looked = now;
        let before = self.usage;
        self.usage = self.thread.and_then(ThreadSchedStats::read);
        let counts = match (before, self.usage) {
            (Some(before), Some(usage)) => {
                Some(runnable_time(time, before, usage, || self.is_runnable()))
            }
            _ => None,
        };
        // The time in host code that the plugin called does not count.
        if !in_host_code {
            self.wall_clock += time;
            self.able_to_run += counts.unwrap_or_default();
        }
        match counts {
            Some(_) => PollDuration::AbleToRun(self.able_to_run),
            None => PollDuration::WallClock(self.wall_clock),
        }
    }

    /// Returns true if the thread runs or waits for a processor, and false if it blocks.
    fn is_runnable(&self) -> bool {
        let state = self.thread.and_then(|thread| {
            let text = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
            // `TID (name) STATE …`, where the name may contain any character.
            text.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with('R'))
        });
        state.unwrap_or(false)
    }
}

/// Returns for how much of `time` a thread was able to run.
///
/// The system counts a wait only when it ends. If the thread runs or waits for a processor, only
/// its time on a processor is certain. If it blocks, all its waits have ended.
fn runnable_time(
    time: Duration,
    before: ThreadSchedStats,
    after: ThreadSchedStats,
    runs: impl FnOnce() -> bool,
) -> Duration {
    let since = |before: u64, after: u64| Duration::from_nanos(after.saturating_sub(before));
    if runs() {
        since(before.ran_ns, after.ran_ns).min(time)
    } else {
        time.saturating_sub(since(before.waited_ns, after.waited_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sched_statistics_need_three_numbers_that_are_not_all_zero() {
        let usage = ThreadSchedStats { ran_ns: 5, waited_ns: 6 };
        assert_eq!(ThreadSchedStats::parse("5 6 7\n"), Some(usage));
        assert_eq!(ThreadSchedStats::parse("0 0 0\n"), None);
        assert_eq!(ThreadSchedStats::parse("5 6"), None);
        assert_eq!(ThreadSchedStats::parse("a b c"), None);
    }

    #[test]
    fn without_a_thread_number_the_wall_clock_counts() {
        assert!(matches!(PollMeter::start(None).measure_poll(false), PollDuration::WallClock(_)));
    }

    #[test]
    fn time_in_host_code_is_not_the_plugins() {
        let mut meter = PollMeter::start(None);
        meter.looked -= Duration::from_secs(8);
        let PollDuration::WallClock(time) = meter.measure_poll(true) else {
            panic!("no thread, no statistics")
        };
        assert_eq!(time, Duration::ZERO);
    }

    #[track_caller]
    fn check_runnable_time(runs: bool, ran_ms: u64, waited_ms: u64, able_ms: u64) {
        let usage = |ran_ms: u64, waited_ms: u64| ThreadSchedStats {
            ran_ns: ran_ms * 1_000_000,
            waited_ns: waited_ms * 1_000_000,
        };
        let (before, after) = (usage(7, 9), usage(7 + ran_ms, 9 + waited_ms));
        let able = runnable_time(Duration::from_millis(200), before, after, || runs);
        assert_eq!(able, Duration::from_millis(able_ms));
    }

    #[test]
    fn running_thread_is_charged_its_processor_time() {
        check_runnable_time(true, 200, 0, 200);
        check_runnable_time(true, 3, 0, 3);
        check_runnable_time(true, 3, 150, 3);
        check_runnable_time(true, 300, 0, 200);
    }

    #[test]
    fn blocked_thread_is_charged_all_time_except_run_queue_waits() {
        check_runnable_time(false, 0, 0, 200);
        check_runnable_time(false, 3, 150, 50);
        check_runnable_time(false, 3, 300, 0);
    }
}
