//! Waits until a result may be given.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_util::future::select;
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::terminal::TerminalState;
use regex::Regex;

use crate::ready::{self, LOOK_MIN, Reason};
use crate::session::Session;

/// Time between two searches in what was shown: a search through a long output costs a millisecond.
const SEARCH_PAUSE: Duration = Duration::from_millis(10);

/// What is waited for.
#[derive(Debug)]
pub enum Until {
    /// That the program waits for input, or that nothing better can be known.
    Ready,
    /// That it waits for input, or a shell shows its prompt: silence is not enough.
    Prompt,
    /// That this is shown.
    Shown(Regex),
}

/// Why a wait is over.
#[derive(Debug, Clone)]
pub struct Waited {
    /// Why.
    pub reason: Reason,
    /// What the system said last.
    pub state: TerminalState,
    /// How long it took.
    pub took: Duration,
}

/// Waits, at most so long.
///
/// # Errors
/// `cancelled`.
pub async fn wait(
    session: &Session,
    host: &Reporter,
    until: &Until,
    idle_timeout: Duration,
    longest: Duration,
) -> Result<Waited> {
    let begun = Instant::now();
    let mut state = TerminalState::default();
    let reason = follow(session, host, until, (idle_timeout, longest), &mut state).await?;
    Ok(Waited { reason, state, took: begun.elapsed() })
}

async fn follow(
    session: &Session,
    host: &Reporter,
    until: &Until,
    (idle_timeout, longest): (Duration, Duration),
    state: &mut TerminalState,
) -> Result<Reason> {
    let _wanted = session.want();
    let begun = Instant::now();
    let mut changes = session.changes();
    let (mut pause, mut bytes, mut searched) = (LOOK_MIN, session.bytes(), None);
    // Whether more came in the moment before: nobody who prints waits, and a look costs more than the print.
    let mut is_printing = false;
    loop {
        changes.borrow_and_update();
        if !session.is_alive() {
            return Ok(match until {
                Until::Shown(pattern) if is_shown(session, pattern) => Reason::Found,
                Until::Shown(_) | Until::Ready | Until::Prompt => Reason::Exit,
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
            Until::Ready | Until::Prompt if is_printing => Duration::ZERO,
            Until::Ready | Until::Prompt => {
                let look = session.look(idle_timeout).await?;
                state.clone_from(&look.state);
                match (until, ready::decide(&look)) {
                    (Until::Prompt, Some(Reason::Silence)) | (_, None) => {}
                    // What came while the system was asked is looked at first.
                    (_, Some(_)) if !session.is_alive() => return Ok(Reason::Exit),
                    (_, Some(reason)) => return Ok(reason),
                }
                look.silence
            }
        };
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

/// Searches in what is new, or in the whole of a screen that a program draws.
fn is_shown(session: &Session, pattern: &Regex) -> bool {
    let live = session.live();
    if live.screen.is_full_screen() {
        return pattern.is_match(&live.screen.lines().join("\n"));
    }
    pattern.is_match(&live.screen.unseen().text)
}
