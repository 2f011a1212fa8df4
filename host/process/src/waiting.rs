//! Shared by guardian and keepers: waiting for descriptors and children, and rounds of killing.

use std::collections::HashSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::child::Exit;
use crate::platform::{self, ChildSignals};

/// Pause after the first round that found no further process. Each pause is twice the previous one.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Longest pause between rounds, so that a process that cannot be killed costs almost nothing.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Waits until a child changed its state, a descriptor is readable or hung up, or the time is over.
/// Returns which descriptors are ready. [`reap_children`] reports the children.
pub(crate) fn wait_for<const N: usize>(
    signals: &ChildSignals,
    descriptors: [Option<BorrowedFd<'_>>; N],
    timeout: Option<Duration>,
) -> io::Result<[bool; N]> {
    let places = std::iter::once(signals.descriptor()).chain(descriptors);
    let mut polled: Vec<_> =
        places.flatten().map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match poll(&mut polled, poll_timeout(timeout)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    signals.clear();
    let skip = usize::from(signals.descriptor().is_some());
    let mut ready = polled[skip..].iter().map(|fd| fd.any().unwrap_or(false));
    Ok(descriptors.map(|place| place.is_some() && ready.next().unwrap_or(false)))
}

/// Rounds up, so that a deadline has passed when the poll returns.
fn poll_timeout(timeout: Option<Duration>) -> PollTimeout {
    let timeout = timeout.map(|time| time.as_nanos().div_ceil(1_000_000));
    let whole = timeout.map(|ms| PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX));
    platform::limit_poll_timeout(whole.unwrap_or(PollTimeout::NONE))
}

/// The result of reaping this process's children.
pub(crate) struct ReapedChildren {
    /// Children that ended since the last call.
    pub ended: Vec<(Pid, Exit)>,
    /// Whether other children exist.
    pub more: bool,
}

/// Reaps all children that have ended.
pub(crate) fn reap_children() -> ReapedChildren {
    let mut ended = Vec::new();
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => ended.push((pid, Exit::Code(code))),
            Ok(WaitStatus::Signaled(pid, signal, _)) => {
                ended.push((pid, Exit::Signal(signal as i32)));
            }
            Ok(WaitStatus::StillAlive) => return ReapedChildren { ended, more: true },
            // Stopped or continued children are not requested.
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return ReapedChildren { ended, more: false },
        }
    }
}

/// When to send the next round of signals: at once while a process has not received one, then at
/// growing intervals.
pub(crate) struct SignalRounds {
    due: Instant,
    pause: Duration,
    known: HashSet<i32>,
}

impl SignalRounds {
    /// Creates rounds whose first is due.
    pub(crate) fn begin() -> Self {
        Self { due: Instant::now(), pause: PAUSE_MIN, known: HashSet::new() }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.due_in().is_zero()
    }

    pub(crate) fn due_in(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// Records a round that reached these processes.
    pub(crate) fn record_round(&mut self, reached: Vec<i32>) {
        let reached = HashSet::from_iter(reached);
        if reached.is_subset(&self.known) {
            self.due = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        } else {
            self.pause = PAUSE_MIN;
        }
        self.known = reached;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_round_that_found_new_processes_is_repeated_at_once() {
        let mut rounds = SignalRounds::begin();
        assert!(rounds.is_due());
        rounds.record_round(vec![1, 2]);
        assert!(rounds.is_due());
        rounds.record_round(vec![2, 3]);
        assert!(rounds.is_due());
    }

    #[test]
    fn signal_rounds_without_new_processes_slow_down_but_never_stop() {
        let mut rounds = SignalRounds::begin();
        (0..100).for_each(|_| rounds.record_round(vec![]));
        assert_eq!(rounds.pause, PAUSE_MAX);
        assert!(!rounds.is_due() && rounds.due_in() <= PAUSE_MAX);
    }

    #[test]
    fn a_timeout_is_rounded_up_to_a_whole_millisecond() {
        let of = |micros| poll_timeout(Some(Duration::from_micros(micros))).as_millis();
        assert_eq!((of(0), of(1), of(1_000), of(1_001)), (Some(0), Some(1), Some(1), Some(2)));
        assert_eq!(poll_timeout(Some(Duration::from_secs(u64::MAX))), PollTimeout::MAX);
    }
}
