//! Detects whether two looks at a terminal saw the same wait. Pure except for the clock.

use std::collections::HashMap;
use std::time::Instant;

use jaato_types::terminal::{TerminalState, TerminalWait};

use super::{InputWaitState, WaitingProcess};

/// The number of programs per terminal whose waits are remembered: a shell, and the programs it
/// runs.
const PROGRAMS_MAX: usize = 32;

/// The longest pause: a wait that is shorter than earlier ones. A program that is about to exit
/// waits this long for a last answer of its terminal.
const PAUSE_MS_MAX: u64 = 100;

/// The longest pause after an escape character, with which many keys start. Programs wait this long
/// for the rest of the key: the default of `ESCDELAY` in curses is a second.
const PAUSE_AFTER_ESCAPE_MS_MAX: u64 = 1_100;

/// The first byte of many keys.
const ESCAPE: u8 = 0x1b;

/// The history of looks at a terminal.
#[derive(Default)]
pub struct TerminalWaitHistory {
    /// The last wait.
    last: Option<ObservedWait>,
    /// The longest wait of each program in milliseconds, or [`u64::MAX`] for one without a timeout.
    longest: HashMap<u32, u64>,
    /// Whether the last input ended with an escape character.
    after_escape: bool,
}

struct ObservedWait {
    waiter: WaitingProcess,
    /// Whether the wait has a timeout.
    is_timed: bool,
    shown_bytes: Option<u64>,
    since: Instant,
    /// The number of times that the wait started again.
    again: u32,
    /// The longest duration of these waits.
    takes_ms: Option<u64>,
}

impl TerminalWaitHistory {
    /// Forgets the wait because input was typed, so that the next wait is a different one.
    pub fn record_input(&mut self, bytes: &[u8]) {
        self.last = None;
        // After a complete sequence, such as an arrow key, programs do not wait for more.
        self.after_escape = bytes.ends_with(&[ESCAPE]);
    }

    /// Adds the result of a look to the state of the terminal.
    pub fn add_observation(&mut self, looked: InputWaitState, state: &mut TerminalState) {
        let InputWaitState { waits, waiter, name } = looked;
        state.foreground_name = name;
        // Input that no program has read yet is work that a program is about to do.
        state.waits = if state.has_input == Some(true) { Some(TerminalWait::Busy) } else { waits };
        let waiter = waiter.filter(|_| state.has_input != Some(true));
        let Some(waiter) = waiter else {
            self.last = None;
            return;
        };
        state.waiter_pid = Some(waiter.pid);
        let is_timed = waits == Some(TerminalWait::ReadingForAWhile);
        let takes_ms = waiter.takes_ms;
        let longest = match waits {
            Some(TerminalWait::Reading) => self.record_program_wait(waiter.pid, u64::MAX),
            _ => self.record_program_wait(waiter.pid, takes_ms.unwrap_or(0)),
        };
        let wait = self.record_wait(waiter, state.shown_bytes, is_timed);
        state.waited_us = u64::try_from(wait.since.elapsed().as_micros()).ok();
        if is_timed {
            (state.waited_again, state.wait_ms) = (Some(wait.again), wait.takes_ms);
            let pause = if self.after_escape { PAUSE_AFTER_ESCAPE_MS_MAX } else { PAUSE_MS_MAX };
            state.is_pause = takes_ms.map(|takes| takes < longest && takes <= pause);
        }
    }

    /// Remembers how long a program waits. Returns its longest wait.
    fn record_program_wait(&mut self, program: u32, takes_ms: u64) -> u64 {
        if self.longest.len() >= PROGRAMS_MAX && !self.longest.contains_key(&program) {
            self.longest.clear();
        }
        let longest = self.longest.entry(program).or_default();
        *longest = takes_ms.max(*longest);
        *longest
    }

