//! Waits until a result can be returned.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};
use regex::Regex;
use tokio::sync::watch;

use crate::output::{OutputStreaming, take_surplus_text};
use crate::ready::{self, LOOK_MIN, ResultReason};
use crate::session::{LiveSessionState, ShellSession};

/// The minimum time between two searches, because a search in a long output takes a millisecond.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// The condition that ends a wait.
#[derive(Debug)]
pub enum WaitCondition {
    /// The program waits for input, or its state is unknown.
    Ready,
    /// Something new was shown, or the program's activity differs from the last result. After that,
    /// as [`WaitCondition::Ready`].
    News,
    /// The program waits for input, or a shell shows its prompt. Silence is not enough.
    Prompt,
    /// This pattern was shown.
    Shown(Regex),
}

/// The duration of silence that ends a wait.
#[derive(Debug, Clone, Copy)]
pub struct SilencePolicy {
    /// Its duration.
    pub time: Duration,
    /// Whether it also ends the wait for a busy program.
    pub ends_busy_waits: bool,
}

/// The result of a wait.
#[derive(Debug, Clone)]
pub struct WaitResult {
    /// The reason why it ended.
    pub reason: ResultReason,
    /// The program's activity.
    pub doing: ProgramActivity,
    /// The last information from the system.
    pub state: TerminalState,
    /// The duration of the wait.
    pub took: Duration,
}

/// The activity of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramActivity {
    /// It waits for input.
    Waits,
    /// It is busy.
    Works,
    /// It runs and has been silent for a while. It may sleep, or be a server.
    WorksSilently,
    /// It may or may not wait for input.
    Unknown,
    /// It has ended.
    Ended,
}

/// The number of looks at a program's activity after a wait, because a single look may fall between
/// two steps.
const LOOKS: u32 = 2;

/// The silence after which a busy program may be a server.
const LONG_SILENCE: Duration = Duration::from_secs(2);

/// Waits for a condition, up to a time limit.
///
/// # Errors
/// `cancelled`.
pub async fn wait_for_condition(
    session: &ShellSession,
    host: &Reporter,
    until: &WaitCondition,
    silence: SilencePolicy,
    longest: Duration,
) -> Result<WaitResult> {
    let begun = Instant::now();
    let mut state = TerminalState::default();
    let mut streaming = OutputStreaming::new(session);
    let reason =
        wait_for_program(session, host, until, (silence, longest), (&mut state, &mut streaming))
            .await?;
    let doing = match reason {
        ResultReason::Waiting | ResultReason::Prompt => ProgramActivity::Waits,
        ResultReason::Silence => silent_activity(&state),
        ResultReason::Exit => ProgramActivity::Ended,
        ResultReason::Found | ResultReason::Limit => {
            program_activity(session, host, silence, &mut state).await?
        }
    };
    streaming.finish_with_result();
    Ok(WaitResult { reason, doing, state, took: begun.elapsed() })
}

/// Returns the activity of a program that has been silent for a while.
fn silent_activity(state: &TerminalState) -> ProgramActivity {
    match state.waits {
        Some(TerminalWait::Busy) => ProgramActivity::WorksSilently,
        _ => ProgramActivity::Unknown,
    }
}

/// Determines the current activity of a program.
async fn program_activity(
    session: &ShellSession,
    host: &Reporter,
    silence: SilencePolicy,
    state: &mut TerminalState,
) -> Result<ProgramActivity> {
    for _ in 0..LOOKS {
        if !session.is_alive() {
            return Ok(ProgramActivity::Ended);
        }
        let look = session.observe_program(silence).await?;
        state.clone_from(&look.state);
        if session.is_at_prompt()
            || ready::decide_result_reason(&look) == Some(ResultReason::Waiting)
        {
            return Ok(ProgramActivity::Waits);
        }
        if look.state.waits == Some(TerminalWait::Busy) {
            let is_silent = look.silence >= LONG_SILENCE;
            return Ok(if is_silent {
                ProgramActivity::WorksSilently
            } else {
                ProgramActivity::Works
            });
        }
        host.sleep(LOOK_MIN).await?;
    }
    Ok(ProgramActivity::Unknown)
}

async fn wait_for_program(
    session: &ShellSession,
    host: &Reporter,
    until: &WaitCondition,
    (idle, longest): (SilencePolicy, Duration),
    (state, streaming): (&mut TerminalState, &mut OutputStreaming<'_>),
) -> Result<ResultReason> {
    let _wanted = session.read_without_pauses();
    let begun = Instant::now();
    let mut changes = session.change_receiver();
    let (mut pause, mut bytes, mut searched) = (LOOK_MIN, session.shown_bytes(), None);
    // Whether more output arrived in the last moment. A program that prints does not wait, and a
    // look takes longer than the print.
    let mut is_printing = false;
    let mut was_busy = false;
    loop {
        changes.borrow_and_update();
        if !session.is_alive() {
            return Ok(match until {
                WaitCondition::Shown(pattern)
                    if is_pattern_shown(&session.lock_live(), pattern) =>
                {
                    ResultReason::Found
                }
                WaitCondition::Shown(_)
                | WaitCondition::News
                | WaitCondition::Ready
                | WaitCondition::Prompt => ResultReason::Exit,
            });
        }
        let mut silence = Duration::ZERO;
        let older = if let WaitCondition::Shown(pattern) = until {
            if searched.is_none_or(|at: Instant| at.elapsed() >= SEARCH_PAUSE) {
                let Some(older) = search_output(&mut session.lock_live(), pattern) else {
                    return Ok(ResultReason::Found);
                };
                searched = Some(Instant::now());
                older
            } else {
                None
            }
        } else {
            let looked =
                check_program(session, until, (idle, is_printing), (state, &mut was_busy)).await?;
            match looked {
                ControlFlow::Break(reason) => return Ok(reason),
                ControlFlow::Continue(it) => silence = it,
            }
            take_surplus_text(&mut session.lock_live())
        };
        if let Some(older) = older {
            streaming.stream_text(host, older).await?;
        }
        let left = longest.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(ResultReason::Limit);
        }
        is_printing = wait_for_more_output(session, host, &mut changes, (pause, left)).await?;
        let now = session.shown_bytes();
        pause = if now == bytes { ready::next_check_interval(pause, silence) } else { LOOK_MIN };
        bytes = now;
    }
}

