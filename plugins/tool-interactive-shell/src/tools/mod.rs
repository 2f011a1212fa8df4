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

use crate::answer::{add_consumed_input, build_result};
use crate::config::InteractiveShellSettings;
use crate::ready::ResultReason;
use crate::session::{ConsumedInput, ShellSession};
use crate::shells::{InteractiveShellPlugin, ShellRegistry};
use crate::wait::{SilencePolicy, WaitCondition, wait_for_condition};

/// The default number of seconds that a call waits for a busy program.
const SECONDS: f64 = 10.0;

/// The maximum number of seconds that a call may wait, as in the original.
const SECONDS_MAX: f64 = 30.0;

/// The minimum time for typing a text, also for a call that does not wait for a result.
const TYPING_MIN: Duration = Duration::from_millis(100);

/// Returns the maximum wait of a call.
fn maximum_wait(asked: Option<f64>, default: f64) -> Duration {
    Duration::from_secs_f64(asked.unwrap_or(default).clamp(0.0, SECONDS_MAX))
}

/// Returns an error if an argument is empty.
fn non_empty_argument<'a>(tool: &str, name: &str, value: &'a str) -> Result<&'a str> {
    if value.trim().is_empty() {
        let text = format!("{tool}: {name} is required");
        return Err(Error::new(ErrorKind::InvalidArguments, text));
    }
    Ok(value)
}

/// Finds a session whose program is running.
fn running_session(shells: &ShellRegistry, tool: &str, id: &str) -> Result<Arc<ShellSession>> {
    let session = shells.session_by_id(non_empty_argument(tool, "session_id", id)?)?;
    if session.is_alive() {
        return Ok(session);
    }
    let text = format!("session `{}` has exited", session.id);
    Err(Error::new(ErrorKind::Failed, text)
        .with_hint("shell_read returns its last output, shell_close its exit status"))
}

/// The input of a call, and how much of it was read.
struct TypedInput {
    bytes: Vec<u8>,
    taken: ConsumedInput,
}

/// Types the input of a call within the call's time limit.
async fn type_input(
    cx: &Reporter,
    session: &ShellSession,
    bytes: Vec<u8>,
    longest: Duration,
) -> Result<TypedInput> {
    let taken = session.type_bytes(cx, &bytes, longest.max(TYPING_MIN)).await?;
    Ok(TypedInput { bytes, taken })
}

/// Waits for the response to the input, in the rest of the time since the typing began.
async fn respond_to_input(
    cx: &Cx<InteractiveShellPlugin>,
    session: &ShellSession,
    typed: &TypedInput,
    (begun, longest): (Instant, Duration),
) -> Result<Map<String, Value>> {
    let left = match typed.taken {
        ConsumedInput::All => longest.saturating_sub(begun.elapsed()),
        // A program that does not read its input does not respond to it.
        ConsumedInput::Bytes(_) | ConsumedInput::Unknown => Duration::ZERO,
    };
    let (mut told, _) = wait_and_respond(cx, session, &WaitCondition::Ready, left).await?;
    add_consumed_input(&mut told, typed.taken, &typed.bytes);
    Ok(told)
}

/// Waits, and returns the result with its reason.
async fn wait_and_respond(
    cx: &Cx<InteractiveShellPlugin>,
    session: &ShellSession,
    until: &WaitCondition,
    longest: Duration,
) -> Result<(Map<String, Value>, ResultReason)> {
    let InteractiveShellSettings { silence: time, ends_busy_waits, .. } = cx.state().0.settings;
    let silence = SilencePolicy { time, ends_busy_waits };
    let waited = wait_for_condition(session, cx, until, silence, longest).await?;
    Ok((build_result(cx, session, &waited).await?, waited.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_time_is_limited() {
        assert_eq!(maximum_wait(None, SECONDS), Duration::from_secs(10));
        assert_eq!(maximum_wait(Some(1e9), SECONDS), Duration::from_secs(30));
        assert_eq!(maximum_wait(Some(-1.0), SECONDS), Duration::ZERO);
        assert_eq!(maximum_wait(Some(0.25), SECONDS), Duration::from_millis(250));
    }

    #[test]
    fn missing_required_argument_is_named() {
        let error = non_empty_argument("shell_input", "session_id", " ").unwrap_err();
        assert_eq!(error.message, "shell_input: session_id is required");
    }
}
