//! Decides when a result may be given: when the program waits for input, or nothing better can be
//! known. Pure.
//!
//! What the system says goes before silence: a program that is busy is waited for however silent it
//! is, and one that waits is not waited for. Silence decides only where nothing is known, unless
//! the person has set how much of it ends a wait.

use std::time::Duration;

use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};

/// The first time between two looks, and after each piece of output.
pub const LOOK_MIN: Duration = Duration::from_millis(1);

/// The longest time between two looks at a program that was busy a moment ago.
const LOOK_MAX: Duration = Duration::from_millis(8);

/// The longest time between two looks at a program that has been silent for [`LONG`].
const LOOK_LONG: Duration = Duration::from_millis(25);

/// A silence after which looks become rarer.
const LONG: Duration = Duration::from_secs(2);

/// A wait of which nothing else was seen for so long is one, and not a moment between two steps.
const WAIT_US_MIN: u64 = 500;

/// A wait that ends by itself counts when it began anew so often,
const AGAIN_MIN: u32 = 2;

/// in so much silence,
const AGAIN_SILENCE: Duration = Duration::from_millis(150);

/// and in more than the longest of them takes by so much: a timer that a program waits for beside
/// its input has done what it does by then.
const AGAIN_MARGIN: Duration = Duration::from_millis(50);

/// A wait that takes so long is as good as one without end: servers have such timers.
const WAIT_LONG: Duration = Duration::from_secs(5);

/// The silence that decides on a terminal where the cursor stands at the beginning of its line. A
/// prompt is a text that the cursor stands behind: without one a command works, or sleeps, out of
/// sight. Longer would be too long for the few programs that wait there without a word (`cat`).
const NO_PROMPT_SILENCE: Duration = Duration::from_secs(3);

/// Why a result is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program waits for input: the system says so.
    Waiting,
    /// A shell has shown its prompt: its mark says so.
    Prompt,
    /// What was waited for was shown.
    Found,
    /// The program has ended.
    Exit,
    /// Nothing was shown for a while, and nothing better can be known.
    Silence,
    /// The time is over; the program is busy.
    Limit,
}

/// What is seen of a program at one moment.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// What the system says.
    pub state: TerminalState,
    /// Bytes that were taken of what the terminal has told.
    pub taken_bytes: u64,
    /// Since when nothing was shown and nothing typed.
    pub silence: Duration,
    /// The silence that decides where nothing is known.
    pub idle_timeout: Duration,
    /// Whether it decides of busy programs as well.
    pub ends_busy_waits: bool,
    /// Whether the cursor stands behind text: a prompt without a line end.
    pub is_mid_line: bool,
    /// Whether it runs on a terminal, where programs and shells show prompts.
    pub is_on_terminal: bool,
    /// Whether a full-screen program draws, or one that moves the cursor up (`top`).
    pub is_drawn: bool,
}

/// Decides; none means: look again.
pub fn decide(look: &Look) -> Option<Reason> {
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
        Some(TerminalWait::Reading) => is_seen.then_some(Reason::Waiting),
        Some(TerminalWait::ReadingForAWhile) if is_seen => decide_for_a_while(look),
        Some(TerminalWait::ReadingForAWhile) => None,
        Some(TerminalWait::Relaying | TerminalWait::Unknown) | None => {
            let is_command = look.is_on_terminal && !look.is_mid_line && !look.is_drawn;
            let is_silent = is_silent && (!is_command || look.silence >= NO_PROMPT_SILENCE);
            (is_read && is_silent).then_some(Reason::Silence)
        }
    };
    decided.or_else(|| is_over.then_some(Reason::Silence))
}

