//! Ends a session: first as a person would, then as the system can; and then what the program left
//! running.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftRunning, Signal};
use jaato_plugin_sdk::terminal::TerminalWait;

use crate::session::Session;

/// How long a program that waits for input may take to end after the end of its input.
const END_OF_INPUT: Duration = Duration::from_secs(1);

/// How long a program may take to end after its terminal has hung up.
const HANG_UP: Duration = Duration::from_millis(250);

/// How long the system may take to tell that a program was ended.
const ENDED: Duration = Duration::from_secs(5);

/// Ends everything that runs in a session, and returns what outlived the program itself. None where
/// the program is not told to have ended.
///
/// # Errors
/// What keeps from being ended what outlived the program.
pub async fn end(session: &Session, host: &Reporter) -> Result<Option<Vec<LeftRunning>>> {
    if session.is_alive() && !end_program(session, host).await {
        return Ok(None);
    }
    session.end_left().await.map(Some)
}

/// Ends a program: the end of its input where it reads, then SIGHUP, then everything that it has
/// started. False where even that is not told to have ended it.
async fn end_program(session: &Session, host: &Reporter) -> bool {
    let control = session.control();
    let waits = control.state().await.unwrap_or_default().waits;
    let is_busy = waits == Some(TerminalWait::Busy);
    if !is_busy && ends_with_its_input(session, host).await {
        return true;
    }
    if control.signal(Signal::Hangup).await.is_ok() && ended(session, host, HANG_UP).await {
        return true;
    }
    // What cannot be ended is told by the wait.
    let _ = control.end().await;
    ended(session, host, ENDED).await
}

/// Ends the input and waits for the end; no longer where not even that can be typed, because nobody
/// reads.
async fn ends_with_its_input(session: &Session, host: &Reporter) -> bool {
    let typed = pin!(session.control().end_input());
    match select(typed, pin!(host.sleep(END_OF_INPUT))).await {
        Either::Left((typed, _)) => typed.is_ok() && ended(session, host, END_OF_INPUT).await,
        Either::Right(_) => false,
    }
}

/// Waits for the end.
async fn ended(session: &Session, host: &Reporter, longest: Duration) -> bool {
    let _wanted = session.want();
    let mut changes = session.changes();
    let mut over = pin!(host.sleep(longest));
    loop {
        changes.borrow_and_update();
        if !session.is_alive() {
            return true;
        }
        match select(pin!(changes.changed()), over).await {
            Either::Left((_, rest)) => over = rest,
            Either::Right(_) => return !session.is_alive(),
        }
    }
}
