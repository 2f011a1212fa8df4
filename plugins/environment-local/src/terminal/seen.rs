//! Whether two looks at a terminal saw the same wait. Pure but for the clock.

use std::time::Instant;

use jaato_plugin_sdk::types::terminal::{TerminalState, TerminalWait};

use crate::waiting::{Waiter, Waiting};

/// The wait that was seen last.
#[derive(Default)]
pub(super) struct Seen(Option<Wait>);

struct Wait {
    waiter: Waiter,
    shown_bytes: Option<u64>,
    since: Instant,
    /// How often it began anew.
    again: u32,
}

impl Seen {
    /// Adds what a look has seen to the state of the terminal.
    pub(super) fn add(&mut self, looked: Waiting, state: &mut TerminalState) {
        let Waiting { waits, waiter, name } = looked;
        state.foreground_name = name;
        // What was typed and is not taken is what somebody is about to work on.
        state.waits = if state.has_input == Some(true) { Some(TerminalWait::Busy) } else { waits };
        let waiter = waiter.filter(|_| state.has_input != Some(true));
        let Some(waiter) = waiter else {
            self.0 = None;
            return;
        };
        state.waiter_pid = Some(waiter.pid);
        let is_timed = waits == Some(TerminalWait::ReadingForAWhile);
        let wait = self.follow(waiter, state.shown_bytes, is_timed);
        state.waited_us = u64::try_from(wait.since.elapsed().as_micros()).ok();
        state.waited_again = is_timed.then_some(wait.again);
    }

    /// Tells of a wait whether it goes on, or is another one.
    fn follow(&mut self, waiter: Waiter, shown_bytes: Option<u64>, is_timed: bool) -> &Wait {
        let goes_on = |wait: &Wait| {
            let is_same = (wait.waiter.pid, wait.waiter.thread) == (waiter.pid, waiter.thread);
            let has_not_run = wait.waiter.run == waiter.run;
            is_same && (has_not_run || is_timed) && wait.shown_bytes == shown_bytes
        };
        let wait = match self.0.take().filter(goes_on) {
            Some(wait) => {
                let again = wait.again + u32::from(wait.waiter.run != waiter.run);
                Wait { waiter, again, ..wait }
            }
            None => Wait { waiter, shown_bytes, since: Instant::now(), again: 0 },
        };
        self.0.insert(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(waits: TerminalWait, run: &str) -> Waiting {
        let waiter = Waiter { pid: 7, thread: 7, run: Some(run.to_owned()) };
        Waiting { waits: Some(waits), waiter: Some(waiter), name: None }
    }

    /// Looks, and tells whether the wait goes on since the mark, and how often it began anew.
    fn goes_on(seen: &mut Seen, looked: Waiting, shown_bytes: u64) -> (bool, Option<u32>) {
        let before = seen.0.as_ref().map(|wait| wait.since);
        let mut state =
            TerminalState { shown_bytes: Some(shown_bytes), ..TerminalState::default() };
        seen.add(looked, &mut state);
        (before.is_some() && before == seen.0.as_ref().map(|wait| wait.since), state.waited_again)
    }

    #[test]
    fn a_wait_goes_on_as_long_as_nobody_runs_and_nothing_is_shown() {
        let (mut seen, reads) = (Seen::default(), TerminalWait::Reading);
        assert_eq!(goes_on(&mut seen, look(reads, "1 0 1"), 5), (false, None));
        assert_eq!(goes_on(&mut seen, look(reads, "1 0 1"), 5), (true, None));
        assert_eq!(goes_on(&mut seen, look(reads, "2 0 2"), 5), (false, None));
        assert_eq!(goes_on(&mut seen, look(reads, "2 0 2"), 6), (false, None));
        let busy = Waiting { waits: Some(TerminalWait::Busy), ..Waiting::default() };
        goes_on(&mut seen, busy, 6);
        assert_eq!(goes_on(&mut seen, look(reads, "2 0 2"), 6), (false, None));
    }

    #[test]
    fn a_wait_that_ends_by_itself_may_begin_anew() {
        let (mut seen, reads) = (Seen::default(), TerminalWait::ReadingForAWhile);
        assert_eq!(goes_on(&mut seen, look(reads, "1 0 1"), 5), (false, Some(0)));
        assert_eq!(goes_on(&mut seen, look(reads, "2 0 2"), 5), (true, Some(1)));
        assert_eq!(goes_on(&mut seen, look(reads, "2 0 2"), 5), (true, Some(1)));
        assert_eq!(goes_on(&mut seen, look(reads, "3 0 3"), 6), (false, Some(0)));
    }

    #[test]
    fn what_is_typed_and_not_taken_is_work_to_do() {
        let mut state = TerminalState { has_input: Some(true), ..TerminalState::default() };
        Seen::default().add(look(TerminalWait::Reading, "1 0 1"), &mut state);
        assert_eq!((state.waits, state.waiter_pid), (Some(TerminalWait::Busy), None));
    }
}
