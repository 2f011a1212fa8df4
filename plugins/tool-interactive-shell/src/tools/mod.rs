//! The tools, one file each.

mod close;
mod control;
mod input;
mod list;
mod read;
mod spawn;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jaato_plugin_sdk::prelude::*;
use jaato_plugin_sdk::serde_json::Map;

use crate::answer::{answer, tell_taken};
use crate::config::Settings;
use crate::ready::Reason;
use crate::session::{Session, Taken};
use crate::shells::{Inner, Shells};
use crate::wait::{Silence, Until, wait};

/// Seconds that a call waits for a busy program, where nobody says otherwise.
const SECONDS: f64 = 10.0;

/// Most seconds that a call may wait: the original's bound.
const SECONDS_MAX: f64 = 30.0;

/// Least time that a text is given to be typed in: who does not wait for a result wants it typed
/// all the same.
const TYPING_MIN: Duration = Duration::from_millis(100);

/// Returns how long a call waits at most.
fn longest(asked: Option<f64>, default: f64) -> Duration {
    Duration::from_secs_f64(asked.unwrap_or(default).clamp(0.0, SECONDS_MAX))
}

/// Refuses an argument that is empty.
fn given<'a>(tool: &str, name: &str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() {
        let text = format!("{tool}: {name} is required");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(value)
}

/// Finds a session that a program can be typed at in.
fn alive(shells: &Inner, tool: &str, id: &str) -> Result<Arc<Session>> {
    let session = shells.get(given(tool, "session_id", id)?)?;
    if session.is_alive() {
        return Ok(session);
    }
    let text = format!("session `{}` has exited", session.id);
    Err(Error::new(ErrorKind::Failed, text)
        .with_hint("shell_read gives what it showed last, shell_close its exit status"))
}

/// What a call typed, and how much of it was taken.
struct Typed {
    bytes: Vec<u8>,
    taken: Taken,
}

/// Types for a call that may take so long in all.
async fn put(cx: &Reporter, session: &Session, bytes: Vec<u8>, longest: Duration) -> Result<Typed> {
    let taken = session.write(cx, &bytes, longest.max(TYPING_MIN)).await?;
    Ok(Typed { bytes, taken })
}

/// Waits for what comes of what was typed, in the time that is left since the call began to type.
async fn respond_to(
    cx: &Cx<Shells>,
    session: &Session,
    typed: &Typed,
    (begun, longest): (Instant, Duration),
) -> Result<Map<String, Value>> {
    let left = match typed.taken {
        Taken::All => longest.saturating_sub(begun.elapsed()),
        // Who does not read what is typed says nothing to it.
        Taken::Bytes(_) | Taken::Unknown => Duration::ZERO,
    };
    let (mut told, _) = respond(cx, session, &Until::Ready, left).await?;
    tell_taken(&mut told, typed.taken, &typed.bytes);
    Ok(told)
}

/// Waits, and tells what came of it and why.
async fn respond(
    cx: &Cx<Shells>,
    session: &Session,
    until: &Until,
    longest: Duration,
) -> Result<(Map<String, Value>, Reason)> {
    let Settings { silence: time, ends_busy_waits, .. } = cx.state().0.settings;
    let silence = Silence { time, ends_busy_waits };
    let waited = wait(session, cx, until, silence, longest).await?;
    Ok((answer(cx, session, &waited).await?, waited.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_bounded() {
        assert_eq!(longest(None, SECONDS), Duration::from_secs(10));
        assert_eq!(longest(Some(1e9), SECONDS), Duration::from_secs(30));
        assert_eq!(longest(Some(-1.0), SECONDS), Duration::ZERO);
        assert_eq!(longest(Some(0.25), SECONDS), Duration::from_millis(250));
    }

    #[test]
    fn what_is_required_is_named() {
        let error = given("shell_input", "session_id", " ").unwrap_err();
        assert_eq!(error.message, "shell_input: session_id is required");
    }
}
