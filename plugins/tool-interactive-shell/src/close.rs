//! Ends a session: first the program, gently and then by force, and then the processes that it left
//! running.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::process::{LeftoverProcess, Signal};
use jaato_plugin_sdk::terminal::TerminalWait;

use crate::session::ShellSession;

/// The maximum time for a program that waits for input to end after the end of its input.
const END_OF_INPUT: Duration = Duration::from_secs(1);

/// The maximum time for a program to end after its terminal has hung up.
const HANG_UP: Duration = Duration::from_millis(250);

/// The maximum time for the system to report the end of a killed program.
const ENDED: Duration = Duration::from_secs(5);

/// Ends everything that runs in a session, and returns the processes that outlived the program.
/// Returns `None` if the program's end was not reported.
///
/// # Errors
/// If the remaining processes could not be ended.
pub async fn close_session(
    session: &ShellSession,
    host: &Reporter,
) -> Result<Option<Vec<LeftoverProcess>>> {
    if session.is_alive() && !end_program(session, host).await {
        return Ok(None);
    }
    session.end_leftover_processes().await.map(Some)
}

/// Ends a program: with the end of its input if it reads, then with SIGHUP, then by killing
/// everything that it has started. Returns false if even that does not end it.
async fn end_program(session: &ShellSession, host: &Reporter) -> bool {
    let control = session.program_control();
    let waits = control.state().await.unwrap_or_default().waits;
    let is_busy = waits == Some(TerminalWait::Busy);
    if !is_busy && end_by_closing_input(session, host).await {
        return true;
    }
    if control.signal(Signal::Hangup).await.is_ok()
        && has_ended_within(session, host, HANG_UP).await
    {
        return true;
    }
    // If this fails, the wait below notices it.
    let _ = control.end().await;
    has_ended_within(session, host, ENDED).await
}

/// Ends the input and waits for the program's end. Gives up if the end of input cannot be typed
/// because the program does not read.
async fn end_by_closing_input(session: &ShellSession, host: &Reporter) -> bool {
    let typed = pin!(session.program_control().end_input());
    match select(typed, pin!(host.sleep(END_OF_INPUT))).await {
        Either::Left((typed, _)) => {
            typed.is_ok() && has_ended_within(session, host, END_OF_INPUT).await
        }
        Either::Right(_) => false,
    }
}

/// Waits for the program's end.
async fn has_ended_within(session: &ShellSession, host: &Reporter, longest: Duration) -> bool {
    let _wanted = session.read_without_pauses();
    let mut changes = session.change_receiver();
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
