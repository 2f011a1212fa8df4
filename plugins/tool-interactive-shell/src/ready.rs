//! Decides when to return a result: when the program waits for input, or when its state is unknown
//! and the program is silent. Pure.
//!
//! The system's information takes precedence over silence. A wait continues for a busy program
//! however long it is silent, and ends for a program that reads. Silence decides only if the state
//! is unknown, unless the user has set a silence that ends all waits.

use std::time::Duration;

use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};

/// The first interval between two looks, and the interval after each output.
pub const LOOK_MIN: Duration = Duration::from_millis(1);

/// The longest interval between two looks at a program that was busy recently.
const LOOK_MAX: Duration = Duration::from_millis(8);

/// The longest interval between two looks at a program that has been silent for [`LONG`].
const LOOK_LONG: Duration = Duration::from_millis(25);

/// After this silence, looks become less frequent.
const LONG: Duration = Duration::from_secs(2);

/// A read must last this long to count as a wait, and not as a moment between two steps.
const WAIT_US_MIN: u64 = 500;

/// The minimum number of times that a read with a timeout must restart to count as a wait.
const AGAIN_MIN: u32 = 2;

/// The minimum silence during these restarts.
const AGAIN_SILENCE: Duration = Duration::from_millis(150);

/// The minimum silence beyond the read's timeout. By then, a timer that the program also waits for
/// has fired.
const AGAIN_MARGIN: Duration = Duration::from_millis(50);

/// A read with a timeout of at least this length counts as one without a timeout, because servers
/// have such timers.
const WAIT_LONG: Duration = Duration::from_secs(5);

/// The silence that decides on a terminal whose cursor is at the start of its line. A prompt leaves
/// the cursor after a text, so without one a command is probably running or sleeping. A longer
/// silence would delay the few programs that wait there without a prompt (`cat`).
const NO_PROMPT_SILENCE: Duration = Duration::from_secs(3);

/// The reason why a result is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultReason {
    /// The program waits for input, as reported by the system.
    Waiting,
    /// A shell shows its prompt, as reported by its mark.
    Prompt,
    /// The awaited text was shown.
    Found,
    /// The program has ended.
    Exit,
    /// The program was silent for a while, and its state is unknown.
    Silence,
    /// The time limit has passed, and the program is busy.
    Limit,
}

/// The observed state of a program at one moment.
#[derive(Debug, Clone, Default)]
pub struct ProgramObservation {
    /// The system's information.
    pub state: TerminalState,
    /// The number of bytes received from the terminal.
    pub taken_bytes: u64,
    /// The time since the last output or input.
    pub silence: Duration,
    /// The silence that decides if the state is unknown.
    pub idle_timeout: Duration,
    /// Whether the silence also decides for busy programs.
    pub ends_busy_waits: bool,
    /// Whether the cursor is after text, as for a prompt without a line end.
    pub is_mid_line: bool,
    /// Whether the program runs on a terminal, where programs and shells show prompts.
    pub is_on_terminal: bool,
    /// Whether a program draws the screen: a full-screen program, or one that moves the cursor up
    /// (`top`).
    pub is_drawn: bool,
}

/// Returns the reason to return a result, or `None` to look again.
pub fn decide_result_reason(look: &ProgramObservation) -> Option<ResultReason> {
    let state = &look.state;
    let is_silent = look.silence >= look.idle_timeout;
    let is_read = state.has_output != Some(true)
        && state.shown_bytes.is_none_or(|shown| shown <= look.taken_bytes);
    let is_seen = is_read
        && state.has_input != Some(true)
        && state.waited_us.is_some_and(|waited| waited >= WAIT_US_MIN);
    let is_over = look.ends_busy_waits && is_silent && is_read;
    let decided = match state.waits {
        Some(TerminalWait::Busy) => None,
        Some(TerminalWait::Reading) => is_seen.then_some(ResultReason::Waiting),
        Some(TerminalWait::ReadingForAWhile) if is_seen => decide_for_timed_read(look),
        Some(TerminalWait::ReadingForAWhile) => None,
        Some(TerminalWait::Relaying | TerminalWait::Unknown) | None => {
            let is_command = look.is_on_terminal && !look.is_mid_line && !look.is_drawn;
            let is_silent = is_silent && (!is_command || look.silence >= NO_PROMPT_SILENCE);
            (is_read && is_silent).then_some(ResultReason::Silence)
        }
    };
    decided.or_else(|| is_over.then_some(ResultReason::Silence))
}

