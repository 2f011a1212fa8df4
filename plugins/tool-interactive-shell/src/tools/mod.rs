//! The tools, one per file.

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

/// The default number of seconds that a call waits for a busy program.
const SECONDS: f64 = 10.0;

/// The maximum number of seconds that a call may wait, as in the original.
const SECONDS_MAX: f64 = 30.0;

/// The minimum time for typing a text, also for a call that does not wait for a result.
const TYPING_MIN: Duration = Duration::from_millis(100);

/// Returns the maximum wait of a call.
fn longest(asked: Option<f64>, default: f64) -> Duration {
    Duration::from_secs_f64(asked.unwrap_or(default).clamp(0.0, SECONDS_MAX))
}

/// Returns an error if an argument is empty.
fn given<'a>(tool: &str, name: &str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() {
        let text = format!("{tool}: {name} is required");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(value)
}

/// Finds a session whose program is running.
fn alive(shells: &Inner, tool: &str, id: &str) -> Result<Arc<Session>> {
    let session = shells.get(given(tool, "session_id", id)?)?;
    if session.is_alive() {
        return Ok(session);
    }
    let text = format!("session `{}` has exited", session.id);
    Err(Error::new(ErrorKind::Failed, text)
        .with_hint("shell_read returns its last output, shell_close its exit status"))
}

/// The input of a call, and how much of it was read.
struct Typed {
    bytes: Vec<u8>,
    taken: Taken,
}

/// Types the input of a call within the call's time limit.
async fn put(cx: &Reporter, session: &Session, bytes: Vec<u8>, longest: Duration) -> Result<Typed> {
    let taken = session.write(cx, &bytes, longest.max(TYPING_MIN)).await?;
    Ok(Typed { bytes, taken })
}

/// Waits for the response to the input, in the rest of the time since the typing began.
async fn respond_to(
    cx: &Cx<Shells>,
    session: &Session,
    typed: &Typed,
    (begun, longest): (Instant, Duration),
) -> Result<Map<String, Value>> {
    let left = match typed.taken {
        Taken::All => longest.saturating_sub(begun.elapsed()),
        // A program that does not read its input does not respond to it.
        Taken::Bytes(_) | Taken::Unknown => Duration::ZERO,
    };
    let (mut told, _) = respond(cx, session, &Until::Ready, left).await?;
    tell_taken(&mut told, typed.taken, &typed.bytes);
    Ok(told)
}

/// Waits, and returns the result with its reason.
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