/// Decides of a program that waits for input and goes on by itself after a while: it may as well
/// wait for a timer.
fn decide_for_a_while(look: &Look) -> Option<Reason> {
    let state = &look.state;
    let is_prompt = (look.is_mid_line || look.is_drawn) && state.is_pause != Some(true);
    let takes = state.wait_ms.map(Duration::from_millis);
    let is_long = takes.is_some_and(|takes| takes >= WAIT_LONG);
    let again_silence =
        takes.map_or(AGAIN_SILENCE, |takes| (takes + AGAIN_MARGIN).max(AGAIN_SILENCE));
    let is_again =
        state.waited_again.is_some_and(|times| times >= AGAIN_MIN) && look.silence >= again_silence;
    if is_prompt || is_long || is_again {
        return Some(Reason::Waiting);
    }
    // What is known of its timer is waited for.
    (takes.is_none() && look.silence >= look.idle_timeout).then_some(Reason::Silence)
}

/// Returns how long to wait for the next look.
pub fn next_look(last: Duration, silence: Duration) -> Duration {
    let longest = if silence >= LONG { LOOK_LONG } else { LOOK_MAX };
    (last * 3 / 2).clamp(LOOK_MIN, longest)
}

impl Reason {
    /// Returns the word that the model is given.
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

    fn look(waits: Option<TerminalWait>) -> Look {
        Look {
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
            ..Look::default()
        }
    }

    #[test]
    fn a_program_that_waits_is_ready_at_once() {
        let waiting = look(Some(TerminalWait::Reading));
        assert_eq!(decide(&waiting), Some(Reason::Waiting));
    }

    #[test]
    fn one_look_is_not_enough() {
        let mut first = look(Some(TerminalWait::Reading));
        first.state.waited_us = Some(WAIT_US_MIN - 1);
        assert_eq!(decide(&first), None);
        first.state.waited_us = None;
        assert_eq!(decide(&first), None);
    }

    #[test]
    fn what_was_typed_must_be_taken_and_what_was_shown_be_read() {
        let mut typed = look(Some(TerminalWait::Reading));
        typed.state.has_input = Some(true);
        assert_eq!(decide(&typed), None);
        let mut behind = look(Some(TerminalWait::Reading));
        behind.taken_bytes = 9;
        assert_eq!(decide(&behind), None);
        let mut more = look(Some(TerminalWait::Reading));
        more.state.has_output = Some(true);
        assert_eq!(decide(&more), None);
    }

    #[test]
    fn silence_says_nothing_of_a_busy_program() {
        let mut busy = look(Some(TerminalWait::Busy));
        busy.silence = Duration::from_secs(3600);
        assert_eq!(decide(&busy), None);
    }

    #[test]
    fn a_silence_that_the_person_set_ends_the_wait_for_a_busy_program() {
        let mut busy = look(Some(TerminalWait::Busy));
        busy.ends_busy_waits = true;
        busy.silence = busy.idle_timeout - Duration::from_millis(1);
        assert_eq!(decide(&busy), None);
        busy.silence = busy.idle_timeout;
        assert_eq!(decide(&busy), Some(Reason::Silence));
        busy.state.has_output = Some(true);
        assert_eq!(decide(&busy), None, "what was shown is read first");
        let mut timer = look(Some(TerminalWait::ReadingForAWhile));
        (timer.state.wait_ms, timer.silence) = (Some(1500), timer.idle_timeout);
        assert_eq!(decide(&timer), None);
        timer.ends_busy_waits = true;
        assert_eq!(decide(&timer), Some(Reason::Silence));
    }

    #[test]
    fn silence_decides_where_nothing_is_known() {
        for waits in [None, Some(TerminalWait::Relaying), Some(TerminalWait::Unknown)] {
            let mut unknown = look(waits);
            assert_eq!(decide(&unknown), None);
            unknown.silence = unknown.idle_timeout;
            assert_eq!(decide(&unknown), Some(Reason::Silence));
            unknown.state.has_output = Some(true);
            assert_eq!(decide(&unknown), None);
        }
    }

    /// Looks at a terminal every 10 ms of a clock of its own, and tells after how many
    /// milliseconds of silence a result is given.
    fn given_after(look: &Look) -> Option<u64> {
        (0..10_000).step_by(10).find(|at| {
            let at = Look { silence: Duration::from_millis(*at), ..look.clone() };
            decide(&at) == Some(Reason::Silence)
        })
    }