    /// Records a wait, which either continues the last one or is another one.
    fn record_wait(
        &mut self,
        waiter: WaitingProcess,
        shown_bytes: Option<u64>,
        is_timed: bool,
    ) -> &ObservedWait {
        let goes_on = |wait: &ObservedWait| {
            let is_same = (wait.waiter.pid, wait.waiter.thread) == (waiter.pid, waiter.thread);
            let has_not_run = wait.waiter.run == waiter.run;
            // A wait of another kind is a different wait.
            let is_same = is_same && wait.is_timed == is_timed;
            is_same && (has_not_run || is_timed) && wait.shown_bytes == shown_bytes
        };
        let takes_ms = waiter.takes_ms;
        let wait = match self.last.take().filter(goes_on) {
            Some(wait) => {
                let again = wait.again + u32::from(wait.waiter.run != waiter.run);
                ObservedWait { waiter, again, takes_ms: wait.takes_ms.max(takes_ms), ..wait }
            }
            None => {
                let since = Instant::now();
                ObservedWait { waiter, is_timed, shown_bytes, since, again: 0, takes_ms }
            }
        };
        self.last.insert(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input_wait(waits: TerminalWait, run: &str) -> InputWaitState {
        let takes_ms = (waits == TerminalWait::ReadingForAWhile).then_some(100);
        let waiter = WaitingProcess { pid: 7, thread: 7, run: Some(run.to_owned()), takes_ms };
        InputWaitState { waits: Some(waits), waiter: Some(waiter), name: None }
    }

    /// Looks, and returns whether the wait continued and how often it started again.
    fn observe_wait(
        seen: &mut TerminalWaitHistory,
        looked: InputWaitState,
        shown_bytes: u64,
    ) -> (bool, Option<u32>) {
        let before = seen.last.as_ref().map(|wait| wait.since);
        let mut state =
            TerminalState { shown_bytes: Some(shown_bytes), ..TerminalState::default() };
        seen.add_observation(looked, &mut state);
        (
            before.is_some() && before == seen.last.as_ref().map(|wait| wait.since),
            state.waited_again,
        )
    }

    #[test]
    fn change_from_a_timed_wait_to_reading_starts_a_new_wait() {
        let (mut seen, timed) = (TerminalWaitHistory::default(), TerminalWait::ReadingForAWhile);
        observe_wait(&mut seen, input_wait(timed, "1 0 1"), 5);
        assert_eq!(observe_wait(&mut seen, input_wait(timed, "1 0 1"), 5), (true, Some(0)));
        assert_eq!(
            observe_wait(&mut seen, input_wait(TerminalWait::Reading, "1 0 1"), 5),
            (false, None)
        );
        assert_eq!(
            observe_wait(&mut seen, input_wait(TerminalWait::Reading, "1 0 1"), 5),
            (true, None)
        );
    }

    #[test]
    fn wait_continues_while_nothing_runs_and_nothing_is_shown() {
        let (mut seen, reads) = (TerminalWaitHistory::default(), TerminalWait::Reading);
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "1 0 1"), 5), (false, None));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "1 0 1"), 5), (true, None));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "2 0 2"), 5), (false, None));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "2 0 2"), 6), (false, None));
        let busy = InputWaitState { waits: Some(TerminalWait::Busy), ..InputWaitState::default() };
        observe_wait(&mut seen, busy, 6);
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "2 0 2"), 6), (false, None));
    }

    #[test]
    fn timed_wait_that_restarts_without_output_is_the_same_wait() {
        let (mut seen, reads) = (TerminalWaitHistory::default(), TerminalWait::ReadingForAWhile);
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "1 0 1"), 5), (false, Some(0)));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "2 0 2"), 5), (true, Some(1)));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "2 0 2"), 5), (true, Some(1)));
        assert_eq!(observe_wait(&mut seen, input_wait(reads, "3 0 3"), 6), (false, Some(0)));
    }

    /// Types and then looks at waits of the given milliseconds, where `None` is a wait without a
    /// timeout. Returns the longest duration of the last wait, and whether it is a pause.
    fn waits_after_typing(typed: &[u8], waits: &[Option<u64>]) -> (Option<u64>, Option<bool>) {
        let (mut seen, mut state) = (TerminalWaitHistory::default(), TerminalState::default());
        seen.record_input(typed);
        for (number, takes_ms) in waits.iter().enumerate() {
            let waits = match takes_ms {
                Some(_) => TerminalWait::ReadingForAWhile,
                None => TerminalWait::Reading,
            };
            let mut looked = input_wait(waits, &number.to_string());
            looked.waiter.as_mut().unwrap().takes_ms = *takes_ms;
            seen.add_observation(looked, &mut state);
        }
        (state.wait_ms, state.is_pause)
    }

    #[test]
    fn timed_wait_is_a_pause_if_short_and_below_the_programs_longest_wait() {
        assert_eq!(waits_after_typing(b"x", &[Some(100), Some(100)]), (Some(100), Some(false)));
        assert_eq!(
            waits_after_typing(b"x", &[Some(14), Some(1483), Some(100)]),
            (Some(1483), Some(true))
        );
        assert_eq!(waits_after_typing(b"x", &[None, Some(101)]), (Some(101), Some(false)));
        assert_eq!(waits_after_typing(b"\x1b", &[None, Some(1100)]), (Some(1100), Some(true)));
        assert_eq!(waits_after_typing(b"\x1b", &[None, Some(1101)]), (Some(1101), Some(false)));
        assert_eq!(waits_after_typing(b"\x1b[A", &[None, Some(500)]), (Some(500), Some(false)));
    }

    #[test]
    fn number_of_remembered_programs_is_bounded() {
        let mut seen = TerminalWaitHistory::default();
        for program in 0..1000 {
            seen.record_program_wait(program, 1);
            assert!(seen.longest.len() <= PROGRAMS_MAX);
        }
        assert_eq!((seen.record_program_wait(7, 5), seen.record_program_wait(7, 3)), (5, 5));
    }

    #[test]
    fn unread_terminal_input_means_the_program_is_busy() {
        let mut state = TerminalState { has_input: Some(true), ..TerminalState::default() };
        TerminalWaitHistory::default()
            .add_observation(input_wait(TerminalWait::Reading, "1 0 1"), &mut state);
        assert_eq!((state.waits, state.waiter_pid), (Some(TerminalWait::Busy), None));
    }
}