/// Checks whether the program waits. Returns the reason to end the wait, or the duration of the
/// silence.
async fn check_program(
    session: &ShellSession,
    until: &WaitCondition,
    (idle, is_printing): (SilencePolicy, bool),
    (state, was_busy): (&mut TerminalState, &mut bool),
) -> Result<ControlFlow<ResultReason, Duration>> {
    let has_news =
        |doing| !matches!(until, WaitCondition::News) || has_new_information(session, doing);
    if session.is_at_prompt() && has_news(ProgramActivity::Waits) {
        return Ok(ControlFlow::Break(ResultReason::Prompt));
    }
    if is_printing {
        return Ok(ControlFlow::Continue(Duration::ZERO));
    }
    let look = session.observe_program(idle).await?;
    state.clone_from(&look.state);
    *was_busy |= look.state.waits == Some(TerminalWait::Busy);
    let ended = match (until, ready::decide_result_reason(&look)) {
        (WaitCondition::Prompt, Some(ResultReason::Silence)) | (_, None) => None,
        (_, Some(ResultReason::Waiting)) if !*was_busy && !has_news(ProgramActivity::Waits) => None,
        (_, Some(ResultReason::Silence)) if !has_news(silent_activity(state)) => None,
        // Output that arrived during the request to the system is checked first.
        (_, Some(_)) if !session.is_alive() => Some(ResultReason::Exit),
        (_, decided) => decided,
    };
    Ok(ended.map_or(ControlFlow::Continue(look.silence), ControlFlow::Break))
}

/// Waits for a change or a pause. Returns true if more output arrived shortly after a change.
async fn wait_for_more_output(
    session: &ShellSession,
    host: &Reporter,
    changes: &mut watch::Receiver<u64>,
    (pause, left): (Duration, Duration),
) -> Result<bool> {
    let sleep = pin!(host.sleep(pause.min(left)));
    let change = pin!(changes.changed());
    if let Either::Right((slept, _)) = select(change, sleep).await {
        return slept.map(|()| false);
    }
    // Waits a moment for further output, so that a flood does not cause a look for each piece.
    let before = session.shown_bytes();
    host.sleep(LOOK_MIN.min(left)).await?;
    Ok(session.shown_bytes() != before)
}

/// Returns true if there is anything new to report about a program with this activity.
fn has_new_information(session: &ShellSession, doing: ProgramActivity) -> bool {
    let live = session.lock_live();
    live.typed_by_person || live.told_doing != Some(doing) || live.has_new_output()
}

/// Searches the output. Returns `None` if the pattern is found, otherwise the older part of a long
/// text. The lock is held throughout, so the returned part has been searched.
fn search_output(live: &mut LiveSessionState, pattern: &Regex) -> Option<Option<String>> {
    (!is_pattern_shown(live, pattern)).then(|| take_surplus_text(live))
}

/// Searches the new text, or the whole screen of a full-screen program.
fn is_pattern_shown(live: &LiveSessionState, pattern: &Regex) -> bool {
    if live.screen.is_full_screen() {
        return pattern.is_match(&live.screen.visible_lines().join("\n"));
    }
    pattern.is_match(live.transcript.text()) || pattern.is_match(&live.screen.unseen_text().text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::MarkNonce;
    use crate::screen::UnseenText;

    #[test]
    fn only_searched_text_is_streamed_and_once_per_round() {
        let mut live =
            LiveSessionState::new((24, 80), &MarkNonce::new("0123456789abcdef").unwrap());
        let push = |live: &mut LiveSessionState, text: &str| {
            let text = text.to_owned() + &"x".repeat(1024 * 1024);
            live.transcript.push_text(&UnseenText { text, continues: true });
        };
        let pattern = Regex::new("moon").unwrap();
        push(&mut live, "sun");
        let older = search_output(&mut live, &pattern).unwrap().unwrap();
        assert!(older.starts_with("sun") && live.transcript.text().len() < 1024 * 1024);
        assert_eq!(search_output(&mut live, &pattern), Some(None));
        push(&mut live, "moon");
        let whole = live.transcript.text().len();
        assert_eq!(search_output(&mut live, &pattern), None);
        assert_eq!(live.transcript.text().len(), whole);
    }
}