/// Decides for a program that reads with a timeout. It may only wait for a timer.
fn decide_for_timed_read(look: &ProgramObservation) -> Option<ResultReason> {
    let state = &look.state;
    let is_prompt = (look.is_mid_line || look.is_drawn) && state.is_pause != Some(true);
    let takes = state.wait_ms.map(Duration::from_millis);
    let is_long = takes.is_some_and(|takes| takes >= WAIT_LONG);
    let again_silence =
        takes.map_or(AGAIN_SILENCE, |takes| (takes + AGAIN_MARGIN).max(AGAIN_SILENCE));
    let is_again =
        state.waited_again.is_some_and(|times| times >= AGAIN_MIN) && look.silence >= again_silence;
    if is_prompt || is_long || is_again {
        return Some(ResultReason::Waiting);
    }
    // If the timeout is known, the wait continues until it has passed.
    (takes.is_none() && look.silence >= look.idle_timeout).then_some(ResultReason::Silence)
}

/// Returns the interval until the next look.
pub fn next_check_interval(last: Duration, silence: Duration) -> Duration {
    let longest = if silence >= LONG { LOOK_LONG } else { LOOK_MAX };
    (last * 3 / 2).clamp(LOOK_MIN, longest)
}

impl ResultReason {
    /// Returns the name of the reason for the model.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Prompt => "prompt",
            Self::Found => "found",
            Self::Exit => "exit",
            Self::Silence => "silence",
            Self::Limit => "limit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(waits: Option<TerminalWait>) -> ProgramObservation {
        ProgramObservation {
            state: TerminalState {
                waits,
                waited_us: Some(WAIT_US_MIN),
                has_input: Some(false),
                has_output: Some(false),
                shown_bytes: Some(10),
                ..TerminalState::default()
            },
            taken_bytes: 10,
            silence: Duration::from_millis(2),
            idle_timeout: Duration::from_millis(500),
            ..ProgramObservation::default()
        }
    }

    #[test]
    fn a_program_that_waits_is_ready_at_once() {
        let waiting = observation(Some(TerminalWait::Reading));
        assert_eq!(decide_result_reason(&waiting), Some(ResultReason::Waiting));
    }

    #[test]
    fn program_must_wait_a_minimum_time_to_be_ready() {
        let mut first = observation(Some(TerminalWait::Reading));
        first.state.waited_us = Some(WAIT_US_MIN - 1);
        assert_eq!(decide_result_reason(&first), None);
        first.state.waited_us = None;
        assert_eq!(decide_result_reason(&first), None);
    }

    #[test]
    fn result_requires_typed_input_consumed_and_output_read() {
        let mut typed = observation(Some(TerminalWait::Reading));
        typed.state.has_input = Some(true);
        assert_eq!(decide_result_reason(&typed), None);
        let mut behind = observation(Some(TerminalWait::Reading));
        behind.taken_bytes = 9;
        assert_eq!(decide_result_reason(&behind), None);
        let mut more = observation(Some(TerminalWait::Reading));
        more.state.has_output = Some(true);
        assert_eq!(decide_result_reason(&more), None);
    }

    #[test]
    fn silence_does_not_end_the_wait_for_a_busy_program() {
        let mut busy = observation(Some(TerminalWait::Busy));
        busy.silence = Duration::from_secs(3600);
        assert_eq!(decide_result_reason(&busy), None);
    }

    #[test]
    fn configured_silence_ends_the_wait_for_a_busy_program() {
        let mut busy = observation(Some(TerminalWait::Busy));
        busy.ends_busy_waits = true;
        busy.silence = busy.idle_timeout - Duration::from_millis(1);
        assert_eq!(decide_result_reason(&busy), None);
        busy.silence = busy.idle_timeout;
        assert_eq!(decide_result_reason(&busy), Some(ResultReason::Silence));
        busy.state.has_output = Some(true);
        assert_eq!(decide_result_reason(&busy), None, "pending output is read first");
        let mut timer = observation(Some(TerminalWait::ReadingForAWhile));
        (timer.state.wait_ms, timer.silence) = (Some(1500), timer.idle_timeout);
        assert_eq!(decide_result_reason(&timer), None);
        timer.ends_busy_waits = true;
        assert_eq!(decide_result_reason(&timer), Some(ResultReason::Silence));
    }

    #[test]
    fn silence_decides_if_the_program_state_is_unknown() {
        for waits in [None, Some(TerminalWait::Relaying), Some(TerminalWait::Unknown)] {
            let mut unknown = observation(waits);
            assert_eq!(decide_result_reason(&unknown), None);
            unknown.silence = unknown.idle_timeout;
            assert_eq!(decide_result_reason(&unknown), Some(ResultReason::Silence));
            unknown.state.has_output = Some(true);
            assert_eq!(decide_result_reason(&unknown), None);
        }
    }

    /// Looks at a terminal every 10 ms of a virtual clock. Returns after how many milliseconds of
    /// silence a result is returned.
    fn result_delay_ms(look: &ProgramObservation) -> Option<u64> {
        (0..10_000).step_by(10).find(|at| {
            let at = ProgramObservation { silence: Duration::from_millis(*at), ..look.clone() };
            decide_result_reason(&at) == Some(ResultReason::Silence)
        })
    }

    #[test]
    fn remote_command_without_a_prompt_needs_a_longer_silence() {
        for waits in [None, Some(TerminalWait::Relaying), Some(TerminalWait::Unknown)] {
            let command = ProgramObservation { is_on_terminal: true, ..observation(waits) };
            assert_eq!(result_delay_ms(&command), Some(3000), "`sleep 2`, a wrong password");
            let prompt = ProgramObservation { is_mid_line: true, ..command.clone() };
            assert_eq!(result_delay_ms(&prompt), Some(500));
            let screen = ProgramObservation { is_drawn: true, ..command.clone() };
            assert_eq!(result_delay_ms(&screen), Some(500));
            let pipes = ProgramObservation { is_on_terminal: false, ..command.clone() };
            assert_eq!(result_delay_ms(&pipes), Some(500), "shells show no prompts there");
        }
    }

    #[test]
    fn configured_silence_overrides_the_prompt_silence() {
        let command = ProgramObservation {
            is_on_terminal: true,
            ..observation(Some(TerminalWait::Relaying))
        };
        let second = Duration::from_secs(1);
        let set =
            ProgramObservation { idle_timeout: second, ends_busy_waits: true, ..command.clone() };
        assert_eq!(result_delay_ms(&set), Some(1000));
        let long =
            ProgramObservation { idle_timeout: second * 5, ends_busy_waits: true, ..command };
        assert_eq!(result_delay_ms(&long), Some(5000));
    }

    #[test]
    fn timed_wait_needs_a_prompt_or_a_repetition() {
        let weak = observation(Some(TerminalWait::ReadingForAWhile));
        assert_eq!(decide_result_reason(&weak), None);
        let prompt = ProgramObservation { is_mid_line: true, ..weak.clone() };
        assert_eq!(decide_result_reason(&prompt), Some(ResultReason::Waiting));
        let screen = ProgramObservation { is_drawn: true, ..weak.clone() };
        assert_eq!(decide_result_reason(&screen), Some(ResultReason::Waiting));
        let mut again = ProgramObservation { silence: AGAIN_SILENCE, ..weak.clone() };
        assert_eq!(decide_result_reason(&again), None);
        again.state.waited_again = Some(AGAIN_MIN);
        assert_eq!(decide_result_reason(&again), Some(ResultReason::Waiting));
        again.state.has_input = Some(true);
        assert_eq!(decide_result_reason(&again), None);
        let silent = ProgramObservation { silence: Duration::from_millis(500), ..weak };
        assert_eq!(decide_result_reason(&silent), Some(ResultReason::Silence));
    }

    #[test]
    fn pending_timer_of_the_program_is_awaited() {
        let mut timer = observation(Some(TerminalWait::ReadingForAWhile));
        timer.state.wait_ms = Some(1500);
        timer.state.waited_again = Some(AGAIN_MIN);
        timer.silence = Duration::from_millis(1549);
        assert_eq!(decide_result_reason(&timer), None);
        timer.silence = Duration::from_millis(1550);
        assert_eq!(decide_result_reason(&timer), Some(ResultReason::Waiting));
        timer.state.waited_again = Some(AGAIN_MIN - 1);
        assert_eq!(decide_result_reason(&timer), None, "silence does not count here");
        timer.state.wait_ms = Some(5000);
        timer.silence = Duration::from_millis(1);
        assert_eq!(decide_result_reason(&timer), Some(ResultReason::Waiting), "a server's timer");
    }

    #[test]
    fn pause_between_two_keys_is_not_a_prompt() {
        let mut pause = observation(Some(TerminalWait::ReadingForAWhile));
        (pause.is_drawn, pause.state.wait_ms) = (true, Some(1000));
        assert_eq!(decide_result_reason(&pause), Some(ResultReason::Waiting));
        pause.state.is_pause = Some(true);
        assert_eq!(decide_result_reason(&pause), None);
    }

    #[test]
    fn poll_interval_grows_to_a_maximum() {
        let mut at = LOOK_MIN;
        for _ in 0..20 {
            at = next_check_interval(at, Duration::ZERO);
        }
        assert_eq!(at, LOOK_MAX);
        assert_eq!(next_check_interval(LOOK_LONG, LONG), LOOK_LONG);
        assert_eq!(next_check_interval(Duration::ZERO, Duration::ZERO), LOOK_MIN);
    }
}
