//! Waits until a result may be given.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::select;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::{TerminalState, TerminalWait};
use regex::Regex;

use crate::output::Streaming;
use crate::ready::{self, LOOK_MIN, Reason};
use crate::session::Session;

/// Time between two searches in what was shown: a search through a long output costs a millisecond.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// What is waited for.
#[derive(Debug)]
pub enum Until {
    /// That the program waits for input, or that nothing better can be known.
    Ready,
    /// That something new was shown, or that the program does something else than what was told
    /// last; and then as [`Until::Ready`].
    News,
    /// That it waits for input, or a shell shows its prompt: silence is not enough.
    Prompt,
    /// That this is shown.
    Shown(Regex),
}

/// The silence that ends a wait.
#[derive(Debug, Clone, Copy)]
pub struct Silence {
    /// How long it is.
    pub time: Duration,
    /// Whether it ends the wait for a busy program as well.
    pub ends_busy_waits: bool,
}

/// Why a wait is over.
#[derive(Debug, Clone)]
pub struct Waited {
    /// Why.
    pub reason: Reason,
    /// What the program does.
    pub doing: Doing,
    /// What the system said last.
    pub state: TerminalState,
    /// How long it took.
    pub took: Duration,
}

/// What a program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It waits for input.
    Waits,
    /// It is busy.
    Works,
    /// It runs, and has shown nothing for a while: it may as well sleep, or serve.
    WorksSilently,
    /// Whether it waits for input cannot be known.
    Unknown,
    /// It has ended.
    Ended,
}

/// Looks at what a program does where a wait ended without that: one look may have met it between
/// two steps.
const LOOKS: u32 = 2;

/// The silence after which a program that is busy may as well be a server.
const LONG_SILENCE: Duration = Duration::from_secs(2);

/// Waits, at most so long.
///
/// # Errors
/// `cancelled`.
pub async fn wait(
    session: &Session,
    host: &Reporter,
    until: &Until,
    silence: Silence,
    longest: Duration,
) -> Result<Waited> {
    let begun = Instant::now();
    let mut state = TerminalState::default();
    let mut streaming = Streaming::new(session);
    let reason =
        follow(session, host, until, (silence, longest), (&mut state, &mut streaming)).await?;
    let doing = match reason {
        Reason::Waiting | Reason::Prompt => Doing::Waits,
        Reason::Silence => silent(&state),
        Reason::Exit => Doing::Ended,
        Reason::Found | Reason::Limit => doing(session, host, silence, &mut state).await?,
    };
    streaming.finish();
    Ok(Waited { reason, doing, state, took: begun.elapsed() })
}

/// What a program does that has shown nothing for a while.
fn silent(state: &TerminalState) -> Doing {
    match state.waits {
        Some(TerminalWait::Busy) => Doing::WorksSilently,
        _ => Doing::Unknown,
    }
}

/// Finds out what a program does at this moment.
async fn doing(
    session: &Session,
    host: &Reporter,
    silence: Silence,
    state: &mut TerminalState,
) -> Result<Doing> {
    for _ in 0..LOOKS {
        if !session.is_alive() {
            return Ok(Doing::Ended);
        }
        let look = session.look(silence).await?;
        state.clone_from(&look.state);
        if session.is_at_prompt() || ready::decide(&look) == Some(Reason::Waiting) {
            return Ok(Doing::Waits);
        }
        if look.state.waits == Some(TerminalWait::Busy) {
            let is_silent = look.silence >= LONG_SILENCE;
            return Ok(if is_silent { Doing::WorksSilently } else { Doing::Works });
        }
        host.sleep(LOOK_MIN).await?;
    }
    Ok(Doing::Unknown)
}

async fn follow(
    session: &Session,
    host: &Reporter,
    until: &Until,
    (idle, longest): (Silence, Duration),
    (state, streaming): (&mut TerminalState, &mut Streaming<'_>),
) -> Result<Reason> {
    let _wanted = session.want();
    let begun = Instant::now();
    let mut changes = session.changes();
    let (mut pause, mut bytes, mut searched) = (LOOK_MIN, session.bytes(), None);
    // Whether more came in the moment before: nobody who prints waits, and a look costs more than
    // the print.
    let mut is_printing = false;
    let mut was_busy = false;
    loop {
        changes.borrow_and_update();
        if !session.is_alive() {
            return Ok(match until {
                Until::Shown(pattern) if is_shown(session, pattern) => Reason::Found,
                Until::Shown(_) | Until::News | Until::Ready | Until::Prompt => Reason::Exit,
            });
        }
        let silence = match until {
            Until::Shown(pattern) => {
                let is_due = searched.is_none_or(|at: Instant| at.elapsed() >= SEARCH_PAUSE);
                if is_due && is_shown(session, pattern) {
                    return Ok(Reason::Found);
                }
                if is_due {
                    searched = Some(Instant::now());
                }
                Duration::ZERO
            }
            Until::Ready | Until::Prompt if session.is_at_prompt() => return Ok(Reason::Prompt),
            Until::News if session.is_at_prompt() && is_news(session, Doing::Waits) => {
                return Ok(Reason::Prompt);
            }
            Until::News | Until::Ready | Until::Prompt if is_printing => Duration::ZERO,
            Until::News | Until::Ready | Until::Prompt => {
                let look = session.look(idle).await?;
                state.clone_from(&look.state);
                was_busy |= look.state.waits == Some(TerminalWait::Busy);
                match (until, ready::decide(&look)) {
                    (Until::Prompt, Some(Reason::Silence)) | (_, None) => {}
                    (Until::News, Some(Reason::Waiting))
                        if !was_busy && !is_news(session, Doing::Waits) => {}
                    (Until::News, Some(Reason::Silence)) if !is_news(session, silent(state)) => {}
                    // What came while the system was asked is looked at first.
                    (_, Some(_)) if !session.is_alive() => return Ok(Reason::Exit),
                    (_, Some(reason)) => return Ok(reason),
                }
                look.silence
            }
        };
        // A pattern is searched before the text goes.
        if searched.is_none_or(|at| at.elapsed() < SEARCH_PAUSE) {
            streaming.surplus(host).await?;
        }
        let left = longest.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(Reason::Limit);
        }
        let sleep = pin!(host.sleep(pause.min(left)));
        let change = pin!(changes.changed());
        let is_change = match select(change, sleep).await {
            futures_util::future::Either::Left(_) => true,
            futures_util::future::Either::Right((slept, _)) => {
                slept?;
                false
            }
        };
        if is_change {
            // A moment for what follows it: a flood must not cost a look for each piece.
            let before = session.bytes();
            host.sleep(LOOK_MIN.min(left)).await?;
            is_printing = session.bytes() != before;
        } else {
            is_printing = false;
        }
        let now = session.bytes();
        pause = if now == bytes { ready::next_look(pause, silence) } else { LOOK_MIN };
        bytes = now;
    }
}

/// Returns whether there is anything to tell of a program that does this.
fn is_news(session: &Session, doing: Doing) -> bool {
    let live = session.live();
    live.typed_by_person || live.told_doing != Some(doing) || live.has_new_output()
}

/// Searches in what is new, or in the whole of a screen that a program draws.
fn is_shown(session: &Session, pattern: &Regex) -> bool {
    let live = session.live();
    if live.screen.is_full_screen() {
        return pattern.is_match(&live.screen.lines().join("\n"));
    }
    pattern.is_match(live.transcript.text()) || pattern.is_match(&live.screen.unseen().text)
}