    #[test]
    fn behind_a_connection_a_command_is_waited_for_longer_than_a_prompt() {
        for waits in [None, Some(TerminalWait::Relaying), Some(TerminalWait::Unknown)] {
            let command = Look { is_on_terminal: true, ..look(waits) };
            assert_eq!(given_after(&command), Some(3000), "`sleep 2`, a wrong password");
            let prompt = Look { is_mid_line: true, ..command.clone() };
            assert_eq!(given_after(&prompt), Some(500));
            let screen = Look { is_drawn: true, ..command.clone() };
            assert_eq!(given_after(&screen), Some(500));
            let pipes = Look { is_on_terminal: false, ..command.clone() };
            assert_eq!(given_after(&pipes), Some(500), "shells show no prompts there");
        }
    }

    #[test]
    fn a_silence_that_the_person_set_goes_before_that_of_prompts() {
        let command = Look { is_on_terminal: true, ..look(Some(TerminalWait::Relaying)) };
        let second = Duration::from_secs(1);
        let set = Look { idle_timeout: second, ends_busy_waits: true, ..command.clone() };
        assert_eq!(given_after(&set), Some(1000));
        let long = Look { idle_timeout: second * 5, ends_busy_waits: true, ..command };
        assert_eq!(given_after(&long), Some(5000));
    }

    #[test]
    fn a_wait_that_ends_by_itself_needs_a_prompt_or_a_repetition() {
        let weak = look(Some(TerminalWait::ReadingForAWhile));
        assert_eq!(decide(&weak), None);
        let prompt = Look { is_mid_line: true, ..weak.clone() };
        assert_eq!(decide(&prompt), Some(Reason::Waiting));
        let screen = Look { is_drawn: true, ..weak.clone() };
        assert_eq!(decide(&screen), Some(Reason::Waiting));
        let mut again = Look { silence: AGAIN_SILENCE, ..weak.clone() };
        assert_eq!(decide(&again), None);
        again.state.waited_again = Some(AGAIN_MIN);
        assert_eq!(decide(&again), Some(Reason::Waiting));
        again.state.has_input = Some(true);
        assert_eq!(decide(&again), None);
        let silent = Look { silence: Duration::from_millis(500), ..weak };
        assert_eq!(decide(&silent), Some(Reason::Silence));
    }

    #[test]
    fn a_timer_beside_the_input_is_waited_for() {
        let mut timer = look(Some(TerminalWait::ReadingForAWhile));
        timer.state.wait_ms = Some(1500);
        timer.state.waited_again = Some(AGAIN_MIN);
        timer.silence = Duration::from_millis(1549);
        assert_eq!(decide(&timer), None);
        timer.silence = Duration::from_millis(1550);
        assert_eq!(decide(&timer), Some(Reason::Waiting));
        timer.state.waited_again = Some(AGAIN_MIN - 1);
        assert_eq!(decide(&timer), None, "silence says nothing of it");
        timer.state.wait_ms = Some(5000);
        timer.silence = Duration::from_millis(1);
        assert_eq!(decide(&timer), Some(Reason::Waiting), "a server's timer");
    }

    #[test]
    fn a_pause_between_two_keys_is_no_prompt() {
        let mut pause = look(Some(TerminalWait::ReadingForAWhile));
        (pause.is_drawn, pause.state.wait_ms) = (true, Some(1000));
        assert_eq!(decide(&pause), Some(Reason::Waiting));
        pause.state.is_pause = Some(true);
        assert_eq!(decide(&pause), None);
    }

    #[test]
    fn looks_become_rarer_and_never_stop() {
        let mut at = LOOK_MIN;
        for _ in 0..20 {
            at = next_look(at, Duration::ZERO);
        }
        assert_eq!(at, LOOK_MAX);
        assert_eq!(next_look(LOOK_LONG, LONG), LOOK_LONG);
        assert_eq!(next_look(Duration::ZERO, Duration::ZERO), LOOK_MIN);
    }
}
